"""Whether what was interrupted switches a setting off. Pure: facts in, decision with its explanation out."""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

NEEDED_OF_MANY = 2
# So long the pool of a MANY setting has had no other live server: then those that gave up are all there are.
ALONE_AFTER = timedelta(seconds=60)


class Rule(Enum):
    """Which part of the rule decided. The values are stored with a trip and shown by pages."""

    NOTHING = "nothing"  # no server has given it up
    ANY = "any"  # one run is all there is
    TRIAL = "trial"  # the one message that was tried first failed
    TWO_SERVERS = "two_servers"  # two different servers gave it up
    ALL_THERE_ARE = "all_there_are"  # nobody else was there to say otherwise
    NOT_ENOUGH = "not_enough"  # others go on with it


@dataclass(frozen=True, slots=True)
class Facts:
    """Names of servers. `interrupted`: their newest run of the open activation was given up and not resumed. `live`:
    servers of the pool without these that were seen in the last ALONE_AFTER. `heard`: the MA itself could hear for so
    long, so that silence means something."""

    many: bool
    trial: bool = False
    interrupted: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    heard: bool = True


@dataclass(frozen=True, slots=True)
class Quorum:
    """`trips`: the setting is to be switched off now. `needed` servers that must give up while others are live."""

    trips: bool
    rule: Rule
    needed: int
    interrupted: tuple[str, ...]
    live: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """As a BreakerTrip keeps it."""
        return {
            "needed": self.needed,
            "interrupted": list(self.interrupted),
            "live": list(self.live),
            "rule": self.rule.value,
        }


def decide(facts: Facts) -> Quorum:
    rule = _rule(facts)
    return Quorum(
        trips=rule not in (Rule.NOTHING, Rule.NOT_ENOUGH),
        rule=rule,
        needed=NEEDED_OF_MANY if facts.many and not facts.trial else 1,
        interrupted=tuple(sorted(facts.interrupted)),
        live=tuple(sorted(facts.live)),
    )


def _rule(facts: Facts) -> Rule:
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
