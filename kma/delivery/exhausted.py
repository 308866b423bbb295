"""Messages without an attempt left that do not go to the dead letters, because their setting says so: a copy
to its exception destination and the acceptance in one transaction, or the acceptance alone.

First the protocol is stored, and that the message has no attempt left; then the transaction is posted. Killed

before the append: the message comes back, its attempt is a protocol `kma died` and counts; after it, before
the broker has committed: the message comes back, is not handled any more, and goes where it was to go; after
the commit, before it is noted: it is gone, and what is known of its attempts is forgotten after 30 days.

A connection that is lost in between is the second or the third of them: nothing is told twice as a failure.
Where the broker refuses, the message is rejected to the dead letters, and a record REFUSED beside its
protocol says so.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from broker.amqp.codec import decode
from broker.amqp.compressed import is_cut
from broker.port import Message, MessageUndecodable, Outgoing
from contract.names import (
    BROKER_PREFIXES,
    FAILED_ADDRESS,
    FAILED_AT,
    FAILED_ATTEMPTS,
    FAILED_EXCEPTION,
    FAILED_MESSAGE,
    FAILED_PROTOCOL,
    FAILED_QUEUE,
    FAILED_TRAIL,
    JMS_KIND,
    LETTER,
    LETTER_ID,
    LETTER_QUEUE,
)
from contract.outcomes import DISPOSITIONS, AfterLast, Disposition, Outcome
from contract.records import REFUSED
from contract.typed import Typed
from kma.delivery.in_flight import Work
from kma.delivery.message_identity import KnownAttempts
from kma.handling.failure import failure
from kma.handling.handler import Handled
from kma.logs import logger

if TYPE_CHECKING:
    from kma.delivery.settlement import Settling


EXHAUSTED = "no attempt left"
NOT_TAKEN = "disposition refused"
# Addresses that are remembered of one message.
MOST_PASSED = 50
_UNHANDLED = "It was delivered again after its last attempt, and was not handled any more."
_LEFT_OUT = frozenset({LETTER, LETTER_QUEUE, LETTER_ID})


@dataclass(frozen=True, slots=True)
class _Leaving:
    work: Work
    fate: Disposition


class Exhausted:
    """One thread, the run's. `transact(tag, sends)` begins a transaction, `confirmed` is told its end."""

    def __init__(self, settling: "Settling", known: KnownAttempts) -> None:
        self._settling = settling
        self._known = known
        self._leaving: dict[int, _Leaving] = {}
        self.transact: Callable[[int, Sequence[Outgoing]], None]

    @property
    def busy(self) -> bool:
        """Something is on its way to the broker whose end must be known."""
        return bool(self._leaving)

    @property
    def copies(self) -> bool:
        """Whoever fails last is needed whole."""
        return self._settling.desired.after_last is AfterLast.EXCEPTION

    def fate(self, work: Work) -> Disposition:
        """What is to become of the message. Bytes that are no message cannot be copied, nor a body of which
        only the head came; what has failed already where the copy would go would go round without end."""
        desired = self._settling.desired
        fate, to = DISPOSITIONS[desired.after_last], desired.exception_destination
        if fate is Disposition.EXCEPTION:
            try:
                message = decode(work.encoded)
            except MessageUndecodable:
                return Disposition.DEAD
            if is_cut(message.body.value, message.properties):
                self.log(work, "only the head of its body came: a dead letter", exception_destination=to)
                return Disposition.DEAD
            trail = trail_of(message, desired.destination)
            if to in trail:
                self.log(work, "came round: a dead letter", exception_destination=to)
            if not to or to in trail:
                return Disposition.DEAD
        return fate

    def unhandled(self, work: Work) -> None:
        """It came once more after its last attempt: whoever had it then could not end it."""
        fate, now = self.fate(work), datetime.now(UTC)
        self._settling.note(
            work, Handled(Outcome.NOTED, failure(EXHAUSTED, _UNHANDLED)), 0, at=now, fate=fate
        )
        self.begin(work, fate, EXHAUSTED, now)

    def begin(self, work: Work, fate: Disposition, exception_type: str, at: datetime) -> None:
        """`fate` is EXCEPTION or DISCARDED; its protocol is in the batch."""
        settling, tag = self._settling, work.tag
        desired = settling.desired
        if not work.identified.key.weak:
            made = max(work.attempt, desired.max_attempts)
            settling.batch.attempts.append((desired.setting, self._known.made(work.encoded, made), made))
        sends: list[Outgoing] = []
        if fate is Disposition.EXCEPTION:
            message = decode(work.encoded)
            marks = _marks(work, desired.destination, desired.queue, exception_type, at)
            trail = Typed("string", json.dumps(trail_of(message, desired.destination)))
            sends = [Outgoing(desired.exception_destination, marked(message, {**marks, FAILED_TRAIL: trail}))]
        self._leaving[tag] = _Leaving(work, fate)

        def post() -> None:
            if tag in self._leaving:
                self.transact(tag, sends)

        settling.batch.after.append(post)

    def confirmed(self, tag: int, problem: str | None) -> bool:
        """A transaction has ended; whether it was one of these."""
        leaving = self._leaving.pop(tag, None)
        if leaving is None:
            return False
        settling, work = self._settling, leaving.work
        if problem is None:
            settling.forget(work.encoded)
            self.log(
                work, "message discarded" if leaving.fate is Disposition.DISCARDED else "message set aside"
            )
            return True
        to = settling.desired.exception_destination
        where = (
            f"The exception destination {to!r} did not take it"
            if to
            else "The broker did not take its acceptance"
        )
        handled = Handled(Outcome.NOTED, failure(NOT_TAKEN, f"{where}: {problem}"))
        settling.note(work, handled, REFUSED, at=datetime.now(UTC), fate=Disposition.DEAD)
        settling.reject(work)
        self.log(work, "disposition refused: rejected", problem=problem)
        return True

    def lost(self) -> None:
        """The connection is gone: they went with it, or come back."""
        self._leaving.clear()

    def log(self, work: Work, event: str, **more: str) -> None:
        run, identified = self._settling.run, work.identified
        logger(activation=str(run.activation), setting=run.setting, server=run.server).warning(
            event,
            message_key=identified.key.text,
            digest=identified.digest,
            size=identified.size,
            attempt=work.attempt,
            queue=self._settling.desired.queue,
            **more,
        )


def trail_of(message: Message, here: str) -> list[str]:
    """The addresses where it has failed, `here` last. What no KMA wrote counts for nothing."""
    said = message.properties.get(FAILED_TRAIL)
    try:
        before = json.loads(str(said.value)) if said is not None else []
    except (ValueError, RecursionError):  # anybody may have written it
        before = []
    known = [each for each in before if isinstance(each, str)] if isinstance(before, list) else []
    return [*known, here][-MOST_PASSED:]


def marked(message: Message, marks: dict[str, Typed]) -> Message:
    """A copy that begins anew elsewhere: with its body and its own properties, without the broker's notes of
    its way, and kept until somebody takes it."""
    own = {
        name: item
        for name, item in message.properties.items()
        if name not in _LEFT_OUT and not name.startswith(BROKER_PREFIXES)
    }
    kind = {name: item for name, item in message.annotations.items() if name == JMS_KIND}
    return replace(
        message, properties={**own, **marks}, annotations=kind, durable=True, ttl_ms=0, expires_at=None, to=""
    )


def _marks(work: Work, address: str, queue: str, exception_type: str, at: datetime) -> dict[str, Typed]:
    texts = {
        FAILED_ADDRESS: address,
        FAILED_QUEUE: queue,
        FAILED_MESSAGE: work.identified.key.text,
        FAILED_EXCEPTION: exception_type,
        FAILED_PROTOCOL: str(UUID(bytes=work.record)),
        FAILED_AT: at.isoformat(),
    }
    marks = {name: Typed("string", text) for name, text in texts.items()}
    return {**marks, FAILED_ATTEMPTS: Typed("int", work.attempt)}
