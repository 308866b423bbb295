"""What failed more or less often in one activation than in the one before. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import sqrt


class Change(Enum):
    """In the order in which people want to see them."""

    NEW = "new"
    MORE = "more"
    GONE = "gone"
    FEWER = "fewer"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class Difference:
    """`before`, `after`: failures; `scaled`: what `before` would be with as many attempts as `after` had."""

    fingerprint: str
    before: int
    after: int
    scaled: float
    change: Change


def compare(
    before: Mapping[str, int], after: Mapping[str, int], attempts_before: int, attempts_after: int
) -> list[Difference]:
    """Failures by fingerprint, and how many attempts there were in all (0: not known, then as many).

    More or fewer only where it is hardly chance: two counts of rare events with the same rate differ by no
    more than two standard deviations, sqrt(before * k**2 + after) with k = attempts after / before, 19 times
    out of 20.
    """
    scale = attempts_after / attempts_before if attempts_before > 0 and attempts_after > 0 else 1.0
    found = [_difference(each, before.get(each, 0), after.get(each, 0), scale) for each in {*before, *after}]
    order = list(Change)
    return sorted(
        found, key=lambda one: (order.index(one.change), -max(one.before, one.after), one.fingerprint)
    )


def _difference(fingerprint: str, before: int, after: int, scale: float) -> Difference:
    scaled = before * scale
    if not before:
        change = Change.NEW
    elif not after:
        change = Change.GONE
    elif abs(after - scaled) <= 2 * sqrt(before * scale**2 + after):
        change = Change.SAME
    else:
        change = Change.MORE if after > scaled else Change.FEWER
    return Difference(fingerprint, before, after, scaled, change)
