"""Replays: the list, and one job with its progress by what became of the letters."""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.pages.consoles import Text, link, needs, page
from agents.pages.lists import BEFORE, PAGE, page_of
from agents.pages.shown import Shown
from dlq.masks import masks_for
from dlq.models import ItemState, Outcome, ReplayItem, ReplayJob
from dlq.models.replay import OPEN_JOBS
from dlq.pages.shown import ITEMS, JOBS, OUTCOMES

VIEW = "dlq.view_replayjob"


@dataclass(frozen=True, slots=True)
class Bar:
    """`show` is the filter of the list below that shows what this bar counts."""

    label: Text
    count: int
    total: int
    tone: str
    show: str


@require_safe
@needs(VIEW)
def replay_list(request: HttpRequest) -> HttpResponseBase:
    setting = request.GET.get("setting", "")
    jobs = ReplayJob.objects.select_related("by", "setting")
    if setting:
        jobs = jobs.filter(setting_key=setting)
    before = request.GET.get(BEFORE, "")
    older = ReplayJob.objects.filter(pk=before).first() if _is_uuid(before) else None
    if older:
        same = Q(created_at=older.created_at, pk__lt=older.pk)
        jobs = jobs.filter(Q(created_at__lt=older.created_at) | same)
    listed = page_of(request, list(jobs[: PAGE + 1]), lambda job: str(job.pk))
    counts = {job.pk: outcome_counts(job) for job in listed.rows}
    rows = [(job, JOBS[job.state], bars(job, counts[job.pk])) for job in listed.rows]
    return page(
        request, "dlq/replays.html", title=_("Replays"), section="replays", rows=rows, listed=listed, setting=setting
    )


@require_safe
@needs(VIEW)
def replay_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    job = get_object_or_404(ReplayJob.objects.select_related("by", "setting"), pk=pk)
    show = request.GET.get("show", "")
    items = _items(job, show)
    before = request.GET.get(BEFORE, "")
    if before.isdigit() and len(before) < 19:
        items = items.filter(pk__gt=int(before))
    listed = page_of(request, list(items.order_by("pk")[: PAGE + 1]), lambda item: str(item.pk))
    counts = outcome_counts(job)
    masks = masks_for(request.user)
    return page(
        request,
        "dlq/replay.html",
        title=_("Replay %(id)s") % {"id": str(job.pk)[:8]},
        section="replays",
        crumbs=[(_("Replays"), link("replays"))],
        job=job,
        state=JOBS[job.state],
        open=job.state in OPEN_JOBS,
        bars=bars(job, counts),
        waiting=counts.get((ItemState.GIVEN_BACK, Outcome.WAITING), 0)
        + counts.get((ItemState.GIVEN_BACK, Outcome.FAILED_AGAIN), 0),
        listed=listed,
        items=[(item, masks.head_of_body(item.letter), ITEMS[item.state], _outcome(item)) for item in listed.rows],
        show=show if show in SHOWS else "",
    )


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


GIVEN = Q(state=ItemState.GIVEN_BACK)
SHOWS: dict[str, Q] = {
    "planned": Q(state=ItemState.PLANNED),
    "given_back": GIVEN,
    "handled": GIVEN & Q(outcome=Outcome.HANDLED),
    "failed_again": GIVEN & Q(outcome=Outcome.FAILED_AGAIN),
    "dead_again": GIVEN & Q(outcome=Outcome.DEAD_AGAIN),
    "waiting": GIVEN & Q(outcome=Outcome.WAITING),
    "not_moved": Q(state__in=[ItemState.NOT_FOUND, ItemState.FAILED_TO_MOVE]),
}


def _items(job: ReplayJob, show: str) -> QuerySet[ReplayItem]:
    items = ReplayItem.objects.filter(job=job).select_related("letter", "died_as")
    items = items.defer("letter__encoded", "letter__properties", "letter__annotations")
    items = items.defer("died_as__encoded", "died_as__properties", "died_as__annotations")
    return items.filter(SHOWS[show]) if show in SHOWS else items


def _outcome(item: ReplayItem) -> Shown | None:
    return OUTCOMES[item.outcome] if item.state == ItemState.GIVEN_BACK else None


def outcome_counts(job: ReplayJob) -> dict[tuple[str, str], int]:
    rows = ReplayItem.objects.filter(job=job).order_by().values_list("state", "outcome").annotate(Count("pk"))
    return {(state, outcome): count for state, outcome, count in rows}


def bars(job: ReplayJob, counts: dict[tuple[str, str], int]) -> list[Bar]:
    """What was given back, and of that what became of it; then what could not be, where there is any."""
    given = {outcome: counts.get((ItemState.GIVEN_BACK.value, outcome.value), 0) for outcome in Outcome}
    moved = sum(given.values())
    states: Counter[str] = Counter()
    for (state, _outcome_of_it), count in counts.items():
        states[state] += count
    planned = states[ItemState.PLANNED]
    lost = states[ItemState.NOT_FOUND] + states[ItemState.FAILED_TO_MOVE]
    total = max(job.total, moved + lost + planned, 1)
    shown = [
        Bar(_("given back"), moved, total, "info", "given_back"),
        Bar(_("handled"), given[Outcome.HANDLED], total, "ok", "handled"),
        Bar(_("failed again, will be tried again"), given[Outcome.FAILED_AGAIN], total, "warn", "failed_again"),
        Bar(_("dead again"), given[Outcome.DEAD_AGAIN], total, "bad", "dead_again"),
        Bar(_("waiting to be handled"), given[Outcome.WAITING], total, "off", "waiting"),
    ]
    if planned:
        shown.append(Bar(_("still to be moved"), planned, total, "off", "planned"))
    if lost:
        shown.append(Bar(_("not moved"), lost, total, "bad", "not_moved"))
    return shown
