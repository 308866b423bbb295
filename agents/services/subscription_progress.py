"""Whether a subscription is moving and is fed. Pure: what was seen before and now in, since when it is not
out."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Seen:
    """The broker's figures of one instant. `waiting`: deliverable now and not in delivery."""

    waiting: int
    in_delivery: int
    consumers: int
    acknowledged: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Progress:
    still_since: datetime | None = None
    unfed_since: datetime | None = None


def follow(before: Seen | None, known: Progress, seen: Seen, *, wanted: bool) -> Progress:
    """`wanted`: consumers are to be there all the time. A counter that went back was restarted: that is a
    change, too.

    What is not seen for a while counts as what it was: who was not looked at did not move in between.
    """
    stands = (
        before is not None
        and seen.waiting > 0
        and seen.consumers > 0
        and before.waiting > 0
        and before.acknowledged == seen.acknowledged
    )
    since = (known.still_since or (before.at if before else seen.at)) if stands else None
    unfed = wanted and seen.consumers == 0
    return Progress(since, (known.unfed_since or seen.at) if unfed else None)
