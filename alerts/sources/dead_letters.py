"""Describes what is watched of dead letters: queues where more die than before, letters that nobody looks
after, the feed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.models import LaunchSetting
from alerts.kinds import AlertKind, Observation
from alerts.models import Severity
from alerts.rules import Thresholds
from console.processes import seconds_since
from console.ui.amounts import duration, number
from contract.names import DEAD_LETTER_PREFIX, dead_letter_queue
from dlq.dead_letters.queries.counts import CountedRange, count_ranges, ends
from dlq.index.queries import FEED_QUEUE, feed_lag
from dlq.models import DeadLetter, LetterQueue
from dlq.models.dead_letter import BIN_QUEUE

HOUR = timedelta(hours=1)
# What an hour is compared with at least: from nothing to three is no growth that wakes anybody.
LEAST = 20
# The instant of a walk is that of the last letters that it brought.
MOMENT = timedelta(microseconds=1)
# Deaths of an hour that are counted of one queue.
MOST_COUNTED = 10_000
MOST_QUEUES = 2000


def growing_queues(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Deaths of the last hour against those of the hour before."""
    rows = _holding()
    queues = [row.queue for row in rows]
    last = _died_lately(rows, now)
    before = count_ranges(
        [CountedRange(queue, now - 2 * HOUR, now - HOUR, ever=True) for queue in queues], MOST_COUNTED
    )
    whose = _settings_of(queues)
    found = []
    for queue, earlier in zip(queues, before, strict=True):
        dead = last[queue]
        facts = {"queue": queue, "dead": dead, "before": earlier, "capped": dead >= MOST_COUNTED}
        found.append(_of_queue(queue, round(dead / max(earlier, LEAST), 2), facts, whose))
    yield from sorted(found, key=lambda seen: -(seen.value or 0.0))


def _died_lately(rows: Sequence[LetterQueue], now: datetime) -> Mapping[str, int]:
    """Returns deaths of the last hour by queue. Of a queue that is followed for less than that, not what its
    first walk brought: those letters seem to have died when they were seen, unless their failure says so."""
    young = {row.queue for row in rows if row.added_at > now - HOUR}
    ranges = [part for row in rows for part in _ranges(row, now)]
    found: Counter[str] = Counter()
    for part, count in zip(ranges, count_ranges(ranges, MOST_COUNTED), strict=True):
        found[part.queue] = min(MOST_COUNTED, found[part.queue] + count)
    failed = DeadLetter.objects.filter(queue__in=young, seen_at__gte=now - HOUR, protocol_at__gte=now - HOUR)
    proved = Counter(failed.order_by().values_list("queue", flat=True)[:MOST_COUNTED] if young else ())
    return {row.queue: max(found[row.queue], proved[row.queue]) for row in rows}


def _ranges(row: LetterQueue, now: datetime) -> Iterator[CountedRange]:
    since = now - HOUR
    if row.added_at <= since:
        yield CountedRange(row.queue, since, ever=True)
        return
    # Before the queue was found only the feed could bring letters, and so it does after the walk.
    yield CountedRange(row.queue, since, row.added_at, ever=True)
    if row.walked_at is not None and row.walk_started_at is None:
        yield CountedRange(row.queue, max(since, row.walked_at + MOMENT), ever=True)


def many_in_queues(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """What the broker counts in the queue of each setting."""
    rows = _holding()
    whose = _settings_of([row.queue for row in rows])
    for row in rows:
        if row.queue in whose:
            yield _of_queue(row.queue, float(row.broker_count or 0), {"queue": row.queue}, whose)


def old_queues(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """The oldest letter of each queue that holds one."""
    queues = [row.queue for row in _holding()]
    oldest = {queue: first for queue, (first, _newest) in ends(queues).items()}
    rows = DeadLetter.objects.filter(pk__in=oldest.values(), seen_at__isnull=False).order_by()
    since = dict(rows.values_list("pk", "seen_at"))
    whose = _settings_of(queues)
    for queue, first in sorted(oldest.items(), key=lambda pair: since.get(pair[1], now)):
        if first in since:
            seconds = max(0.0, (now - since[first]).total_seconds())
            yield _of_queue(queue, seconds, {"queue": queue, "since": since[first].isoformat()}, whose)


def behind(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Unknown while nobody counts: that the feed stands still is another cause."""
    lag = feed_lag(now)
    yield Observation(
        "feed", None if lag is None else float(lag), facts={} if lag is None else {"waiting": lag}
    )


def standing_still(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Nothing of a feed that never was: the installation is being made."""
    seconds = seconds_since("feed", now)
    if seconds is not None:
        yield Observation("feed", max(0.0, seconds), facts={"process": "feed"})


def _holding() -> Sequence[LetterQueue]:
    """Queues with letters, as the process of the feed counted them last; not the bin, whose letters
    expire."""
    rows = LetterQueue.objects.filter(broker_count__gt=0).exclude(queue__in=(FEED_QUEUE, BIN_QUEUE))
    return list(rows.order_by("-broker_count")[:MOST_QUEUES])


def _settings_of(queues: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Setting and pool by queue, of the queues that are a setting's."""
    wanted = set(queues)
    rows = LaunchSetting.objects.values_list("key", "pk", "pool_id")
    return {queue: (pk, pool) for key, pk, pool in rows if (queue := dead_letter_queue(key)) in wanted}


def _of_queue(
    queue: str, value: float, facts: Mapping[str, Any], whose: Mapping[str, tuple[int, int]]
) -> Observation:
    setting, pool = whose.get(queue, (None, None))
    pools = frozenset() if pool is None else frozenset([pool])
    return Observation(queue, value, setting=setting, pools=pools, facts=facts)


def _queue_url(facts: Mapping[str, Any]) -> str:
    queue = str(facts["queue"])
    if not queue.startswith(DEAD_LETTER_PREFIX):
        return reverse("admin:dead_letters")
    return reverse("admin:dead_letters_of", args=[queue.removeprefix(DEAD_LETTER_PREFIX)])


def _grew(facts: Mapping[str, Any], value: float) -> str:
    count = int(facts["dead"])
    text = ngettext(
        "%(n)s%(more)s message dead-lettered to %(queue)s in the last hour, %(before)s in the hour before.",
        "%(n)s%(more)s messages dead-lettered to %(queue)s in the last hour, %(before)s in the hour before.",
        count,
    )
    more = "+" if facts.get("capped") else ""
    return text % {
        "n": number(count),
        "more": more,
        "queue": facts["queue"],
        "before": number(facts["before"]),
    }


def _lies(facts: Mapping[str, Any], value: float) -> str:
    text = _("The oldest message in %(queue)s has been there for %(time)s.")
    return text % {"queue": facts["queue"], "time": duration(round(value))}


def _waits(facts: Mapping[str, Any], value: float) -> str:
    count = round(value)
    text = ngettext("%(n)s message is not indexed yet.", "%(n)s messages are not indexed yet.", count)
    return text % {"n": number(count)}


def _many(facts: Mapping[str, Any], value: float) -> str:
    count = round(value)
    text = ngettext("%(n)s message in %(queue)s.", "%(n)s messages in %(queue)s.", count)
    return text % {"n": number(count), "queue": facts["queue"]}


def _times(value: float) -> str:
    return f"×{number(value, 1)}"


GROWING = AlertKind(
    name="dead_letters_growing",
    label=gettext_lazy("Dead letters increasing"),
    severity=Severity.BAD,
    limits=Thresholds(3.0, 1.5, open_after=timedelta(seconds=20), close_after=timedelta(minutes=10)),
    unit=gettext_lazy(
        "ratio of messages dead-lettered in the last hour to those in the previous hour (if "
        "the previous count is below 20, 20 is used)"
    ),
    says=_grew,
    measure=_times,
    what_to_do=gettext_lazy(
        "Find the top error in the dead-letter groups and fix it. Then replay the messages."
    ),
    url=_queue_url,
    observe=growing_queues,
)
MANY = AlertKind(
    name="dead_letters_many",
    label=gettext_lazy("Many dead letters"),
    severity=Severity.WARNING,
    limits=Thresholds(1000.0, 900.0, open_after=timedelta(seconds=20), close_after=timedelta(seconds=20)),
    unit=gettext_lazy("messages in the dead-letter queue of one setting"),
    says=_many,
    measure=number,
    what_to_do=gettext_lazy(
        "Find the top error in the dead-letter groups and fix it. Then replay the messages, "
        "or discard those no longer needed. To allow more messages, raise the threshold in "
        "the alert rule."
    ),
    url=_queue_url,
    observe=many_in_queues,
)
OLD = AlertKind(
    name="dead_letters_old",
    label=gettext_lazy("Old dead letters"),
    severity=Severity.WARNING,
    limits=Thresholds(
        86_400.0, 86_400.0, open_after=timedelta(seconds=60), close_after=timedelta(seconds=60)
    ),
    unit=gettext_lazy("seconds since the oldest message was dead-lettered"),
    says=_lies,
    measure=lambda value: duration(round(value)),
    what_to_do=gettext_lazy("Replay the messages, or discard those no longer needed."),
    url=_queue_url,
    observe=old_queues,
)
BEHIND = AlertKind(
    name="feed_behind",
    label=gettext_lazy("Indexer lagging"),
    severity=Severity.WARNING,
    limits=Thresholds(1000.0, 200.0, open_after=timedelta(minutes=2), close_after=timedelta(minutes=1)),
    unit=gettext_lazy("messages not indexed yet"),
    says=_waits,
    measure=number,
    what_to_do=gettext_lazy(
        "The indexer catches up automatically while it is running. The messages are safe on "
        "the broker. If the lag grows, check ./ma logs feed and the database."
    ),
    url=lambda facts: reverse("admin:health"),
    observe=behind,
)
STANDS_STILL = AlertKind(
    name="feed_silent",
    label=gettext_lazy("Indexer stalled"),
    severity=Severity.BAD,
    limits=Thresholds(60.0, 30.0, open_after=timedelta(seconds=30), close_after=timedelta(seconds=60)),
    unit=gettext_lazy("seconds since the last heartbeat"),
    says=lambda facts, value: (
        _("No heartbeat from the dead-letter indexer for %(time)s.") % {"time": duration(round(value))}
    ),
    measure=lambda value: duration(round(value)),
    what_to_do=gettext_lazy(
        "Messages are safe on the broker, but new messages do not appear in the lists. Start "
        "the indexer. To find the cause, run ./ma status and ./ma logs feed."
    ),
    url=lambda facts: reverse("admin:health"),
    observe=standing_still,
)

KINDS = (GROWING, MANY, OLD, BEHIND, STANDS_STILL)
