"""The page Insights: what the pipeline found, how old it is, how the run at hand goes; and each of its tables
whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.contrib import messages
from django.db.models import Max, Min, Sum
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from console.exports import Stream, begin_of, cell, csv_line, file_response
from console.operations.refusals import Refused
from console.ui.amounts import number, size
from console.ui.charts.chart import draw
from console.ui.charts.curves import Chart, Curve, Kind
from console.ui.charts.scales import by_label
from console.ui.page import link, needs, page
from contract.names import HISTORY_KEY
from failures.pages.protocols import protocols_url
from insights.models import FailureDay, InsightTable, PipelineRun, RetentionPlan
from insights.pages.panel import in_day
from insights.pages.run import run_facts
from insights.pages.tables import SPECS, Cells, Spec
from insights.runs.queries import computed, consistent, standing

VIEW = "insights.view_pipelinerun"
DAYS = 30
SHOWN = 8
PAGE = 50
MOST_PAGES = 400
RUNS = 10
# On the first page, in this order; the others are a link away.
TOLD = (
    "failure_days", "breaker_suggestions", "odd_servers", "activation_health", "poison_profile",
    "replay_success",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Panel:
    """`computed`: None where the table was never filled."""

    spec: Spec
    table: Cells | None
    computed: InsightTable | None

    @property
    def url(self) -> str:
        return link("insight_table", self.spec.name)


@require_safe
@needs(VIEW)
def insights_page(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()

    def read() -> dict[str, Any]:
        done = computed()
        return {
            "panels": [_panel(SPECS[name], done) for name in TOLD],
            "days": _days_chart(),
            "made_up": _made_up_days(),
            "plan": _plan_chart(),
            "done": done,
            "others": [spec for name, spec in SPECS.items() if name not in TOLD],
        }

    return page(
        request,
        "insights/insights.html",
        title=_("Insights"),
        section="insights",
        **consistent(read),
        **run_facts(request, standing(now)),
        runs=PipelineRun.objects.select_related("asked_by").order_by("-asked_at", "-pk")[:RUNS],
    )


def _panel(spec: Spec, done: dict[str, InsightTable]) -> Panel:
    rows = list(spec.rows()[:SHOWN])
    table = spec.table(rows) if rows else None
    if table is not None:
        table.orderable = False
        table.before_render(None)
    return Panel(spec, table, done.get(spec.name))


def _days_chart() -> SafeString | None:
    """Failures of the last days that there are, each a link to them."""
    last = FailureDay.objects.order_by("-day").values_list("day", flat=True).first()
    if last is None:
        return None
    first = last - timedelta(days=DAYS - 1)
    rows = FailureDay.objects.filter(day__gte=first)
    sums = dict(rows.values_list("day").order_by("day").annotate(Sum("count")))
    made_up = dict(
        rows.filter(setting_key=HISTORY_KEY).values_list("day").order_by("day").annotate(Sum("count")),
    )
    labels, real, never, urls, notes = [], [], [], [], []
    for offset in range(DAYS):
        day = first + timedelta(days=offset)
        count, simulated = sums.get(day, 0), made_up.get(day, 0)
        text = ngettext("%(day)s: %(n)s failure", "%(day)s: %(n)s failures", count)
        about = text % {"day": date_format(day, "DATE_FORMAT"), "n": number(count)}
        if simulated:
            text = _("%(day)s (including %(n)s from demo data)")
            about = text % {"day": about, "n": number(simulated)}
        labels.append((date_format(day, "MONTH_DAY_FORMAT"), None))
        real.append(count - simulated)
        never.append(simulated)
        urls.append(protocols_url(**in_day(day)) if count else "")
        notes.append(about)
    curves = [Curve(_("Failures"), real, Kind.BARS, "bad", urls)]
    if any(never):
        curves.append(Curve(_("Demo data"), never, Kind.BARS, "warn"))
    return draw(Chart("failures-by-day", _("Failures by day"), by_label(labels), curves, notes=notes))


@dataclass(frozen=True, slots=True)
class MadeUp:
    """Days of the chart on which the demo's history says that something failed. Nothing did."""

    first: date
    last: date
    count: int
    setting_url: str


def _made_up_days() -> MadeUp | None:
    last = FailureDay.objects.order_by("-day").values_list("day", flat=True).first()
    if last is None:
        return None
    rows = FailureDay.objects.filter(day__gt=last - timedelta(days=DAYS), setting_key=HISTORY_KEY)
    found = rows.aggregate(first=Min("day"), last=Max("day"), count=Sum("count"))
    if found["first"] is None:
        return None
    return MadeUp(found["first"], found["last"], found["count"], link("setting", HISTORY_KEY))


def _plan_chart() -> SafeString | None:
    """Returns None where nothing goes."""
    rows = list(RetentionPlan.objects.filter(setting_key="").order_by("day")[:DAYS])
    if not any(row.rows_going for row in rows):
        return None
    notes = []
    for row in rows:
        text = ngettext(
            "%(day)s: %(n)s row to delete (%(size)s)",
            "%(day)s: %(n)s rows to delete (%(size)s)",
            row.rows_going,
        )
        day = date_format(row.day, "DATE_FORMAT")
        notes.append(text % {"day": day, "n": number(row.rows_going), "size": size(row.bytes_going)})
    axis = by_label([(date_format(row.day, "MONTH_DAY_FORMAT"), None) for row in rows])
    going = [row.rows_going for row in rows]
    deletions = Curve(_("Rows to delete"), going, Kind.BARS, "info", [link("retention")] * len(rows))
    return draw(Chart("deletions-by-day", _("Upcoming deletions"), axis, [deletions], notes=notes))


@require_safe
@needs(VIEW)
def insight_table(request: HttpRequest, name: str) -> HttpResponseBase:
    spec = SPECS.get(name)
    if spec is None:
        raise Http404
    filters = spec.filters(request.GET)
    rows = filters.qs
    if request.GET.get("file") == "csv":
        return _file(request, spec, rows)
    current = _page_number(request)
    order = [each for each in request.GET.getlist("sort") if each.lstrip("-") in spec.columns][:3]

    def read() -> tuple[Cells, bool, dict[str, InsightTable]]:
        sorted_rows = rows.order_by(*order, "pk") if order else rows
        found = list(sorted_rows[(current - 1) * PAGE : current * PAGE + 1])
        table = spec.table(found[:PAGE], order)
        table.before_render(request)
        return table, len(found) > PAGE, computed()

    table, more, done = consistent(read)
    table.request = request
    query = request.GET.copy()
    query.pop("page", None)
    return page(
        request,
        "insights/insight_table.html",
        title=spec.label,
        section="insights",
        crumbs=[(_("Insights"), link("insights"))],
        spec=spec,
        table=table,
        filters=filters,
        filtered=filters.is_set,
        computed=done.get(name),
        number=current,
        more=more and current < MOST_PAGES,
        query=query.urlencode(),
    )


def _page_number(request: HttpRequest) -> int:
    text = request.GET.get("page", "1")
    return min(max(1, int(text)), MOST_PAGES) if text.isascii() and text.isdecimal() and len(text) < 5 else 1


def _file(request: HttpRequest, spec: Spec, rows: Any) -> HttpResponseBase:
    fields = [field.attname for field in spec.model._meta.concrete_fields if field.attname != "id"]

    def lines() -> Iterator[str]:
        yield csv_line(fields)
        for values in rows.values_list(*fields).iterator(chunk_size=2000):
            yield csv_line(cell(value) for value in values)

    try:
        return file_response(
            Stream(lines(), on_end=lambda began: None, begin=begin_of("csv")), "csv", spec.name
        )
    except Refused as refused:
        messages.error(request, refused.sentence)
        return HttpResponseRedirect(link("insight_table", spec.name))
