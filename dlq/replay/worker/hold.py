"""Holds a subscription while dead letters go ahead of what waits in it.

The subscription is paused on the broker, in its journal: it gathers what is published and delivers nothing.
The dead letters go into a queue beside it, from which the runs of the setting take meanwhile. Once these are
handled the subscription delivers again. No message that waits is moved, so a producer that goes on publishing
overtakes nothing.

What is wanted is written before it is done: `LaunchSetting.hold` says which queue the runs are sent and
whether the subscription is to be paused, `ReplayJob.hold` how far the job is. Killed

- before the setting is marked: a queue is there that nobody uses. Nothing waits, nothing was moved.
- after it, before the pause: the runs take from the empty queue. The next worker pauses the subscription.
- after the pause: the next worker waits for what is in delivery, as this one did.
- after `held`: dead letters move as in any replay, each by one move that names it.
- after `ending`: the next worker moves what is left behind what waits, message by message by the broker's
  ids, which does nothing the second time, and lets the subscription deliver.
- before the mark goes: the same, where nothing is left.

A job that nobody works on, because a person paused it, is stopped once its time is over
(`end_overdue_holds`), and whatever ends a job ends its hold first.
"""

from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.liveness import poll_after_commit
from agents.models import Hold, LaunchSetting
from agents.provisioning.provision import steps_of
from agents.provisioning.topology import REMOVING
from broker.management import waiting_messages
from broker.management.desired_topology import Policy
from broker.management.queues import QueueFigures, queue_figures
from broker.management.topology import apply
from broker.port import AddressUnknown, Management, ManagementFailed
from console.jobs import crash
from console.jobs.engine import Wait
from console.processes import lock
from contract.names import ahead_queue
from dlq.models import HoldState, JobState, ReplayJob
from dlq.reasons import HOLD_OVER, WHY_STOPPED
from dlq.replay.counts import so_far
from dlq.replay.creation import audit
from dlq.replay.worker.pacer import target_of

log = structlog.get_logger(__name__)

# Why such a job waits: another replay holds the subscription; consumers have not let go of it; the dead
# letters are being handled; what is left goes behind.
HELD_BY_ANOTHER, LETTING_GO, HANDLED_AHEAD, HOLD_ENDING = (
    "held_by_another",
    "letting_go",
    "ahead",
    "hold_ends",
)
LOOK_EVERY = timedelta(seconds=1)
# The lock of provisioning, of a worker that dies with it.
LOCKED_FOR = timedelta(seconds=20)
HOLDING = (HoldState.WANTED, HoldState.HELD, HoldState.ENDING)
# Why such a job is stopped, see `WHY_STOPPED`.
OVER = "hold_over"


def is_over(job: ReplayJob, now: datetime) -> bool:
    """Returns whether the subscription is held no longer, whatever was handled."""
    return job.hold_until is not None and now >= job.hold_until


def holds(job: ReplayJob) -> bool:
    """Returns whether its end has a hold to end first."""
    return job.hold in HOLDING


# -- the beginning -------------------------------------------------------------------------------------------


def begin(job: ReplayJob, broker: Management, now: datetime) -> Wait | None:
    """Returns None once dead letters may move. May be called again at any time. Raises BrokerError."""
    setting = target_of(job)
    if setting is None or not setting.takes_messages or not holds(job):
        return None  # the move says why it fails
    if job.hold == HoldState.WANTED and job.held_at is None and not _claim(job, setting, broker, now):
        return Wait(now + LOOK_EVERY, HELD_BY_ANOTHER)
    crash.point("hold written")
    setting.refresh_from_db(fields=["hold", "held_by"])
    if setting.held_by != job.pk or setting.hold != Hold.AHEAD:
        return Wait(now + LOOK_EVERY, HELD_BY_ANOTHER)
    # Again while it is held: what somebody resumed on the broker is paused again.
    if not _provision(setting, broker):
        return Wait(now + LOOK_EVERY, LETTING_GO)
    crash.point("paused")
    if job.hold == HoldState.WANTED:
        if _figures(setting, setting.key, broker).delivering:
            return Wait(now + LOOK_EVERY, LETTING_GO)
        if not job.renew(timezone.now(), hold=HoldState.HELD):
            return Wait(now, LETTING_GO)
        job.hold = HoldState.HELD
        log.info("subscription held", setting=setting.key, replay=str(job.pk))
        crash.point("held")
    return None


def _claim(job: ReplayJob, setting: LaunchSetting, broker: Management, now: datetime) -> bool:
    """Marks the setting, of two jobs for one; the queue beside it is there before runs are sent to it."""
    row = LaunchSetting.objects.filter(pk=setting.pk).exclude(wanted_hash=REMOVING)
    if not row.exists() or row.exclude(held_by=None).exclude(held_by=job.pk).exists():
        return False
    setting.hold = Hold.AHEAD
    # Without the lock of provisioning: no policy, which may be saved at this moment.
    apply(broker, [step for step in steps_of(setting)[:-1] if not isinstance(step, Policy)])
    crash.point("queue made")
    with transaction.atomic():
        until = now + timedelta(minutes=job.hold_minutes)
        if not job.renew(timezone.now(), held_at=now, hold_until=until):
            return False
        if not row.filter(hold="", held_by=None).update(hold=Hold.AHEAD, held_by=job.pk):
            transaction.set_rollback(True)
            return False
        audit(job, "replay.hold", by=job.by, now=now, detail={"minutes": job.hold_minutes})
        poll_after_commit(setting.pool.servers.values_list("name", flat=True))
    job.held_at, job.hold_until = now, until
    return True


def _provision(setting: LaunchSetting, broker: Management) -> bool:
    """Makes the broker as the row wants it; not while somebody else does, who may have read it before."""
    with lock("provision", LOCKED_FOR) as free:
        if not free:
            return False
        # Everything: policy and exclusiveness may have been saved since it was read.
        setting.refresh_from_db()
        apply(broker, steps_of(setting))
    # It was released while this process stood still: what was just done is undone.
    done = setting.hold
    setting.refresh_from_db(fields=["hold"])
    if setting.hold != done:
        apply(broker, steps_of(setting))
    return True


# -- the end -------------------------------------------------------------------------------------------------


def end(job: ReplayJob, broker: Management, now: datetime, *, handled: bool) -> Wait | None:
    """Returns None once the subscription delivers again. `handled`: not before the dead letters are, as long
    as the time of the hold lasts. Raises BrokerError."""
    if not holds(job):
        return None
    setting = target_of(job)
    if setting is None or setting.held_by != job.pk:
        job.renew(timezone.now(), hold=HoldState.OVER)
        return None
    left = _left_beside(setting, broker)
    if handled and job.hold != HoldState.ENDING and left and not is_over(job, now):
        _provision(setting, broker)
        return Wait(now + LOOK_EVERY, HANDLED_AHEAD)
    if job.hold != HoldState.ENDING and not _end_wanted(job, setting, left, now):
        return Wait(now, HOLD_ENDING)
    crash.point("hold ends")
    _move_behind(setting, broker)
    crash.point("moved behind")
    if not _provision(setting, broker):
        return Wait(now + LOOK_EVERY, HOLD_ENDING)
    crash.point("released")
    # What a consumer still had may come back.
    if _left_beside(setting, broker):
        return Wait(now + LOOK_EVERY, HOLD_ENDING)
    with transaction.atomic():
        if not job.renew(timezone.now(), hold=HoldState.OVER):
            return Wait(now, HOLD_ENDING)
        LaunchSetting.objects.filter(pk=setting.pk, held_by=job.pk).update(hold="", held_by=None)
    job.hold = HoldState.OVER
    log.info("subscription released", setting=setting.key, replay=str(job.pk))
    crash.point("hold over")
    return None


def _end_wanted(job: ReplayJob, setting: LaunchSetting, left: int, now: datetime) -> bool:
    """Writes down that the runs take from the subscription again; what is left of the dead letters is said
    with it."""
    columns = {"hold": HoldState.ENDING} | ({"problem": HOLD_OVER(n=left)} if left else {})
    with transaction.atomic():
        if not job.renew(timezone.now(), **columns):
            return False
        LaunchSetting.objects.filter(pk=setting.pk, held_by=job.pk).update(hold=Hold.ENDING)
        audit(job, "replay.hold_ended", by=job.by, now=now, counts={"left": left})
        poll_after_commit(setting.pool.servers.values_list("name", flat=True))
    job.hold = HoldState.ENDING
    return True


def _move_behind(setting: LaunchSetting, broker: Management) -> None:
    """Moves what is left beside the subscription to its end, in its order and with its attempts; what is
    delayed too."""
    try:
        waiting_messages.move_all(broker, ahead_queue(setting.key), setting.key)
    except ManagementFailed as error:
        log.warning("messages not moved behind the waiting ones", setting=setting.key, reason=str(error))


def _left_beside(setting: LaunchSetting, broker: Management) -> int:
    try:
        return _figures(setting, ahead_queue(setting.key), broker).messages
    except AddressUnknown:
        return 0


def _figures(setting: LaunchSetting, queue: str, broker: Management) -> QueueFigures:
    return queue_figures(broker, queue, setting.subscribed.name)


# -- what nobody works on ------------------------------------------------------------------------------------


def holders(jobs: QuerySet[ReplayJob]) -> QuerySet[ReplayJob]:
    """Those that hold a subscription, which others may wait for."""
    return jobs.filter(hold__in=HOLDING, held_at__isnull=False).order_by("hold_until")


def end_overdue_holds(now: datetime) -> int:
    """Stops paused jobs whose time is over; a worker ends their hold then. Returns how many."""
    held = ReplayJob.objects.filter(state=JobState.PAUSED, hold_until__lte=now, hold__in=HOLDING)
    stopped = 0
    for job in held.order_by("hold_until"):
        with transaction.atomic():
            paused = ReplayJob.objects.filter(pk=job.pk, state=JobState.PAUSED)
            if paused.update(state=JobState.STOPPED, problem=WHY_STOPPED[OVER]()):
                stopped += 1
                audit(job, "replay.stopped", by=job.by, now=now, detail={"why": OVER}, counts=so_far(job))
    return stopped
