"""Attempts that the broker may not have counted or may have forgotten: those of a KMA that died, and those
that failed here. From this server's journal and spool, and from the MA."""

from collections.abc import Mapping

from contract.message_key import DIGEST_PREFIX
from kma.identity import Identified, identify, key_of, may_be_replayed


class KnownAttempts:
    """`here` is by case, because a message that was given back begins anew; the MA's are by message key, and
    the MA leaves out what has ended. Weak keys are left out: equal messages share them, and none may pay for
    another; for those the broker's count is all there is. One thread."""

    def __init__(self, here: Mapping[str, int]) -> None:
        self._here = {case: made for case, made in here.items() if not is_weak(case)}
        self._told: dict[str, int] = {}
        self._ended: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._here or self._told)

    def told(self, attempts: Mapping[str, int]) -> None:
        """What the MA knows now. What ended here stays ended until the MA has noticed."""
        self._ended &= attempts.keys()
        self._told = {
            key: made for key, made in attempts.items() if key not in self._ended and not is_weak(key)
        }

    def of(self, encoded: bytes) -> int:
        if not self:
            return 0
        return max(self._here.get(case_of(encoded), 0), self._told.get(key_of(encoded), 0))

    def made(self, encoded: bytes, attempts: int) -> str:
        """Remembers; answers the case, for the disk."""
        case = case_of(encoded)
        self._here[case] = attempts
        return case

    def ended(self, encoded: bytes) -> str | None:
        """The message was handled or is dead. Answers the case if the disk knows of it too."""
        if not self:
            return None
        key = key_of(encoded)
        if self._told.pop(key, None) is not None:
            self._ended.add(key)
        case = case_of(encoded)
        return case if self._here.pop(case, None) is not None else None


def case_of(encoded: bytes) -> str:
    """The message key; of a message that was given back together with its letter: a new chapter, counted
    anew."""
    return case(identify(encoded)) if may_be_replayed(encoded) else key_of(encoded)


def case(identified: Identified) -> str:
    return (
        f"{identified.key.text}@{identified.dead_letter_id}" if identified.replayed else identified.key.text
    )


def is_weak(case: str) -> bool:
    return case.startswith(DIGEST_PREFIX)
