"""What is told of deliveries of the mode CLIENT: records for the MA, events for follow-up destinations,
protocols of what failed.

Deliveries that waited for an answer when their run went without a word are lost, and the MA is told so.

What a kill -9 of this process finds and leaves, at each step:

before the handling ended: its slot is STARTED, the next start writes the protocol `kma died`; the message
    comes back, or was committed from within: then it is accepted, and once that was confirmed the protocol
    says so.
after it returned, before what it sent is published: nothing was sent, the message comes back, no attempt is
    spent.
after the broker has refused that, or a commit of a handling that nobody waits for: as before the handling
    ended.
after that, before AcknowledgementOpened is stored: it comes back, and what it sends then is sent a second
    time.
after that, until an answer: the row in the spool's file becomes an AcknowledgementEnded `lost`; it comes
    back.
COMMIT, before the row is marked `committing`: the same; the MA's answer finds `lost`.
after the mark, before the broker confirmed or refused, or before AcknowledgementEnded is stored: it is
    committed with the event and what was sent with it, or comes back without any of that; `lost` with a
    reason that says so. A refusal that nobody has stored is nobody's knowledge.
ROLLBACK or no answer in time, before its protocol is stored: as without an answer: no attempt is counted.
after that, before the settlement: protocol and AcknowledgementEnded are there, the message comes back; the
    attempt is counted by the broker or not.
"""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from broker.amqp.codec import decode
from broker.port import Outgoing
from contract import reasons
from contract.acknowledgements import EndState, IdParts
from contract.outcomes import Outcome
from contract.reasons import Reason
from contract.records import (
    AcknowledgementEnded,
    AcknowledgementOpened,
    MessageIdentity,
    RecordRun,
    derived_id,
)
from contract.wire import load
from kma.acknowledgement.open_delivery import NoSeconds, OpenDelivery, own_seconds
from kma.children.worker_slot import HandlingEnd, log_failure
from kma.delivery.effects import Effects
from kma.delivery.ending_records import NOTE, OPENED, RAISED_LATER
from kma.delivery.settlement import DeliverySettler
from kma.handling.failure import failure
from kma.handling.handler import HandlingResult
from kma.sdk.encoding import encoded_message
from kma.sdk.message import Message
from kma.spool.ledger import Ledger, run_key
from kma.spool.records import New, Spool

_ENDINGS = UUID("6f1d7c1e-52a4-4a0e-9d0c-2b7a3a1f5c11")


def ended_id(acknowledgement: str) -> UUID:
    """Of the one AcknowledgementEnded that a server ever stores of a delivery."""
    return uuid5(_ENDINGS, acknowledgement)


def end_left_open(spool: Spool, ledger: Ledger, run: str = "") -> int:
    """Writes the ends of what an earlier life left open, of one run (its key) or of all; answers how many.
    None of these runs may be alive. Killed in between and done again, nothing is written twice: a row goes
    with its record."""
    left = [row for row in spool.open_acknowledgements() if not run or row.run == run]
    records = []
    for row in left:
        stored = ledger.run(row.run)
        assert stored is not None  # a run with something open has sent no closing record, so its row is kept
        reason = reasons.CONTAINER_ENDED_IN_DOUBT() if row.committing else reasons.CONTAINER_ENDED()
        about = load(RecordRun, stored.about["run"])
        records.append(_ended(row.run, about, row.acknowledgement, reason))
    if records:
        spool.append(records)
    return len(records)


def end_unknown(spool: Spool, ledger: Ledger, acknowledgement: str, parts: IdParts) -> None:
    """An answer for a run that is not alive here: told once, however often the MA passes it on."""
    if spool.knows(ended_id(acknowledgement)):
        return
    key = run_key(parts.activation, parts.epoch)
    stored = ledger.run(key)
    if stored is not None:
        about = load(RecordRun, stored.about["run"])
    else:
        about = RecordRun("", parts.activation, parts.epoch, parts.server, "")
    spool.append([_ended(key, about, acknowledgement, reasons.NOT_OPEN())])


def _ended(key: str, run: RecordRun, acknowledgement: str, reason: Reason) -> New:
    content = AcknowledgementEnded(run, acknowledgement, EndState.LOST, reason, datetime.now(UTC))
    return New(key, content, ended_id(acknowledgement))


_EVENTS = UUID("0d7e2c55-8a0f-4f39-b7e8-54a1f2f0c9d4")


def follow_up_event(
    destination: str,
    run: RecordRun,
    acknowledgement: str,
    message: MessageIdentity,
    jms_message_id: str,
    state: EndState,
    reason: Reason | None,
    at: datetime,
) -> Outgoing:
    """JSON in a text message; its message id is the same whenever it is made again, so that it can be told
    apart."""
    body = {
        "event": state.value,
        "setting": run.setting,
        "activation": str(run.activation),
        "server": run.server,
        "acknowledgement": acknowledgement,
        "message_key": message.key,
        "jms_message_id": jms_message_id,
        "attempt": message.attempt,
        "reason": str(reason or ""),
        "reason_code": reason.code if reason else "",
        "at": at.isoformat(),
    }
    identity = f"ID:{uuid5(_EVENTS, f'{acknowledgement} {state.value}')}"
    text = json.dumps(body, ensure_ascii=False)
    return Outgoing(
        destination, decode(encoded_message(text, {}, message_id=identity, content_type="application/json"))
    )


WELL = (Outcome.RETURNED, Outcome.RELEASED)


class FailedHandlings:
    """What follows where a handling did not end well."""

    def __init__(self, settler: DeliverySettler, log: Any) -> None:
        self._settler = settler
        self._log = log

    def failed(self, delivery: OpenDelivery, handled: HandlingResult, *, gone: bool) -> Effects:
        """The delivery failed, or what handled it did; that may still go on. `gone`: nothing is to be
        settled."""
        ended = delivery.ended
        effects = self._settler.failed_with(
            delivery.work,
            handled,
            pid=ended.pid if ended is not None else 0,
            seconds=ended.seconds if ended is not None else 0.0,
            at=datetime.now(UTC),
            gone=gone,
            still_handled=ended is None,
        )
        log_failure(self._log, delivery.work, handled)
        return effects

    def in_vain(self, ended: HandlingEnd) -> Effects:
        """The delivery went with its connection. An exception happened all the same."""
        if ended.handled.outcome in WELL:
            return self._settler.free(ended.work)
        now = datetime.now(UTC)
        return self._settler.failed_with(
            ended.work, ended.handled, pid=ended.pid, seconds=ended.seconds, at=now, gone=True
        )

    def raised_later(self, delivery: OpenDelivery, ended: HandlingEnd) -> Effects:
        """After its delivery was rolled back: told, and counted for nothing more."""
        now = datetime.now(UTC)
        return self._settler.note(
            delivery.work, ended.handled, RAISED_LATER, pid=ended.pid, seconds=ended.seconds, at=now
        )


class AcknowledgementRecords:
    """Records and events of a delivery; each end is told once."""

    def __init__(self, settler: DeliverySettler) -> None:
        self._run = settler.run
        self._settler = settler

    def seconds(self, delivery: OpenDelivery) -> tuple[float, Effects]:
        """How long it waits, 0 = without end. A property of the message that says nothing is noted."""
        work, desired = delivery.work, self._settler.desired
        value = Message(work.encoded).properties.get(desired.acknowledgement_property)
        if value is None:
            return desired.acknowledgement_timeout_seconds, Effects()
        try:
            return own_seconds(value), Effects()
        except NoSeconds as error:
            own = desired.acknowledgement_timeout_seconds
            text = (
                f"{desired.acknowledgement_property}: {error}. The timeout of the setting applies: {own:g} s "
                "(0 = none)."
            )
            handled = HandlingResult(Outcome.NOTED, failure("acknowledgement_timeout_ignored", text))
            return own, self._settler.note(work, handled, NOTE, at=datetime.now(UTC))

    def note_open(self, delivery: OpenDelivery, now: datetime, due: datetime | None) -> Effects:
        message, jms_id = self._settler.message(delivery.work), _jms_id(delivery)
        content = AcknowledgementOpened(self._run, delivery.id, message, jms_id, now, due, delivery.seconds)
        record = derived_id(UUID(bytes=delivery.work.record), OPENED)
        return Effects(records=[self._settler.record(record, content)])

    def note_end(self, delivery: OpenDelivery) -> Effects:
        """Once; before that what it was, if the MA was not told."""
        effects = Effects()
        if delivery.noted:
            return effects
        delivery.noted = True
        if not delivery.opened:
            effects += self.note_open(delivery, datetime.now(UTC), None)
        assert delivery.state is not None
        effects += self.note(delivery.id, delivery.state, delivery.reason)
        return effects

    def note(self, acknowledgement: str, state: EndState, reason: Reason | None) -> Effects:
        now = datetime.now(UTC)
        content = AcknowledgementEnded(self._run, acknowledgement, state, reason, now)
        return Effects(records=[self._settler.record(ended_id(acknowledgement), content)])

    def event(
        self, destination: str, delivery: OpenDelivery, state: EndState, reason: Reason | None
    ) -> Outgoing:
        message, now = self._settler.message(delivery.work), datetime.now(UTC)
        return follow_up_event(
            destination, self._run, delivery.id, message, _jms_id(delivery), state, reason, now
        )


def _jms_id(delivery: OpenDelivery) -> str:
    if not delivery.jms_message_id:
        delivery.jms_message_id = Message(delivery.work.encoded).id
    return delivery.jms_message_id
