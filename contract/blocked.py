"""What a run says while the message that failed blocks its ordered subscription: the KMA tells it, the MA
reads it."""

import hashlib
import re
from dataclasses import dataclass

from contract.outcomes import Outcome

# Before the text of the failure that a person saw, in the record of a message that was given up.
GIVEN_UP = "Sent to the dead letters because a person asked for it. "

_SAID = re.compile(
    r"blocked by the message (?P<key>.*) after attempt (?P<attempt>[0-9]{1,9}); "
    r"it is tried again (?:when somebody asks for it|every (?P<seconds>[0-9][0-9.e+-]{0,20}) s)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Blocked:
    """`seconds` between attempts, as text; empty: when a person asks for it."""

    key: str
    attempt: int
    seconds: str = ""

    @property
    def digest(self) -> str:
        return digest_of(self.key)

    def __str__(self) -> str:
        when = f"every {self.seconds} s" if self.seconds else "when somebody asks for it"
        return f"blocked by the message {self.key} after attempt {self.attempt}; it is tried again {when}"


def digest_of(key: str) -> str:
    """Hexadecimal SHA-256 of a message key: names it in a wish that outlives the message, without its
    text."""
    return hashlib.sha256(key.encode()).hexdigest()


def was_given_up(outcome: str, text: str) -> bool:
    """Of a protocol. An agent may raise any text; the outcome is the KMA's."""
    return outcome == Outcome.NOTED.value and text.startswith(GIVEN_UP)


def blocked_in(problem: str) -> tuple[str, Blocked, str] | None:
    """What the problem of a run says before it, the block, and what after it."""
    found = _SAID.search(problem)
    if found is None:
        return None
    blocked = Blocked(found["key"], int(found["attempt"]), found["seconds"] or "")
    return problem[: found.start()], blocked, problem[found.end() :]
