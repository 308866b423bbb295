"""One row per dead-letter queue: what the broker counts, what the index knows, since when and of what; and
who works on it."""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import BreakerTrip, LaunchSetting, ProvisionState
from agents.provisioning.queue_counts import MISSING, Figures, broker_away_since, figures_for, message_count
from console.lists.keyset import COUNTED
from console.ui.amounts import count_or_more, number
from console.ui.page import StateLabel, link
from contract.names import BIN, UNKNOWN, dead_letter_queue
from dlq.dead_letters.queries.counts import CountedRange, count_ranges, ends, kinds
from dlq.index.queries import QueueState, states
from dlq.models import DeadLetter, ReplayJob, Taking
from dlq.models.annotation import active_faults, open_takings
from dlq.models.replay import UNFINISHED_JOBS

# Of more queues than FEW each is counted less far.
FEW, COUNTED_OF_MANY = 20, 1_000
# What "most of them" is judged by: the latest dead letters, not the whole queue.
LATEST = 500
# A later report may tell of what a dead letter died, so what was judged holds for so long, in seconds.
HOLDS = 30.0
MOST_KEPT = 5000


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """`count` goes up to `bound` + 1. `top` is what most of the latest died of, `top_share` in per cent of
    them."""

    count: int = 0
    bound: int = COUNTED
    since: datetime | None = None
    latest: datetime | None = None
    top: str = ""
    top_fingerprint: str = ""
    top_share: int = 0


@dataclass(frozen=True, slots=True)
class _Judged:
    """What was judged of a queue with this newest dead letter and so many."""

    of: tuple[int, int]
    at: float
    top: str
    fingerprint: str
    share: int


_lock = threading.Lock()
_judged: dict[str, _Judged] = {}


def facts_of_queues(queues: Sequence[str]) -> dict[str, QueueFacts]:
    """Returns them by queue; some statements for all of them."""
    edges = ends(queues)
    holding = list(edges)
    bound = COUNTED if len(holding) <= FEW else COUNTED_OF_MANY
    counts = dict(
        zip(holding, count_ranges([CountedRange(queue) for queue in holding], bound + 1), strict=True)
    )
    numbers = {number for edge in edges.values() for number in edge}
    seen = dict(DeadLetter.objects.filter(pk__in=numbers).order_by().values_list("pk", "seen_at"))
    tops = _tops({queue: (newest, counts[queue]) for queue, (_oldest, newest) in edges.items()})
    found = {queue: QueueFacts() for queue in queues}
    for queue, (oldest, newest) in edges.items():
        top, since, latest = tops[queue], seen.get(oldest), seen.get(newest)
        found[queue] = QueueFacts(counts[queue], bound, since, latest, top.top, top.fingerprint, top.share)
    return found


def _tops(of: dict[str, tuple[int, int]]) -> dict[str, _Judged]:
    now = time.monotonic()
    with _lock:
        known = {queue: _judged[queue] for queue in of if queue in _judged}
    known = {queue: each for queue, each in known.items() if each.of == of[queue] and now - each.at < HOLDS}
    missing = [queue for queue in of if queue not in known]
    asked = kinds(missing, LATEST) if missing else {}
    for queue in missing:
        kind, fingerprint, most, judged = asked.get(queue, ("", "", 0, 0))
        known[queue] = _Judged(of[queue], now, kind, fingerprint, round(100 * most / judged) if judged else 0)
    with _lock:
        if len(_judged) > MOST_KEPT:
            _judged.clear()
        _judged.update({queue: known[queue] for queue in missing})
    return known


def forget_facts() -> None:
    """Resets the state for tests, as in a process that has just started."""
    with _lock:
        _judged.clear()


# -- dead-lettered messages of the last hours, for a sparkline -----------------------------------------------
# Bounded reads of one index. An hour that is over does not change any more: it is counted once per process
# and kept.


HOURS = 24
HOUR = timedelta(hours=1)
# Of one hour no more are counted: the line has its full height there.
MOST = 2000
# Closed hours of so many queues are kept; then all are forgotten.
MOST_HOURS_KEPT = 20_000

_kept: dict[tuple[str, datetime], int] = {}


def deaths_by_hour(queues: Sequence[str], now: datetime) -> dict[str, list[int]]:
    """Returns by queue the last HOURS hours of the clock, oldest first, the one at hand last; each at most
    MOST."""
    this = now.replace(minute=0, second=0, microsecond=0)
    hours = [this - HOUR * back for back in range(HOURS - 1, -1, -1)]
    every = [(queue, hour) for queue in queues for hour in hours]
    with _lock:
        counts = {each: _kept[each] for each in every if each[1] != this and each in _kept}
    missing = [each for each in every if each not in counts]
    asked = [CountedRange(queue, hour, hour + HOUR, ever=True) for queue, hour in missing]
    counts |= dict(zip(missing, count_ranges(asked, MOST), strict=True))
    with _lock:
        if len(_kept) > MOST_HOURS_KEPT:
            _kept.clear()
        _kept.update({each: counts[each] for each in missing if each[1] != this})
    return {queue: [counts[queue, hour] for hour in hours] for queue in queues}


def forget_hours() -> None:
    """Resets the state for tests, as in a process that has just started."""
    with _lock:
        _kept.clear()


# -- rows of dead-letter queues; the overview adds assignees and the last day --------------------------------


NEW = timedelta(hours=1)
# Jobs that a row names; the list of replays has them all.
MOST_JOBS = 500

ON = StateLabel(gettext_lazy("enabled"), "ok", "ok")
OFF = StateLabel(gettext_lazy("disabled"), "off", "off")
TRIPPED = StateLabel(gettext_lazy("disabled by breaker"), "bad", "off")


@dataclass(frozen=True, slots=True)
class More:
    """Holds what only the overview tells. `line`: how many in each of the last hours; `new` in the last one,
    as people read it; empty: none. `taken` are the open takings of the setting, `muted` counts its known
    faults. `trip` is its open trip. `kept`: what the process of the feed counted last. `spark`: the line as
    its page draws it."""

    state: StateLabel
    trip: int | None
    new: str
    line: Sequence[int]
    taken: Sequence[Taking]
    muted: int
    kept: QueueState | None
    spark: str = ""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """`exact` is the broker's count (None: it does not tell)."""

    key: str
    setting: LaunchSetting | None
    queue: str
    figures: Figures
    exact: int | None
    facts: QueueFacts
    replays: Sequence[ReplayJob]
    more: More | None = None

    @property
    def url(self) -> str:
        return link("dead_letters_of", self.key)

    @property
    def since(self) -> datetime | None:
        return self.facts.since

    @property
    def top(self) -> str:
        return self.facts.top

    @property
    def top_share(self) -> int:
        return self.facts.top_share

    @property
    def empty(self) -> bool:
        """Says so; unknown for a queue that the broker does not count."""
        return self.exact == 0 and self.since is None

    @property
    def idle(self) -> bool:
        """It is empty for certain, and no replay takes from it."""
        return self.empty and not self.replays

    @property
    def worst_first(self) -> tuple[bool, int, float, str]:
        """Returns its place among others: most first, of equals the one that grew last."""
        latest = self.facts.latest.timestamp() if self.facts.latest else 0.0
        return self.empty, -self.size, -latest, self.key

    @property
    def size(self) -> int:
        return self.indexed_count if self.exact is None else self.exact

    @property
    def uncounted(self) -> str:
        """Returns why the broker does not count it, for people; empty: it does."""
        if self.exact is not None:
            return ""
        if broker_away_since():
            return _("the broker is not responding")
        if self.setting is not None and self.setting.provision_state == ProvisionState.PENDING:
            return _("the queue is being created")
        if self.figures.problem == MISSING:
            return _("the broker has no such queue")
        return _("the broker currently reports no data for this queue")

    @property
    def indexed_count(self) -> int:
        return max(min(self.facts.count, self.facts.bound), self._kept_count or 0)

    @property
    def indexed(self) -> str:
        """Returns what our rows know, as people read it: what the sweep counted where the page does not count
        so far."""
        if self._kept_count is not None:
            return number(self._kept_count)
        return count_or_more(self.facts.count, self.facts.bound)

    @property
    def _kept_count(self) -> int | None:
        kept = self.more.kept if self.more and self.facts.count > self.facts.bound else None
        return kept.indexed if kept else None

    @property
    def differs(self) -> str:
        """Returns what the index holds where the broker counts something else; empty: the same, or nobody
        knows."""
        if self.exact is None:
            return ""
        if self.facts.count <= self.facts.bound:
            return self.indexed if self.exact != self.facts.count else ""
        kept = self.more.kept if self.more else None
        return number(kept.indexed) if kept and kept.indexed is not None and kept.behind else ""

    @property
    def walk(self) -> QueueState | None:
        """Returns how far a walk of the queue is that goes on now."""
        return self.more.kept if self.more and self.more.kept and self.more.kept.walking else None


def _words(count: int) -> str:
    return count_or_more(count, COUNTED) if count else ""


def queue_rows(every: list[LaunchSetting]) -> list[QueueRow]:
    """Returns rows of settings that take messages: the others have no dead-letter queue. As many queries for
    many as for few."""
    settings = [setting for setting in every if setting.takes_messages]
    figures = figures_for(settings)
    facts = facts_of_queues([dead_letter_queue(setting.key) for setting in settings])
    running: dict[str, list[ReplayJob]] = {}
    for job in ReplayJob.objects.filter(state__in=UNFINISHED_JOBS).order_by("-created_at")[:MOST_JOBS]:
        running.setdefault(job.setting_key, []).append(job)
    rows = []
    for setting in settings:
        queue, known = dead_letter_queue(setting.key), figures[setting.key]
        rows.append(
            QueueRow(
                setting.key, setting, queue, known, known.dead, facts[queue], running.get(setting.key, [])
            )
        )
    return rows


def setting_row(setting: LaunchSetting, figures: Figures) -> QueueRow:
    queue = dead_letter_queue(setting.key)
    return QueueRow(setting.key, setting, queue, figures, figures.dead, facts_of_queues([queue])[queue], [])


def unknown_row() -> QueueRow:
    return _of_nobody(UNKNOWN)


def trash_row() -> QueueRow:
    return _of_nobody(BIN)


def _of_nobody(key: str) -> QueueRow:
    queue = dead_letter_queue(key)
    return QueueRow(key, None, queue, Figures(), message_count(queue), facts_of_queues([queue])[queue], [])


def with_facts(rows: Sequence[QueueRow], now: datetime) -> list[QueueRow]:
    """Adds what only the overview shows; as many queries for many as for few."""
    keys = [row.key for row in rows]
    tripped = dict(BreakerTrip.objects.filter(ended_at=None).values_list("setting__key", "pk"))
    taken: dict[str, list[Taking]] = {}
    for taking in open_takings().filter(setting_key__in=keys):
        taken.setdefault(taking.setting_key, []).append(taking)
    muted = Counter(active_faults(now).filter(setting_key__in=keys).values_list("setting_key", flat=True))
    kept = states([row.queue for row in rows])
    holding = [row.queue for row in rows if row.since is not None]
    new = dict(
        zip(
            holding,
            count_ranges([CountedRange(queue, now - NEW) for queue in holding], COUNTED + 1),
            strict=True,
        )
    )
    lines = deaths_by_hour(holding, now)
    return [
        replace(
            row,
            more=More(
                state=_shown(row.setting, tripped),
                trip=tripped.get(row.key),
                new=_words(new.get(row.queue, 0)),
                line=lines.get(row.queue, ()),
                taken=taken.get(row.key, []),
                muted=muted[row.key],
                kept=kept.get(row.queue),
            ),
        )
        for row in rows
    ]


def _shown(setting: LaunchSetting | None, tripped: Mapping[str, int]) -> StateLabel:
    if setting is None or setting.enabled:
        return ON
    return TRIPPED if setting.key in tripped else OFF
