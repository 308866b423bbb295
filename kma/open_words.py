"""What is told of deliveries of the mode CLIENT: records for the MA, events for follow-up destinations."""

from datetime import UTC, datetime
from uuid import UUID

from broker.port import Outgoing
from contract.acknowledgements import EndState
from contract.outcomes import Outcome
from contract.reasons import Reason
from contract.records import AcknowledgementEnded, AcknowledgementOpened
from kma.failure import failure
from kma.follow_ups import event
from kma.handling import Handled
from kma.open_recovery import ended_id
from kma.open_state import Delivery
from kma.received import Received
from kma.records import NOTE, OPENED, derived_id
from kma.settling import Settling
from kma.waiting_time import NoSeconds, own_seconds


class Words:
    """Adds to the batch of the run."""

    def __init__(self, settling: Settling) -> None:
        self._run = settling.run
        self._settling = settling

    def seconds(self, delivery: Delivery) -> float:
        """How long it waits, 0 = without end. A property of the message that says nothing is noted."""
        work, desired = delivery.work, self._settling.desired
        value = Received(work.encoded, desired.destination).properties.get(desired.acknowledgement_property)
        if value is None:
            return desired.acknowledgement_timeout_seconds
        try:
            return own_seconds(value)
        except NoSeconds as error:
            own = desired.acknowledgement_timeout_seconds
            text = (
                f"{desired.acknowledgement_property}: {error}. The setting's timeout counts: "
                f"{own:g} s (0 = none)."
            )
            handled = Handled(Outcome.NOTED, failure("acknowledgement_timeout_ignored", text))
            self._settling.note(work, handled, NOTE, pid=0, seconds=0.0, at=datetime.now(UTC))
            return own

    def note_open(self, delivery: Delivery, now: datetime, due: datetime | None) -> None:
        message, jms_id = self._settling.message(delivery.work), _jms_id(delivery)
        content = AcknowledgementOpened(self._run, delivery.id, message, jms_id, now, due, delivery.seconds)
        self._settling.add(derived_id(UUID(bytes=delivery.work.record), OPENED), content)

    def note_end(self, delivery: Delivery) -> None:
        """Once; before that what it was, if the MA was not told."""
        if delivery.noted:
            return
        delivery.noted = True
        if not delivery.opened:
            self.note_open(delivery, datetime.now(UTC), None)
        assert delivery.state is not None
        self.note(delivery.id, delivery.state, delivery.reason)

    def note(self, acknowledgement: str, state: EndState, reason: Reason | None) -> None:
        now = datetime.now(UTC)
        content = AcknowledgementEnded(self._run, acknowledgement, state, reason, now)
        self._settling.add(ended_id(acknowledgement), content)

    def event(self, destination: str, delivery: Delivery, state: EndState, reason: Reason | None) -> Outgoing:
        message, now = self._settling.message(delivery.work), datetime.now(UTC)
        return event(destination, self._run, delivery.id, message, _jms_id(delivery), state, reason, now)


def _jms_id(delivery: Delivery) -> str:
    if not delivery.jms_message_id:
        delivery.jms_message_id = Received(delivery.work.encoded, "").id
    return delivery.jms_message_id
