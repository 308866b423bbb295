"""Kinds of failures over everything, the most recent first: how often, since when, and what is known of
them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.pages.trips import OfSettingFilter
from console.filters import ListFilter, OneOfFilter, SpanFilter, TextFilter
from console.lists.keyset import keyset_page, list_page
from console.ui.amounts import number
from console.ui.charts.chart import sparkline
from console.ui.page import needs
from failures.error_groups.merges import in_setting
from failures.error_groups.queries import Total, fingerprint_url, hours_of, totals_of
from failures.models import Fingerprint, FoldMark, KnownError

VIEW = "failures.view_fingerprint"
SHOWN = 30
TREND = timedelta(hours=23)
NEW = timedelta(days=1)
# Counts are folded every few seconds: after so long somebody has to know that they stand still.
STALE = timedelta(minutes=1)


class FingerprintFilter(ListFilter):
    setting = OfSettingFilter(method="of_setting")
    exception = TextFilter(
        gettext_lazy("Exception contains"), 255, field_name="exception_type", lookup_expr="icontains"
    )
    place = TextFilter(gettext_lazy("Location contains"), 300, lookup_expr="icontains")
    book = OneOfFilter(
        gettext_lazy("Notes"),
        [
            ("unknown", gettext_lazy("no notes")),
            ("known", gettext_lazy("has notes")),
            ("returned", gettext_lazy("regressed")),
            ("new", gettext_lazy("new in the last 24 hours")),
        ],
        method="of_book",
    )
    span = SpanFilter(field_name="recent_at")
    quiet = ("place",)

    def of_setting(self, rows: QuerySet[Fingerprint], name: str, value: str) -> QuerySet[Fingerprint]:
        return in_setting(rows, value)

    def of_book(self, rows: QuerySet[Fingerprint], name: str, value: str) -> QuerySet[Fingerprint]:
        if value == "new":
            return rows.filter(received_at__gte=timezone.now() - NEW)
        if value == "returned":
            return rows.filter(known__returned_at__isnull=False)
        return rows.filter(known__isnull=value == "unknown")


@dataclass(frozen=True, slots=True)
class ErrorGroupRow:
    """`day`: failures in the last 24 hours; `count` and `first_at` with those merged into it."""

    fingerprint: Fingerprint
    url: str
    spark: SafeString
    day: int
    count: int
    first_at: datetime
    merged: int
    known: KnownError | None
    new: bool


@require_safe
@needs(VIEW)
def fingerprint_list(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()
    rows = Fingerprint.objects.filter(merged_into=None).order_by("-recent_at", "-fingerprint")
    filters = FingerprintFilter(request.GET, rows)
    listed = keyset_page(request, filters.qs, "recent_at", SHOWN)
    folded_at = FoldMark.objects.values_list("folded_at", flat=True).first()
    return list_page(
        request,
        "failures/fingerprints.html",
        title=_("Error groups"),
        section="fingerprints",
        filters=filters,
        listed=listed,
        rows=_rows(listed.rows, now),
        stale_since=folded_at if folded_at and folded_at < now - STALE else None,
    )


def _rows(heads: list[Fingerprint], now: datetime) -> list[ErrorGroupRow]:
    merged: dict[str, list[Fingerprint]] = defaultdict(list)
    for row in Fingerprint.objects.filter(merged_into__in=[head.pk for head in heads]):
        merged[row.merged_into_id or ""].append(row)
    members = {head.pk: [head, *merged[head.pk]] for head in heads}
    shown = [each.pk for group in members.values() for each in group]
    hours, totals = hours_of(shown, now - TREND, now), totals_of(shown)
    known = KnownError.objects.select_related("fingerprint").in_bulk([head.pk for head in heads])
    return [_row(head, members[head.pk], hours, totals, known.get(head.pk), now) for head in heads]


def _row(
    head: Fingerprint,
    members: list[Fingerprint],
    hours: Mapping[str, list[int]],
    totals: Mapping[str, Total],
    known: KnownError | None,
    now: datetime,
) -> ErrorGroupRow:
    trend = [sum(column) for column in zip(*(hours[each.pk] for each in members), strict=True)]
    return ErrorGroupRow(
        fingerprint=head,
        url=fingerprint_url(head.pk),
        spark=sparkline(trend, trend_words(trend)),
        day=sum(trend),
        count=sum(totals[each.pk].count for each in members),
        first_at=min(totals[each.pk].first_at for each in members),
        merged=len(members) - 1,
        known=known,
        new=head.received_at >= now - NEW,
    )


def trend_words(hours: Sequence[int]) -> str:
    return _("%(sum)s total, peak %(most)s per hour") % {
        "sum": number(sum(hours)),
        "most": number(max(hours, default=0)),
    }
