"""How handlings of the mode CLIENT are counted and protocolled that did not end well."""

from datetime import UTC, datetime
from typing import Any

from contract.outcomes import Outcome
from kma.handling import Handled
from kma.open_state import Delivery
from kma.records import RAISED_LATER
from kma.seat import Ended
from kma.settling import Settling

WELL = (Outcome.RETURNED, Outcome.RELEASED)


class Endings:
    """Adds to the batch of the run."""

    def __init__(self, settling: Settling, log: Any) -> None:
        self._settling = settling
        self._log = log

    def failed(self, delivery: Delivery, handled: Handled, *, gone: bool) -> None:
        """The delivery failed, or what handled it did; that may still go on. `gone`: nothing is to be
        settled."""
        ended = delivery.ended
        self._settling.failed_with(
            delivery.work,
            handled,
            pid=ended.pid if ended is not None else 0,
            seconds=ended.seconds if ended is not None else 0.0,
            at=datetime.now(UTC),
            gone=gone,
            still_handled=ended is None,
        )
        self._log.warning(
            "handling failed",
            outcome=handled.outcome.value,
            type=handled.failure.exception_type if handled.failure else "",
            attempt=delivery.work.attempt,
            message_key=delivery.work.identified.key.text,
        )

    def in_vain(self, ended: Ended) -> None:
        """The delivery went with its connection. An exception happened all the same."""
        if ended.handled.outcome in WELL:
            self._settling.free(ended.work)
            return
        now = datetime.now(UTC)
        self._settling.failed_with(
            ended.work, ended.handled, pid=ended.pid, seconds=ended.seconds, at=now, gone=True
        )

    def raised_later(self, delivery: Delivery, ended: Ended) -> None:
        """After its delivery was rolled back: told, and counted for nothing more."""
        now = datetime.now(UTC)
        self._settling.note(
            delivery.work, ended.handled, RAISED_LATER, pid=ended.pid, seconds=ended.seconds, at=now
        )
