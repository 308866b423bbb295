"""Decides whether what was interrupted switches a setting off. Pure: facts in, decision with its explanation
out."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

NEEDED_OF_MANY = 2
# So long the pool of a MANY setting has had no other live server: then those that gave up are all there are.
ALONE_AFTER = timedelta(seconds=60)


class Rule(Enum):
    """Holds which part of the rule decided. The values are stored with a trip and shown by pages."""

    NOTHING = "nothing"  # no server has given it up
    ANY = "any"  # one run is all there is
    TRIAL = "trial"  # the one message that was tried first failed
    TWO_SERVERS = "two_servers"  # two different servers gave it up
    ALL_THERE_ARE = "all_there_are"  # nobody else was there to say otherwise
    NOT_ENOUGH = "not_enough"  # others go on with it


@dataclass(frozen=True, slots=True)
class Other:
    """A server of the pool that has not given the setting up, or that had a run of the activation and left
    the pool. `runs`: a run is wanted there and not closed. `duty_since`: of a server that is `off_duty`
    (cordoned, draining, or a person stopped the setting there)."""

    name: str
    seen_at: datetime | None
    in_pool: bool = True
    offers: bool = True
    runs: bool = False
    off_duty: bool = False
    duty_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class QuorumFacts:
    """Names of servers. `interrupted`: their newest run of the open activation was given up and not resumed.
    `live`: others that went on with it or could have begun with it in the last ALONE_AFTER. `heard`: the MA
    itself could hear for so long, so that silence means something."""

    many: bool
    trial: bool = False
    interrupted: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    heard: bool = True


@dataclass(frozen=True, slots=True)
class Quorum:
    """`trips`: the setting is to be switched off now. `needed` servers that must give up while others are
    live."""

    trips: bool
    rule: Rule
    needed: int
    interrupted: tuple[str, ...]
    live: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Returns it as a BreakerTrip keeps it."""
        return {
            "needed": self.needed,
            "interrupted": list(self.interrupted),
            "live": list(self.live),
            "rule": self.rule.value,
        }


def live(others: Iterable[Other], given_up_at: datetime | None, now: datetime) -> tuple[str, ...]:
    """The names of those that went on with it in the last ALONE_AFTER, or could have begun with it.
    `given_up_at`: when the first server gave it up, None while that is not known."""
    return tuple(other.name for other in others if _is_live(other, given_up_at, now))


def _is_live(other: Other, given_up_at: datetime | None, now: datetime) -> bool:
    before = now - ALONE_AFTER
    if other.seen_at is None or other.seen_at <= before:
        return False
    if not other.in_pool or not other.offers:
        # Nobody knows since when: so that a person has time to put it back, counted from the first that gave
        # up.
        return given_up_at is None or given_up_at > before
    if other.runs or not other.off_duty:
        return True
    return other.duty_since is not None and other.duty_since > before


def decide_quorum(facts: QuorumFacts) -> Quorum:
    rule = _rule(facts)
    return Quorum(
        trips=rule not in (Rule.NOTHING, Rule.NOT_ENOUGH),
        rule=rule,
        needed=NEEDED_OF_MANY if facts.many and not facts.trial else 1,
        interrupted=tuple(sorted(facts.interrupted)),
        live=tuple(sorted(facts.live)),
    )


def _rule(facts: QuorumFacts) -> Rule:
    if not facts.interrupted:
        return Rule.NOTHING
    if facts.trial:
        return Rule.TRIAL
    if not facts.many:
        return Rule.ANY
    if len(set(facts.interrupted)) >= NEEDED_OF_MANY:
        return Rule.TWO_SERVERS
    if not facts.live and facts.heard:
        return Rule.ALL_THERE_ARE
    return Rule.NOT_ENOUGH
