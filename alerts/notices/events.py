"""Events that are neither trips nor alerts: a replay that ended, and the first dead-lettered message of a
setting."""

from collections.abc import Mapping
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Q

from agents.models import LaunchSetting
from alerts.models import Event, EventKind
from alerts.notices.recipients import create_event
from contract.names import DEAD_LETTER_PREFIX
from dlq.hooks import replay_ended
from dlq.models import LetterQueue, ReplayJob

MOST = 2000


@replay_ended.implement
def event_of_replay(job: ReplayJob, state: str, now: datetime) -> None:
    """Part of the transaction that ends the job."""
    facts = {
        "replay": str(job.pk),
        "action": job.action,
        "state": state,
        "total": job.total,
        "by": job.by.get_username() if job.by else None,
    }
    create_event(EventKind.REPLAY_ENDED, job.setting_key, job.setting, facts, now)


def watch_dead_letters(now: datetime) -> int:
    """Returns how many queues were found with dead letters that had none before. An event stays open until
    the broker counts none in the queue: what it does not count now changes nothing. A queue that is filled
    and emptied between two looks is not seen; then there is nothing to be done about it either."""
    rows = LetterQueue.objects.filter(broker_count__isnull=False).values_list("queue", "broker_count")
    counts = {queue: count or 0 for queue, count in rows}
    known = {
        event.setting_key: event for event in Event.objects.filter(kind=EventKind.DEAD_LETTERS, over_at=None)
    }
    _end_those_of_empty_queues(known, counts, now)
    keys = [
        queue.removeprefix(DEAD_LETTER_PREFIX)
        for queue, count in counts.items()
        if count and queue.startswith(DEAD_LETTER_PREFIX)
    ]
    new = LaunchSetting.objects.filter(key__in=[key for key in keys if key not in known][:MOST])
    return sum(_first_of(setting, counts[DEAD_LETTER_PREFIX + setting.key], now) for setting in new)


def _end_those_of_empty_queues(known: Mapping[str, Event], counts: Mapping[str, int], now: datetime) -> None:
    empty = [key for key in known if counts.get(DEAD_LETTER_PREFIX + key) == 0]
    rows = Event.objects.filter(kind=EventKind.DEAD_LETTERS, over_at=None)
    rows.filter(Q(setting_key__in=empty) | Q(setting=None)).update(over_at=now)


def _first_of(setting: LaunchSetting, count: int, now: datetime) -> bool:
    """Of two that look at once one writes it."""
    try:
        with transaction.atomic():
            create_event(EventKind.DEAD_LETTERS, setting.key, setting, {"count": count}, now)
    except IntegrityError:
        return False
    return True
