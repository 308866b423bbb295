"""What others do when an activation has ended. They register here, so that the end knows none of them."""

from collections.abc import Callable
from datetime import datetime

from agents.models import Activation

Follower = Callable[[Activation, datetime], None]

_followers: list[Follower] = []


def register(follower: Follower) -> None:
    """Called after each end. It may be lost to a kill in between: what must follow is healed by
    `agents.tend`."""
    if follower not in _followers:
        _followers.append(follower)


def follow(activation: Activation, now: datetime) -> None:
    for follower in _followers:
        follower(activation, now)
