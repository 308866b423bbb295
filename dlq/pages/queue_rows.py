"""One row per dead-letter queue: counts, since when, of what; and for the overview who works on it and the last day."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, QuerySet, Value
from django.db.models.functions import Concat
from django.utils.translation import gettext_lazy as _

from agents.models import BreakerTrip, LaunchSetting
from agents.pages.amounts import number
from agents.pages.consoles import link
from agents.pages.figures import Figures, figures_for, message_count
from agents.pages.lists import COUNTED, counted
from agents.pages.shown import Shown
from contract.properties import UNKNOWN, dead_letter_queue
from dlq import remarks
from dlq.models import DeadLetter, LetterState, ReplayJob, Taking
from dlq.models.replay import UNFINISHED_JOBS
from dlq.pages.hours import deaths_by_hour
from dlq.pages.spark import Spark, spark
from dlq.queue_state import QueueState, states

# What "most of them" is judged by: the latest letters, not the whole queue.
LATEST = 1000
NEW = timedelta(hours=1)

ON = Shown(_("on"), "ok", "ok")
OFF = Shown(_("off"), "off", "off")
TRIPPED = Shown(_("off by breaker"), "bad", "off")


@dataclass(frozen=True, slots=True)
class More:
    """What only the overview tells. `new` in the last hour, as people read it; empty: none. `taken` are the open
    takings of the setting, `muted` counts its known faults. `kept`: what the process of the feed counted last."""

    state: Shown
    new: str
    spark: Spark | None
    taken: Sequence[Taking]
    muted: int
    kept: QueueState | None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """`exact` is the broker's count (None: it does not tell), `indexed` what our rows know, up to COUNTED."""

    key: str
    setting: LaunchSetting | None
    queue: str
    figures: Figures
    exact: int | None
    indexed: str
    indexed_count: int
    differs: bool
    since: datetime | None
    latest: datetime | None
    top: str
    top_share: int
    top_fingerprint: str
    replays: list[ReplayJob]
    more: More | None = None

    @property
    def url(self) -> str:
        return link("dead_letters_of", self.key)

    @property
    def empty(self) -> bool:
        return self.exact in (0, None) and self.since is None

    @property
    def catching_up(self) -> bool:
        return self.differs or bool(self.more and self.more.kept and self.more.kept.walking)


def queue_rows(every: list[LaunchSetting]) -> list[QueueRow]:
    """Of those that take messages: the others have no dead-letter queue."""
    settings = [setting for setting in every if setting.takes_messages]
    figures, holding = figures_for(settings), _holding(settings)
    running: dict[str, list[ReplayJob]] = {}
    for job in ReplayJob.objects.filter(state__in=UNFINISHED_JOBS):
        running.setdefault(job.setting_key, []).append(job)
    return [
        queue_row(
            setting.key,
            setting,
            figures[setting.key],
            figures[setting.key].dead,
            running.get(setting.key, []),
            empty=setting.key not in holding,
        )
        for setting in settings
    ]


def _holding(settings: list[LaunchSetting]) -> set[str]:
    """Keys of those with a dead letter: one question for all of them, as most have none."""
    queue = Concat(Value(dead_letter_queue("")), OuterRef("key"))
    dead = DeadLetter.objects.filter(queue=queue, state=LetterState.DEAD)
    wanted = LaunchSetting.objects.filter(pk__in=[setting.pk for setting in settings])
    return set(wanted.filter(Exists(dead)).values_list("key", flat=True))


def unknown_row() -> QueueRow:
    return queue_row(UNKNOWN, None, Figures(), message_count(dead_letter_queue(UNKNOWN)), [])


def queue_row(
    key: str,
    setting: LaunchSetting | None,
    figures: Figures,
    exact: int | None,
    replays: list[ReplayJob],
    *,
    empty: bool = False,
) -> QueueRow:
    """`empty`: our rows know of no dead letter there, so nothing is asked."""
    queue = dead_letter_queue(key)
    dead = DeadLetter.objects.none() if empty else DeadLetter.objects.filter(queue=queue, state=LetterState.DEAD)
    known = 0 if empty else dead.order_by()[: COUNTED + 1].count()
    kinds = _latest(dead) if known else []
    ranked = Counter((kind, fingerprint) for kind, fingerprint, _at in kinds).most_common(1)
    (top, fingerprint), most = ranked[0] if ranked else (("", ""), 0)
    return QueueRow(
        key=key,
        setting=setting,
        queue=queue,
        figures=figures,
        exact=exact,
        indexed=f"{number(COUNTED)}+" if known > COUNTED else number(known),
        indexed_count=known,
        differs=exact is not None and known <= COUNTED and exact != known,
        since=dead.order_by("seen_at").values_list("seen_at", flat=True).first() if known else None,
        latest=kinds[0][2] if kinds else None,
        top=top,
        top_share=round(100 * most / len(kinds)) if kinds else 0,
        top_fingerprint=fingerprint,
        replays=replays,
    )


def _latest(dead: QuerySet[DeadLetter]) -> list[tuple[str, str, datetime]]:
    return list(dead.order_by("-pk").values_list("exception_type", "fingerprint", "seen_at")[:LATEST])


def told_more(rows: Sequence[QueueRow], now: datetime) -> list[QueueRow]:
    """With what only the overview tells: four queries, and two for each queue that has letters."""
    keys = [row.key for row in rows]
    tripped = set(BreakerTrip.objects.filter(ended_at=None).values_list("setting__key", flat=True))
    taken: dict[str, list[Taking]] = {}
    for taking in remarks.open_takings().filter(setting_key__in=keys):
        taken.setdefault(taking.setting_key, []).append(taking)
    muted = Counter(remarks.active_faults(now).filter(setting_key__in=keys).values_list("setting_key", flat=True))
    kept = states([row.queue for row in rows])
    return [
        replace(
            row,
            more=More(
                state=_shown(row.setting, tripped),
                new="" if row.since is None else _new(row.queue, now),
                spark=None if row.since is None else spark(deaths_by_hour(row.queue, now)),
                taken=taken.get(row.key, []),
                muted=muted[row.key],
                kept=kept.get(row.queue),
            ),
        )
        for row in rows
    ]


def _shown(setting: LaunchSetting | None, tripped: set[str]) -> Shown:
    if setting is None or setting.enabled:
        return ON
    return TRIPPED if setting.key in tripped else OFF


def _new(queue: str, now: datetime) -> str:
    new = counted(DeadLetter.objects.filter(queue=queue, state=LetterState.DEAD, seen_at__gte=now - NEW))
    return "" if new == "0" else new
