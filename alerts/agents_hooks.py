"""Describes what this app does where the one below asks: of a trip, of a setting that is removed, while beat
is away."""

import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, InterfaceError, connection

from agents import hooks
from agents.hooks import AT_ONCE, Referrer
from agents.models import BreakerTrip, LaunchSetting
from agents.reconciler import beat_is_away
from alerts import deadman
from alerts.evaluation import evaluate_all
from alerts.models import EventKind, Notice, NoticeTarget, is_secret
from alerts.notices.delivery import send_due
from alerts.notices.events import watch_dead_letters
from alerts.notices.recipients import create_end_notices, create_event, create_notices
from console.processes import once_per
from console.reasons import Reason
from console.ui.text import masked

log = structlog.get_logger(__name__)

# As often as beat asks for it.
EVERY = timedelta(seconds=10)

# Held by the look under way in this process: an address that does not answer may hold it for long.
_looking = threading.Lock()
# By the monotonic clock: before, this process asks no row whether beat is away.
_next_question = 0.0


@hooks.breaker_tripped.implement
def notices_of_trip(trip: BreakerTrip, now: datetime) -> Sequence[dict[str, str]]:
    """What is kept with the trip is shown to who may edit the setting: no address that is a secret."""
    made = create_notices(trip, now)
    shown = [masked(each.address) if is_secret(each.channel, each.address) else each.address for each in made]
    return [{"what": "notice", "name": address} for address in shown]


@hooks.trip_ended.implement
def notices_of_trip_end(trip: BreakerTrip, now: datetime) -> None:
    create_end_notices(trip, now)


@hooks.setting_switched.implement
def event_of_switch(setting: LaunchSetting, enabled: bool, reason: Reason, by: str, now: datetime) -> None:
    kind = EventKind.ENABLED if enabled else EventKind.DISABLED
    facts = {"reason": reason.as_json() or None, "by": by or None}
    create_event(kind, setting.key, setting, facts, now)


@hooks.referrers.implement
def targets_go_too() -> Referrer:
    return Referrer(NoticeTarget, _keep_notices, lambda runs: iter(()), goes_with_the_row=True)


def _keep_notices(setting: LaunchSetting) -> Iterator[int]:
    """They stay, with the address; the targets go with the row."""
    rows = Notice.objects.filter(target__setting=setting).order_by()
    while some := list(rows.values_list("pk", flat=True)[:AT_ONCE]):
        yield Notice.objects.filter(pk__in=some).update(target=None)


@hooks.stand_in.implement
def stand_in(now: datetime) -> threading.Thread | None:
    """The look that was begun, in a thread of its own: notices may take long, and who calls has other things
    to do. Beside a worker that comes back it does no harm: one process looks at a time, each notice is
    claimed."""
    global _next_question
    if time.monotonic() < _next_question:
        return None
    _next_question = time.monotonic() + EVERY.total_seconds() / 2
    try:
        if not beat_is_away(now) or not once_per("alerts", EVERY, now):
            return None
    except (DatabaseError, InterfaceError) as error:
        log.warning("fallback evaluation of alerts postponed", reason=str(error))
        return None
    thread = threading.Thread(target=_look, args=(now,), name="alerts", daemon=True)
    thread.start()
    return thread


def _look(now: datetime) -> None:
    if not _looking.acquire(blocking=False):
        return
    try:
        evaluate_all(now)
        watch_dead_letters(now)
        send_due(now)
        deadman.ping(now)
    except Exception:
        # Nobody waits for this thread: the next look tries again.
        log.exception("alerts not evaluated")
    finally:
        connection.close()
        _looking.release()
