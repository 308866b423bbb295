"""Records that come after the end of their activation. They can only turn well into error."""

from datetime import datetime

from django.db.models import F

from agents import unresolved
from agents.models import Activation, ActivationState, Run
from agents.services.history import note
from contract.messages import Closing, RunState


def note_late(run: Run, records: int, failed: int, closing: Closing | None, now: datetime) -> None:
    """Called inside the intake's transaction, with the records stored. Nothing happens while the activation is open:
    the row is then not touched, so that no intake waits for another."""
    ended = Activation.objects.filter(pk=run.activation_id, ended_at__isnull=False)
    if not ended.update(late_records=F("late_records") + records):
        return
    badly_closed = closing is not None and closing.state is not RunState.FINISHED
    well = Activation.objects.select_related("setting").filter(pk=run.activation_id, state=ActivationState.SUCCEEDED)
    activation = well.first() if failed or badly_closed else None
    if activation is None or not (badly_closed or unresolved.of(activation)):
        return
    if well.update(state=ActivationState.FAILED):
        old, new = ActivationState.SUCCEEDED.value, ActivationState.FAILED.value
        note(activation.setting, "activation", old, new, now=now, reason="late records", activation=activation)
