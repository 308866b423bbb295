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
from dataclasses import dataclass, replace
from datetime import datetime
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
    subscription_of,
)
from contract.outcomes import DISPOSITIONS, AfterLast, Disposition
from contract.typed import Typed
from kma.delivery.effects import Effects, RunFacts, Transaction
from kma.delivery.in_flight import InFlight
from kma.delivery.message_identity import KnownAttempts
from kma.logs import logger

EXHAUSTED = "no attempt left"
NOT_TAKEN = "disposition refused"
# Addresses that are remembered of one message.
MOST_PASSED = 50
UNHANDLED = "The message was delivered again after its last attempt. It was not processed again."
_LEFT_OUT = frozenset({LETTER, LETTER_QUEUE, LETTER_ID})


@dataclass(frozen=True, slots=True)
class Leaving:
    """A message on its way to where its setting says."""

    work: InFlight
    disposition: Disposition
    transaction: Transaction


class Exhausted:
    """One thread, the run's. `begin` says which transaction takes the message away, `ended` is told when that
    has ended."""

    def __init__(self, facts: RunFacts, known: KnownAttempts) -> None:
        self._facts = facts
        self._known = known
        self._leaving: dict[int, Leaving] = {}

    @property
    def busy(self) -> bool:
        """Something is on its way to the broker whose end must be known."""
        return bool(self._leaving)

    @property
    def copies(self) -> bool:
        """Whoever fails last is needed whole."""
        return self._facts.desired.after_last is AfterLast.EXCEPTION

    def disposition(self, work: InFlight) -> Disposition:
        """Where the message goes. Bytes that are no message cannot be copied, nor a body of which only the
        head came; what has failed already where the copy would go would go round without end."""
        desired = self._facts.desired
        disposition, to = DISPOSITIONS[desired.after_last], desired.exception_destination
        if disposition is Disposition.EXCEPTION:
            try:
                message = decode(work.encoded)
            except MessageUndecodable:
                return Disposition.DEAD
            if is_cut(message.body.value, message.properties):
                self.log(work, "body incomplete: dead-lettered", exception_destination=to)
                return Disposition.DEAD
            trail = trail_of(message, desired.destination)
            if to in trail:
                self.log(
                    work, "exception destination visited before: dead-lettered", exception_destination=to
                )
            if not to or to in trail:
                return Disposition.DEAD
        return disposition

    def begin(self, work: InFlight, disposition: Disposition, exception_type: str, at: datetime) -> Effects:
        """`disposition` is EXCEPTION or DISCARDED; its protocol goes to the disk together with these."""
        desired, effects = self._facts.desired, Effects()
        if not work.identified.key.weak:
            made = max(work.attempt, desired.max_attempts)
            effects.attempts.append((desired.setting, self._known.made(work.encoded, made), made))
        sends: tuple[Outgoing, ...] = ()
        if disposition is Disposition.EXCEPTION:
            message = decode(work.encoded)
            marks = _marks(work, desired.destination, desired.queue, exception_type, at)
            trail = Typed("string", json.dumps(trail_of(message, desired.destination)))
            copy = marked(message, {**marks, FAILED_TRAIL: trail})
            sends = (Outgoing(desired.exception_destination, copy),)
        transaction = Transaction(work.tag, sends)
        self._leaving[work.tag] = Leaving(work, disposition, transaction)
        effects.transactions.append(transaction)
        return effects

    def wants(self, transaction: Transaction) -> bool:
        """Whether its message still waits for it: not where the connection was lost since `begin`."""
        leaving = self._leaving.get(transaction.tag)
        return leaving is not None and leaving.transaction is transaction

    def ended(self, tag: int) -> Leaving | None:
        """A transaction has ended; None: it was none of these."""
        return self._leaving.pop(tag, None)

    def refusal(self, problem: str) -> str:
        """Says who did not take a message."""
        to = self._facts.desired.exception_destination
        where = (
            f"The exception destination {to!r} did not accept the message"
            if to
            else "The broker did not confirm the acknowledgement"
        )
        return f"{where}: {problem}"

    def lost(self) -> None:
        """The connection is gone: they went with it, or come back."""
        self._leaving.clear()

    def log(self, work: InFlight, event: str, **more: str) -> None:
        run, identified = self._facts.run, work.identified
        logger(activation=str(run.activation), setting=run.setting, server=run.server).warning(
            event,
            message_key=identified.key.text,
            digest=identified.digest,
            size=identified.size,
            attempt=work.attempt,
            queue=self._facts.desired.queue,
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


def _marks(work: InFlight, address: str, queue: str, exception_type: str, at: datetime) -> dict[str, Typed]:
    texts = {
        FAILED_ADDRESS: address,
        FAILED_QUEUE: subscription_of(queue),
        FAILED_MESSAGE: work.identified.key.text,
        FAILED_EXCEPTION: exception_type,
        FAILED_PROTOCOL: str(UUID(bytes=work.record)),
        FAILED_AT: at.isoformat(),
    }
    marks = {name: Typed("string", text) for name, text in texts.items()}
    return {**marks, FAILED_ATTEMPTS: Typed("int", work.attempt)}
