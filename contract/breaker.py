"""The breaker: consecutive failures of one setting on one server (the specification, section 3). Pure.

The caller judges each ending: `count` first, then, when the counts have grown, `trips`.
"""

import hashlib
from dataclasses import dataclass, replace
from enum import Enum

from contract.outcomes import RULES, Breaker, Outcome

MOST_MARKS = 1000  # messages remembered of one row of failures; an older one would count again
MARK_LENGTH = 16  # characters


@dataclass(frozen=True, slots=True)
class Counts:
    """`same` failures in a row of the type `same_type`, `any` failures in a row of any type.

    `marks`: the messages that counted in this row, oldest first, by `mark`; only where each message counts
    once.
    """

    same_type: str = ""
    same: int = 0
    any: int = 0
    marks: tuple[str, ...] = ()


class TripReason(Enum):
    """TRIAL: the first message after a person enabled the setting failed, and the setting asks to try one
    first."""

    SAME_TYPE = "same_type"
    ANY_TYPE = "any_type"
    TRIAL = "trial"


def same_limit(m: int) -> int:
    """N of M: M / 3 rounded down, at least 1."""
    return max(1, m // 3)


def mark(message_key: str) -> str:
    """What the counts keep of a message key, which may have 255 characters: MARK_LENGTH."""
    return hashlib.blake2b(
        message_key.encode("utf-8", "surrogatepass"), digest_size=MARK_LENGTH // 2
    ).hexdigest()


def may_repeat(*, weak: bool, attempt: int) -> bool:
    """Whether a failure may be of a message that failed before. Equal messages share a weak key: the first
    attempt of one is never a repetition of another."""
    return not (weak and attempt <= 1)


def count(
    counts: Counts, outcome: Outcome, exception_type: str = "", *, message_key: str = "", repeats: bool = True
) -> Counts:
    """The counts after one more handling ended; `exception_type` is the protocol's, e.g. `exit:1`.

    `message_key` is given where each message counts once: a failure of a message that counted already in the
    present row of consecutive failures changes nothing, whatever its type. A success ends the row, after it
    the message counts anew. `repeats`: see `may_repeat`.
    """
    effect = RULES[outcome].breaker
    if effect is Breaker.RESET:
        return Counts()
    if effect is Breaker.IGNORE:
        return counts
    marks = counts.marks
    if message_key:
        marked = mark(message_key)
        if repeats and marked in marks:
            return counts
        marks = (*(one for one in marks if one != marked), marked)[-MOST_MARKS:]
    same = counts.same + 1 if exception_type == counts.same_type else 1
    return replace(counts, same_type=exception_type, same=same, any=counts.any + 1, marks=marks)


def trips(counts: Counts, m: int, *, trial: bool = False) -> TripReason | None:
    """Why the breaker with the limit `m` trips after a failure that counted, or None. `trial`: nothing was
    handled well since a person enabled the setting, and it asks to try one message first."""
    if counts.any == 0:
        return None
    if trial:
        return TripReason.TRIAL
    if counts.same >= same_limit(m):
        return TripReason.SAME_TYPE
    if counts.any >= m:
        return TripReason.ANY_TYPE
    return None
