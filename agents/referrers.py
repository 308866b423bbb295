"""What higher apps keep of a setting and of its runs in tables of any size: before these are removed, each
app lets its rows go, a few at a time. They register how."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from agents.models import LaunchSetting

# So many rows in one transaction: others must not wait long for a lock of it.
AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Referrer:
    """`of_setting` and `of_runs` (the keys of at most AT_ONCE) take a step, a transaction of its own of at
    most AT_ONCE rows, each time they are asked for the next one, and end where no row refers to these any
    more. A step answers how many rows it let go. `model` is what refers: nobody else touches its rows."""

    model: type[Any]
    of_setting: Callable[[LaunchSetting], Iterator[int]]
    of_runs: Callable[[Collection[int]], Iterator[int]]


_referrers: list[Referrer] = []


def register(referrer: Referrer) -> None:
    if referrer not in _referrers:
        _referrers.append(referrer)


def registered() -> tuple[Referrer, ...]:
    return tuple(_referrers)
