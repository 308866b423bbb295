"""One replay: its progress by what became of the dead letters, how it goes, and each dead letter with why."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from math import floor, log10
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from agents.models import LaunchSetting
from console.filters import ListFilter, OneOfFilter, SpanFilter, TextFilter
from console.jobs.engine import ANOTHER
from console.lists.keyset import keyset_page, list_page, numbered_page
from console.operations.web import operation_buttons
from console.ui.amounts import number
from console.ui.page import Bar, Button, StateLabel, link, page, refreshes_another
from dlq.dead_letters.masks import masks_for
from dlq.edit.queries import edits_of
from dlq.models import (
    UNFINISHED_JOBS,
    Action,
    HoldState,
    ItemState,
    JobState,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
)
from dlq.models.content import with_heads
from dlq.models.replay import DELIVERING, OPEN_JOBS
from dlq.pages import holds
from dlq.pages.replay_progress import moved_over_time
from dlq.replay import text as words
from dlq.replay.counts import CONSUMERS_OPEN, LEFT, STOPPING, WORKABLE, is_walking, planned_of, reason_to_wait
from dlq.replay.operations import ON_REPLAYS, jobs_for, title
from dlq.replay.preflight.text import acknowledged, reason
from dlq.replay.rules.ladder import step_size
from dlq.replay.rules.slices import LATEST, Moved, MoveRate, move_rate
from dlq.replay.text import JOBS, OUTCOMES
from dlq.search.filter import redacted_query

# -- steps of a ladder: exact for the first ones, the rest in one row ----------------------------------------


# Steps of which each dead letter is counted: 1 + 5 + 25 + 125 + 625 of them, however large the job is.
COUNTED_STEPS = 5

PASSED = StateLabel(_("passed"), "ok", "ok")
AT_HAND = StateLabel(_("running"), "info", "run")
HELD = StateLabel(_("awaiting outcomes"), "off", "wait")
STOPPED = StateLabel(_("stopped"), "bad", "warn")
OVER = StateLabel(_("moved"), "info", "ok")
TO_COME = StateLabel(_("not yet started"), "off", "wait")


@dataclass(frozen=True, slots=True)
class Step:
    """`number` from 1; `onwards`: this step and all after it. `moved` counts what is unconfirmed too.
    `planned` dead letters of it did not move yet."""

    number: int
    onwards: bool
    size: int
    moved: int
    handled: int
    failed: int
    dead: int
    unknown: int
    planned: int
    state: StateLabel

    @property
    def waiting(self) -> int:
        return max(0, self.moved - self.handled - self.failed - self.dead - self.unknown)

    @property
    def failed_share(self) -> int:
        """Per cent of those that moved, as the ladder judges it."""
        return round(100 * (self.failed + self.dead) / self.moved) if self.moved else 0


def steps_of(job: ReplayJob, counts: Mapping[str, int]) -> list[Step]:
    if not job.ladder:
        return []
    pieces = dict(ReplaySlice.objects.filter(job=job, step__lt=COUNTED_STEPS).values_list("pk", "step"))
    rows = ReplayItem.objects.filter(slice__in=list(pieces)).order_by()
    found: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for piece, state, outcome, count in rows.values_list("slice", "state", "outcome").annotate(Count("pk")):
        found[pieces[piece]][state] += count
        if outcome and state in LEFT:
            found[pieces[piece]][outcome] += count
    steps = [_step(job, number, found[number], step_size(number)) for number in sorted(found)]
    rest = {name: count - sum(each[name] for each in found.values()) for name, count in counts.items()}
    if any(rest.get(name, 0) > 0 for name in (*LEFT, ItemState.PLANNED)) and len(steps) == COUNTED_STEPS:
        steps.append(_step(job, COUNTED_STEPS, rest, 0))
    return steps


def _step(job: ReplayJob, number: int, counts: Mapping[str, int], size: int) -> Step:
    def count(name: str) -> int:
        return max(0, counts.get(name, 0))

    moved, planned = sum(count(state) for state in LEFT), count(ItemState.PLANNED)
    handled, failed, dead = count(Outcome.HANDLED), count(Outcome.FAILED_AGAIN), count(Outcome.DEAD_AGAIN)
    unknown = count(Outcome.UNKNOWN)
    waits = moved > handled + failed + dead + unknown
    onwards = number >= COUNTED_STEPS
    state = _state(job, number, onwards, at_rest=bool(moved and not planned and waits), moved=bool(moved))
    return Step(number + 1, onwards, size, moved, handled, failed, dead, unknown, planned, state)


def _state(job: ReplayJob, number: int, onwards: bool, *, at_rest: bool, moved: bool) -> StateLabel:
    if number < job.ladder_step and not onwards:
        return PASSED
    if job.state == JobState.STOPPED and (number == job.ladder_step or onwards):
        return STOPPED
    if job.state in OPEN_JOBS:
        return HELD if at_rest else AT_HAND if moved or number <= job.ladder_step else TO_COME
    return OVER if moved else TO_COME


# How often the page looks again: while dead letters move, and while only agents have something to say.
BUSY, QUIET = "2s", "10s"
# The id of the part with its chart, which is refreshed by itself.
PROGRESS = "progress-over-time"
PLANNED = "planned"  # which needs the job's slices
# With what the index has of each: what an item is released as.
GIVEN = Q(state=ItemState.GIVEN_BACK, released_as="")
UNCONFIRMED = Q(released_as=ItemState.UNCONFIRMED)
SHOWS: dict[str, Q] = {
    "given_back": GIVEN,
    "handled": GIVEN & Q(outcome=Outcome.HANDLED),
    "failed_again": GIVEN & Q(outcome=Outcome.FAILED_AGAIN),
    "dead_again": GIVEN & Q(outcome=Outcome.DEAD_AGAIN),
    "waiting": (GIVEN | UNCONFIRMED) & Q(outcome=Outcome.WAITING),
    "unknown": (GIVEN | UNCONFIRMED) & Q(outcome=Outcome.UNKNOWN),
    "unconfirmed": UNCONFIRMED,
    "taken_elsewhere": Q(released_as=ItemState.TAKEN_ELSEWHERE),
    "not_moved": Q(released_as__in=[ItemState.NOT_FOUND, ItemState.FAILED_TO_MOVE]),
    "skipped": Q(released_as=ItemState.SKIPPED),
    "cancelled": Q(released_as=ItemState.CANCELLED),
}


@require_safe
def replay_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    job, now = get_object_or_404(jobs_for(request.user), pk=pk), timezone.now()
    show = request.GET.get("show", "")
    why = request.GET.get("why", "")[:40] if show == "skipped" else ""
    items = _items(job, show).filter(**({"why": why} if why else {}))
    listed = numbered_page(request, items, oldest_first=True)
    counts, masks = words.replay_counts(job), masks_for(request.user)
    to_come = words.unsettled_count(job, counts)
    goes = _pace(job, words.to_move(job, counts), now)
    other = _job_before(request, job, now)
    edits = edits_of(listed.rows, masks)
    return page(
        request,
        "dlq/replay.html",
        title=title(job),
        section="replays",
        crumbs=[(gettext("Replays"), link("replays"))],
        job=job,
        state=JOBS[job.state],
        open=job.state in OPEN_JOBS,
        unfinished=job.state in UNFINISHED_JOBS,
        query=redacted_query(job.query, masks, job.setting_key),
        polls=job.state in UNFINISHED_JOBS or bool(to_come),
        buttons=list(_buttons(request, job)),
        bars=words.replay_bars(job, counts),
        every=BUSY if job.state in OPEN_JOBS else QUIET,
        steps=steps_of(job, counts),
        progress=None if refreshes_another(request, PROGRESS) else moved_over_time(job),
        problem=str(job.problem),
        why_paused=words.why_paused(job) if job.state == JobState.PAUSED else "",
        stopping=words.waits_for_consumers(job),
        recorded=sum(counts.get(state, 0) for state in ItemState.values),
        pace=goes,
        a_second=_a_second(goes),
        waits=words.why_it_waits(job, now),
        walk=words.walk_of(job) if is_walking(job, now) else "",
        other=other,
        holding=holds.how_far(job),
        ahead=holds.ahead(job),
        walk_of_other=words.walk_of_other(other) if other is not None and is_walking(other, now) else "",
        how=[*words.how(job), *words.rule(job, masks)],
        acknowledged=[acknowledged(code) for code in job.acknowledged],
        left_out=words.skipped_rows(job),
        to_bin=job.action in (Action.DISCARD, Action.PUT_BACK),
        listed=listed,
        items=[
            (
                item,
                masks.head_of_body(item.letter),
                _moved(item),
                _outcome(item),
                _why(item),
                edits.get(item.pk),
            )
            for item in listed.rows
        ],
        show=show if show in (PLANNED, *SHOWS) else "",
        why=reason(why) if why else "",
    )


def _buttons(request: HttpRequest, job: ReplayJob) -> Iterator[Button]:
    for button in operation_buttons(request.user, job, *ON_REPLAYS):
        yield button
        if button.name == "resume" and job.pause_reason.get("code") == CONSUMERS_OPEN:
            text = gettext("Resume despite open consumers")
            yield replace(button, name="go-on", text=text, tone="danger", sent={"acknowledge": STOPPING})


def _job_before(request: HttpRequest, job: ReplayJob, now: datetime) -> ReplayJob | None:
    """The one that it waits for, where this person may see it: of the same queue, or the one that holds the
    subscription."""
    waits = reason_to_wait(job, now)
    if waits == ANOTHER:
        held = jobs_for(request.user).filter(WORKABLE, source_queue=job.source_queue, lease_until__gt=now)
        return held.exclude(holder=None).exclude(pk=job.pk).first()
    if not waits or job.hold != HoldState.WANTED or job.held_at is not None:
        return None
    holders = LaunchSetting.objects.filter(key=job.target_key).values("held_by")
    return jobs_for(request.user).filter(pk__in=holders).first()


def _pace(job: ReplayJob, remaining: int, now: datetime) -> MoveRate | None:
    if job.state != JobState.RUNNING:
        return None
    slices = ReplaySlice.objects.filter(job=job).exclude(checked_at=None).order_by("-number")
    rows = slices.values_list("size", "moved_at", "planned_at", "checked_at")[:LATEST]
    latest = [Moved(size, begun or planned, checked) for size, begun, planned, checked in rows if checked]
    rate = move_rate(latest, remaining, now, job.per_second)
    return rate if rate is None or job.is_counted else replace(rate, left=None)


def _a_second(goes: MoveRate | None) -> str:
    """Two digits at least: a slow job moves less than one a second."""
    if goes is None or goes.per_second <= 0:
        return ""
    return number(goes.per_second, max(0, 1 - floor(log10(goes.per_second))))


def _items(job: ReplayJob, show: str) -> QuerySet[ReplayItem]:
    items = planned_of(job) if show == PLANNED else ReplayItem.objects.filter(job=job)
    items = with_heads(items.select_related("died_as"), "letter__content")
    return items.filter(SHOWS[show]) if show in SHOWS else items


def _moved(item: ReplayItem) -> StateLabel:
    return words.BACK if words.is_back(item) else words.item_label(item.job, item.state)


def _why(item: ReplayItem) -> str:
    return (
        gettext("another consumer took the message and returned it to the queue")
        if words.is_back(item)
        else reason(item.why)
    )


def _outcome(item: ReplayItem) -> StateLabel | None:
    left = item.state in LEFT and (item.job.action in DELIVERING or item.outcome == Outcome.UNKNOWN)
    return OUTCOMES[item.outcome] if left else None


# -- the list of replays: newest first, filtered, each with what became of its dead letters ------------------


UNFINISHED = "unfinished"


class ReplayFilter(ListFilter):
    setting = TextFilter(gettext_lazy("Setting"), 61, field_name="setting_key")
    action = OneOfFilter(gettext_lazy("What"), Action.choices)
    state = OneOfFilter(
        gettext_lazy("State"),
        [(UNFINISHED, gettext_lazy("unfinished")), *JobState.choices],
        method="in_state",
    )
    by = TextFilter(gettext_lazy("By"), 150, field_name="by__username")
    span = SpanFilter(field_name="created_at")

    def in_state(self, rows: QuerySet[ReplayJob], name: str, value: str) -> QuerySet[ReplayJob]:
        return rows.filter(state__in=UNFINISHED_JOBS) if value == UNFINISHED else rows.filter(state=value)


# Columns of the list, each with what stands below its number where there is any: so that they add up.
COLUMNS: dict[str, tuple[str, ...]] = {
    "given_back": ("planned", "unconfirmed", "taken_elsewhere", "not_moved", "cancelled"),
    "handled": (),
    "failed_again": (),
    "dead_again": (),
    "waiting": ("unknown",),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """`bar` None: jobs of this kind have no such outcome."""

    name: str
    bar: Bar | None
    below: list[Bar]


def _cells(bars: list[Bar]) -> list[Cell]:
    by_name = {bar.show: bar for bar in bars}
    return [
        Cell(name, by_name.get(name), [by_name[each] for each in below if each in by_name])
        for name, below in COLUMNS.items()
    ]


@require_safe
def replay_list(request: HttpRequest) -> HttpResponseBase:
    rows = jobs_for(request.user).order_by("-created_at", "-id")
    filters = ReplayFilter(request.GET, rows)
    listed = keyset_page(request, filters.qs, "created_at")
    return list_page(
        request,
        "dlq/replays.html",
        title=gettext("Replays"),
        section="replays",
        filters=filters,
        rows=[
            (job, JOBS[job.state], _cells(words.replay_bars(job, words.replay_counts(job))))
            for job in listed.rows
        ],
        listed=listed,
    )
