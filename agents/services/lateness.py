"""Records that come after the end of their activation. They can only turn well into error."""

from datetime import datetime
from uuid import UUID

from django.db.models import F, Q

from agents import unresolved
from agents.models import Activation, ActivationState
from agents.reasons import LATE_RECORDS
from agents.services.endings import standalone_raised
from agents.services.history import note
from contract.messages import Closing, RunState


def note_late(
    ended_one: UUID, records: int, failed: int, temporary: int, closing: Closing | None, now: datetime
) -> None:
    """Called inside the intake's transaction, with the records stored. Nothing happens while the activation
    is open: the row is then not touched, so that no intake waits for another."""
    ended = Activation.objects.filter(pk=ended_one, ended_at__isnull=False)
    if not ended.update(late_records=F("late_records") + records, cleared=False):
        return
    badly_closed = closing is not None and closing.state is not RunState.FINISHED
    well = ended.filter(Q(well=True) | Q(state=ActivationState.SUCCEEDED)).select_related("setting")
    activation = well.first() if failed or temporary or badly_closed else None
    if activation is None:
        return
    if badly_closed or standalone_raised(activation) or (failed and unresolved.of(activation)):
        _turn_into_error(activation, now)


def _turn_into_error(activation: Activation, now: datetime) -> None:
    rows = Activation.objects.filter(pk=activation.pk)
    rows.update(well=False)
    if rows.filter(state=ActivationState.SUCCEEDED).update(state=ActivationState.FAILED):
        old, new = ActivationState.SUCCEEDED.value, ActivationState.FAILED.value
        note(
            activation.setting, "activation", old, new, now=now, reason=LATE_RECORDS(), activation=activation
        )
