"""Whether the failures of an activation point at a server, or at the message and the agent. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

# Attempts that a server must have made, and failures there must be, before anybody may conclude anything.
ENOUGH_ATTEMPTS = 20
ENOUGH_FAILURES = 5
# On every server: the highest rate is at most so many times the lowest.
ALIKE = 3.0


class Where(Enum):
    ONE = "one"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Oddity:
    """`server`: the only one on which it fails; empty where it fails on all of `servers` that made enough
    attempts."""

    where: Where
    server: str
    servers: int


def alone(failed_here: int, failed_elsewhere: int, tried_elsewhere: int) -> bool:
    """Whether a kind of failure occurs on one server only, by its failures there and on others and the
    attempts of the others: none of these failed so, though they tried enough to tell."""
    return failed_here >= ENOUGH_FAILURES and not failed_elsewhere and tried_elsewhere >= ENOUGH_ATTEMPTS


def oddity(handled: Mapping[str, int], failed: Mapping[str, int]) -> Oddity | None:
    """By server: messages handled well, attempts that failed. None where nothing can be concluded."""
    attempts = {name: handled.get(name, 0) + failed.get(name, 0) for name in {*handled, *failed}}
    tried = {name: made for name, made in attempts.items() if made >= ENOUGH_ATTEMPTS}
    if len(tried) < 2 or sum(failed.values()) < ENOUGH_FAILURES:
        return None
    failing = {name for name, count in failed.items() if count}
    if len(failing) == 1 and failing <= tried.keys():
        return Oddity(Where.ONE, failing.pop(), len(tried))
    rates = [failed.get(name, 0) / made for name, made in tried.items()]
    if 0 < max(rates) <= ALIKE * min(rates):
        return Oddity(Where.ALL, "", len(tried))
    return None
