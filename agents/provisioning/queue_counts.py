"""The broker's own counts of a setting's queues: exact at the moment they are asked for (`queue_figures`), or
for pages never older than a moment while it answers, and the last known ones while it does not."""

import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog
from django.utils import timezone

from agents.models import LaunchSetting
from broker.management.queues import figures_of_all as figures_by_queue
from broker.management.queues import find
from broker.port import BrokerError, BrokerUnavailable
from console.broker import management, with_timeout
from contract.names import dead_letter_queue

log = structlog.get_logger(__name__)

FRESH = timedelta(seconds=3)
# Of more settings than these a page asks for all queues at once.
FEW = 3
# What is asked for one by one: the oldest first, the rest is shown as old as it is.
BUDGET_SECONDS = 0.15
# After a failure nobody waits for the broker again for so long.
PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """`waiting` can be delivered now, `delayed` waits for its redelivery, `in_delivery` is at a KMA. The
    consumers of a subscription that is held are at the queue beside it: none, while that is being made."""

    waiting: int
    delayed: int
    in_delivery: int
    consumers: int
    dead: int
    at: datetime


def queue_figures(setting: LaunchSetting, now: datetime) -> QueueFigures:
    """Raises BrokerError: not reachable, or the queues are not there yet."""
    broker = management()
    subscription, dead = f"queue.{setting.key}", f"queue.{dead_letter_queue(setting.key)}"
    names = ("MessageCount", "ScheduledCount", "DeliveringCount", "ConsumerCount")
    total, delayed, in_delivery, consumers = map(int, broker.attributes(subscription, *names))
    if setting.consumed_queue != setting.key:
        consumers = int(broker.attribute(f"queue.{setting.consumed_queue}", "ConsumerCount"))
    return QueueFigures(
        # They are read one after the other: never show less than nothing.
        waiting=max(0, total - delayed - in_delivery),
        delayed=delayed,
        in_delivery=in_delivery,
        consumers=consumers,
        dead=int(broker.attribute(dead, "MessageCount")),
        at=now,
    )


def figures_of_all(settings: Collection[LaunchSetting], now: datetime) -> dict[str, QueueFigures]:
    """Returns, by key, the counts of those whose queues are there. The broker tells of all its queues in a
    few answers, where each setting alone would take five. Raises BrokerError: not reachable."""
    queues = figures_by_queue(management())
    found = {}
    for setting in settings:
        subscription, dead = queues.get(setting.key), queues.get(dead_letter_queue(setting.key))
        consumed = queues.get(setting.consumed_queue)
        if subscription is not None and dead is not None:
            found[setting.key] = QueueFigures(
                waiting=subscription.waiting,
                delayed=subscription.scheduled,
                in_delivery=subscription.delivering,
                consumers=consumed.consumers if consumed is not None else 0,
                dead=dead.messages,
                at=now,
            )
    return found


# It has no such queue: it is being made, or somebody deleted it. Or it gave an error.
MISSING, REFUSED = "missing", "refused"


@dataclass(frozen=True, slots=True)
class Figures:
    """`at` None: never known here. `stale`: the broker did not answer for them now. `problem`: why not, where
    it answers others: MISSING or REFUSED."""

    waiting: int | None = None
    delayed: int | None = None
    in_delivery: int | None = None
    consumers: int | None = None
    dead: int | None = None
    at: datetime | None = None
    stale: bool = False
    problem: str = ""


_lock = threading.Lock()
_known: dict[str, Figures] = {}
_away_until = 0.0
_away_since: datetime | None = None


def figures_of(setting: LaunchSetting) -> Figures:
    return figures_for([setting])[setting.key]


def figures_for(settings: Iterable[LaunchSetting]) -> dict[str, Figures]:
    """Returns them by setting key; asks the broker for what is not fresh. A standalone agent has no queue."""
    wanted, now = list(settings), timezone.now()
    old = [setting for setting in wanted if setting.takes_messages and not _is_fresh(setting, now)]
    if len(old) > FEW and time.monotonic() >= _away_until:
        answered = _ask_for_all(old, now)
        old = [] if answered else old
    deadline = time.monotonic() + BUDGET_SECONDS
    for setting in sorted(old, key=_age_first):
        if time.monotonic() >= deadline or time.monotonic() < _away_until:
            break
        _ask(setting, now)
    return {setting.key: _known_of(setting.key) for setting in wanted}


def asked_now(setting: LaunchSetting) -> Figures:
    """Returns them as `figures_of` does, and never of a moment before this question; stale where the broker
    does not answer it."""
    if setting.takes_messages and time.monotonic() >= _away_until:
        _ask(setting, timezone.now())
    return _known_of(setting.key)


def message_count(queue: str) -> int | None:
    """The broker's exact count of a queue that belongs to no setting; None when it does not tell."""
    if time.monotonic() < _away_until:
        return None
    try:
        return int(with_timeout(lambda: management().attribute(f"queue.{queue}", "MessageCount")))
    except BrokerUnavailable:
        note_away(timezone.now())
    except BrokerError as error:
        log.info("queue count unavailable", queue=queue, reason=str(error))
    return None


def broker_away_since() -> datetime | None:
    """Returns when this process first found that the broker does not answer; None while it does."""
    return _away_since


def forget() -> None:
    """Resets the state for tests, as in a process that has just started."""
    global _away_until, _away_since
    with _lock:
        _known.clear()
        _away_until, _away_since = 0.0, None


def _is_fresh(setting: LaunchSetting, now: datetime) -> bool:
    known = _known.get(setting.key)
    return known is not None and not known.stale and known.at is not None and now - known.at <= FRESH


def _age_first(setting: LaunchSetting) -> float:
    known = _known.get(setting.key)
    return known.at.timestamp() if known and known.at else 0.0


def _known_of(key: str) -> Figures:
    known = _known.get(key, Figures())
    if time.monotonic() < _away_until:
        return replace(known, stale=True, problem="")
    return known


def note_away(now: datetime) -> None:
    """Whoever found that it does not answer spares the next questions their wait."""
    global _away_until, _away_since
    with _lock:
        _away_until, _away_since = time.monotonic() + PAUSE_SECONDS, _away_since or now


def _ask_for_all(settings: list[LaunchSetting], now: datetime) -> bool:
    """Returns whether the broker told which queues there are: then nobody has to be asked for alone."""
    global _away_since
    try:
        found = with_timeout(lambda: figures_of_all(settings, now))
    except BrokerUnavailable as error:
        note_away(now)
        log.info("broker did not answer in time for a page", reason=str(error))
    except BrokerError as error:
        log.info("broker refused to list its queues", reason=str(error))
    else:
        with _lock:
            _known.update({key: _fresh(figures) for key, figures in found.items()})
            _known.update({each.key: _NOWHERE for each in settings if each.key not in found})
            _away_since = None
        return True
    return False


def _ask(setting: LaunchSetting, now: datetime) -> None:
    global _away_since
    try:
        found = with_timeout(lambda: queue_figures(setting, now))
    except BrokerUnavailable as error:
        note_away(now)
        log.info("broker did not answer in time for a page", reason=str(error))
    except BrokerError as error:
        log.info("counts of a setting unavailable", setting=setting.key, reason=str(error))
        missing = _is_missing(setting)
        with _lock:
            known = _known.get(setting.key, Figures())
            _known[setting.key] = _NOWHERE if missing else replace(known, stale=True, problem=REFUSED)
            _away_since = None
    else:
        with _lock:
            _known[setting.key], _away_since = _fresh(found), None


def _is_missing(setting: LaunchSetting) -> bool:
    """Returns whether the broker says that a queue of it is not there."""
    queues = (setting.key, dead_letter_queue(setting.key))
    try:
        return with_timeout(lambda: any(find(management(), "listQueues", each) is None for each in queues))
    except BrokerError:
        return False


_NOWHERE = Figures(stale=True, problem=MISSING)


def _fresh(found: QueueFigures) -> Figures:
    return Figures(
        waiting=found.waiting,
        delayed=found.delayed,
        in_delivery=found.in_delivery,
        consumers=found.consumers,
        dead=found.dead,
        at=found.at,
    )
