"""Schedules: every due window is decided exactly once.

`tick` (of one, when its window begins) and `tend_schedules` (every few seconds, all of them) do the same and
may run in any number of processes at once. Order of locks, here and wherever else: group, setting, schedule.
"""

from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet

from agents.activations.operations import start_activation
from agents.freezes.held import Held, note_held
from agents.freezes.queries import FrozenScopes, frozen_now, pools_of
from agents.freezes.rules import Frozen
from agents.groups.group import start_group
from agents.isolation import isolated
from agents.models import (
    HeldKind,
    LaunchSetting,
    Schedule,
    ScheduledGroup,
    Trigger,
    Window,
    WindowResult,
)
from agents.schedules.rules import Holding, Skip, Verdict, decide_windows
from agents.state_history import note
from agents.timetable import Timetable, next_windows
from console.operations.refusals import Refused
from console.reasons import NO_REASON, Reason
from console.task_queue import send

log = structlog.get_logger(__name__)

Owner = LaunchSetting | ScheduledGroup
# A worker that was away must not find a pile of wake-ups.
EXPIRES_SECONDS = 60


def timetable_of(schedule: Schedule) -> Timetable:
    return Timetable(schedule.crontab, schedule.time_zone, schedule.every_seconds)


def upcoming(schedule: Schedule, now: datetime, count: int = 3) -> list[datetime]:
    """The next windows (UTC), whether or not the owner is enabled."""
    return next_windows(timetable_of(schedule), now, count)


@transaction.atomic
def save_schedule(schedule: Schedule, by: Any, now: datetime) -> Schedule:
    """Raises ValidationError. Where it is due at other instants than before, windows up to now count as
    decided: a change never starts what was due before it."""
    owner = _locked_owner(schedule)
    before = Schedule.objects.filter(pk=schedule.pk).first()
    # A form may have made it anew with the key of the stored one.
    schedule._state.adding = before is None
    schedule.full_clean(exclude={"setting" if schedule.setting is None else "group"})
    same_windows = before is not None and timetable_of(before) == timetable_of(schedule)
    schedule.decided_up_to = before.decided_up_to if before is not None and same_windows else now
    same_rule = before is not None and same_windows and before.missed == schedule.missed
    schedule.held_due_at = before.held_due_at if before is not None and same_rule else None
    schedule.save()
    _note(owner, _stored(before), _stored(schedule), by, now)
    return schedule


@transaction.atomic
def delete_schedule(schedule: Schedule, by: Any, now: datetime) -> None:
    """Its windows go with it; what they started stays."""
    owner = _locked_owner(schedule)
    _note(owner, _stored(schedule), "", by, now)
    schedule.delete()


def tick(schedule_id: int, now: datetime) -> bool:
    """Returns whether a window was decided."""
    schedule = Schedule.objects.select_related("setting", "group").filter(pk=schedule_id).first()
    return schedule is not None and _tick(schedule, now, frozen_now(now))


def tend_schedules(now: datetime) -> int:
    """Returns how many schedules had a window to decide."""
    found = list(_enabled().select_related("setting", "group"))
    frozen = frozen_now(now) if found else FrozenScopes(())
    return sum(_tend(schedule, now, frozen) for schedule in found)


def ask_for_ticks(now: datetime, until: datetime) -> None:
    """Asks a worker to tick each schedule that has a window in (now, until], when that begins. It decides
    nothing and may be lost, late or doubled: whoever looks at all schedules next finds the window due."""
    for schedule in _enabled():
        if (due := _next_window(schedule, now)) is None or due > until:
            continue
        if not send("agents.tick", schedule.pk, expires=EXPIRES_SECONDS, at=due):
            return


def _next_window(schedule: Schedule, now: datetime) -> datetime | None:
    due = None
    with isolated("next window", schedule=schedule.pk):
        due = next(timetable_of(schedule).after(now), None)
    return due


def _enabled() -> QuerySet[Schedule]:
    return Schedule.objects.filter(Q(setting__enabled=True) | Q(group__enabled=True))


def _tend(schedule: Schedule, now: datetime, frozen: FrozenScopes) -> bool:
    try:
        return _tick(schedule, now, frozen)
    except Exception:
        # One that cannot be decided must not keep all others from being started. It is tried again with the
        # next look.
        log.exception("schedule not evaluated", schedule=schedule.pk)
        return False


def _tick(schedule: Schedule, now: datetime, frozen: FrozenScopes) -> bool:
    # Looked first without a lock: nearly always nothing is due.
    owner = _owner(schedule)
    if not owner.enabled or not _verdict(schedule, _holding(owner, frozen), now).is_any:
        return False
    return _decide(schedule, now)


@transaction.atomic
def _decide(schedule: Schedule, now: datetime) -> bool:
    """Windows, what they start and `decided_up_to` are one commit: a kill before it leaves everything to the
    next tick, and one after it finds everything decided. The locks let one of several at once go first; the
    others then find nothing due."""
    owner = _locked_owner(schedule)
    current = Schedule.objects.select_for_update(no_key=True).filter(pk=schedule.pk).first()
    if current is None or not owner.enabled:
        return False
    # Under the lock, for which a freeze waits: whoever starts something here began before the freeze.
    frozen = _holding(owner, frozen_now(now))
    verdict = _verdict(current, frozen, now)
    if not verdict.is_any:
        return False
    for skip in verdict.skips:
        _skip(current, skip, now)
    if frozen is not None and verdict.holds:
        _hold(current, owner, frozen, verdict.holds, now)
    if verdict.start is not None:
        _start(current, owner, verdict.start, verdict.remark, now)
    Schedule.objects.filter(pk=current.pk).update(decided_up_to=now, held_due_at=verdict.owed)
    return True


def _verdict(schedule: Schedule, frozen: Frozen | None, now: datetime) -> Verdict:
    return decide_windows(
        timetable_of(schedule),
        schedule.decided_up_to,
        now,
        schedule.missed,
        Holding(frozen.reason if frozen else NO_REASON, schedule.held_due_at),
    )


def _holding(owner: Owner, frozen: FrozenScopes) -> Frozen | None:
    """Returns what holds the owner, or None; a group is held where one of its members is."""
    return frozen.of(pools_of(owner)) if frozen.found else None


def _hold(schedule: Schedule, owner: Owner, frozen: Frozen, holds: tuple[Skip, ...], now: datetime) -> None:
    for hold in holds:
        values = {"result": WindowResult.HELD, "reason": hold.reason, "decided_at": now}
        Window.objects.get_or_create(schedule=schedule, due_at=hold.due_at, defaults=values)
    is_group = isinstance(owner, ScheduledGroup)
    kind, target = (HeldKind.GROUP, "group") if is_group else (HeldKind.SCHEDULE, "setting")
    note_held(frozen, Held(kind, f"{target}:{owner}", len(holds)), now)


def _start(schedule: Schedule, owner: Owner, due_at: datetime, remark: Reason, now: datetime) -> None:
    known = Window.objects.filter(schedule=schedule, due_at=due_at)
    if known.exclude(result=WindowResult.HELD).exists():
        return  # decided before the owner was switched off and on by a clock that is behind
    values = {"result": WindowResult.STARTED, "reason": remark, "decided_at": now}
    try:
        with transaction.atomic():
            window, _is_new = Window.objects.update_or_create(
                schedule=schedule, due_at=due_at, defaults=values
            )
            if isinstance(owner, ScheduledGroup):
                window.group_activation = start_group(owner, None, now)
            else:
                window.activation = start_activation(owner, Trigger.SCHEDULE, None, now, window=window)
            window.save(update_fields=["activation", "group_activation"])
    except Refused as refused:
        skipped = {"result": WindowResult.SKIPPED, "reason": refused.why, "decided_at": now}
        Window.objects.update_or_create(schedule=schedule, due_at=due_at, defaults=skipped)


def _skip(schedule: Schedule, skip: Skip, now: datetime) -> None:
    values = {"result": WindowResult.SKIPPED, "reason": skip.reason, "decided_at": now}
    Window.objects.get_or_create(schedule=schedule, due_at=skip.due_at, defaults=values)


def _owner(schedule: Schedule) -> Owner:
    owner = schedule.setting or schedule.group
    if owner is None:
        raise ValueError(f"schedule {schedule.pk} has no owner")
    return owner


def _locked_owner(schedule: Schedule) -> Owner:
    owner = _owner(schedule)
    if isinstance(owner, ScheduledGroup):
        return ScheduledGroup.objects.select_for_update(no_key=True).get(pk=owner.pk)
    return LaunchSetting.objects.select_for_update(no_key=True).get(pk=owner.pk)


def _stored(schedule: Schedule | None) -> str:
    return f"{schedule}, {schedule.missed}" if schedule else ""


def _note(owner: Owner, old: str, new: str, by: Any, now: datetime) -> None:
    if old == new:
        return
    if isinstance(owner, ScheduledGroup):
        settings = [member.setting for member in owner.members.select_related("setting")]
    else:
        settings = [owner]
    for setting in settings:
        note(setting, "schedule", old[:60], new[:60], now=now, by=by)
