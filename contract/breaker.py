"""The breaker: consecutive failures of one setting on one server (the specification, section 3). Pure."""

from dataclasses import dataclass, replace
from enum import Enum

from contract.outcomes import RULES, Breaker, Outcome


@dataclass(frozen=True, slots=True)
class Counts:
    """`same` failures in a row of the type `same_type`, `any` failures in a row of any type."""

    same_type: str = ""
    same: int = 0
    any: int = 0


class TripReason(Enum):
    """TRIAL: the first message after a person enabled the setting failed, and the setting asks to try one first."""

    SAME_TYPE = "same_type"
    ANY_TYPE = "any_type"
    TRIAL = "trial"


def same_limit(m: int) -> int:
    """N of M: M / 3 rounded down, at least 1."""
    return max(1, m // 3)


def count(counts: Counts, outcome: Outcome, exception_type: str = "") -> Counts:
    """The counts after one more handling ended; `exception_type` is the protocol's, e.g. `exit:1`."""
    effect = RULES[outcome].breaker
    if effect is Breaker.RESET:
        return Counts()
    if effect is Breaker.IGNORE:
        return counts
    if exception_type == counts.same_type:
        return replace(counts, same=counts.same + 1, any=counts.any + 1)
    return Counts(same_type=exception_type, same=1, any=counts.any + 1)


def trips(counts: Counts, m: int) -> TripReason | None:
    """Why the breaker with the limit `m` trips now, or None."""
    if counts.same >= same_limit(m):
        return TripReason.SAME_TYPE
    if counts.any >= m:
        return TripReason.ANY_TYPE
    return None
