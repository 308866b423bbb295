"""Dead letters of every setting: the broker's exact count, since when, of what, and what is being given back."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet, Value
from django.db.models.functions import Concat
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting
from agents.pages.amounts import number
from agents.pages.consoles import link, needs, page
from agents.pages.figures import Figures, figures_for, message_count
from agents.pages.lists import COUNTED
from contract.properties import UNKNOWN, dead_letter_queue
from dlq.models import DeadLetter, LetterState, ReplayJob
from dlq.models.replay import OPEN_JOBS
from dlq.pages.letters import VIEW

# What "most of them" is judged by: the latest letters, not the whole queue.
LATEST = 1000


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

    @property
    def url(self) -> str:
        return link("dead_letters_of", self.key)

    @property
    def empty(self) -> bool:
        return self.exact in (0, None) and self.since is None


def queue_rows(every: list[LaunchSetting]) -> list[QueueRow]:
    """Of those that take messages: the others have no dead-letter queue."""
    settings = [setting for setting in every if setting.takes_messages]
    figures, holding = figures_for(settings), _holding(settings)
    running: dict[str, list[ReplayJob]] = {}
    for job in ReplayJob.objects.filter(state__in=OPEN_JOBS):
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


@require_safe
@needs(VIEW)
def overview(request: HttpRequest) -> HttpResponseBase:
    settings = list(LaunchSetting.objects.select_related("destination").order_by("key"))
    rows = sorted(queue_rows(settings), key=lambda row: (row.empty, -(row.exact or 0), row.key))
    foreign = DeadLetter.objects.filter(setting=None, state=LetterState.DEAD).order_by()
    foreign = foreign.exclude(queue=dead_letter_queue(UNKNOWN))
    return page(
        request,
        "dlq/overview.html",
        title=_("Dead letters"),
        section="dead_letters",
        rows=rows,
        unknown=unknown_row(),
        removed=sorted(set(foreign.values_list("setting_key", flat=True)[:COUNTED])),
        answered=any(row.exact is not None for row in rows) or not rows,
    )
