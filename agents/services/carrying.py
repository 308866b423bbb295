"""Failures in a row that a DELAYED setting takes from one activation into the next, wherever that runs."""

from agents.models import Run, RunPhase, Spread, Timing
from contract.messages import BreakerCounts


def carried_counts(run: Run) -> BreakerCounts | None:
    """What the run that ended last before this one had counted: for MANY on the same server, for ANY on any.

    None: the KMA starts from 0. So it is for what runs as soon as possible, after a person enabled the
    setting, and where a person resumed a run that was given up.
    """
    if run.activation.setting.timing != Timing.DELAYED:
        return None
    last = _last_before(run)
    if last is None or not last.any_count:
        return None
    if last.activation_id == run.activation_id and last.state == RunPhase.INTERRUPTED:
        return None
    return BreakerCounts(last.same_type, last.same_count, last.any_count, tuple(last.counted_marks))


def _last_before(run: Run) -> Run | None:
    setting = run.activation.setting
    closed = Run.objects.filter(closed_at__isnull=False)
    if setting.spread == Spread.MANY:
        closed = closed.filter(server=run.server_id)
    within = closed.filter(activation=run.activation_id, epoch__lt=run.epoch).order_by("-epoch").first()
    if within is not None:
        return within
    # What ran before the setting was enabled is forgiven. Of one setting only one activation is open: this
    # one.
    earlier = closed.filter(activation__setting=setting, activation__enabling=run.activation.enabling)
    earlier = earlier.exclude(activation=run.activation_id)
    return earlier.order_by("-activation__number", "-activation__started_at", "-epoch").first()
