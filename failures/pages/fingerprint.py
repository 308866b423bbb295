"""One kind of failure: its trend, where it happens, what is known of it, and what people did with it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents.models import Activation, Server
from console.ui.charts.chart import draw
from console.ui.charts.curves import Chart, Curve, Kind
from console.ui.charts.scales import over_time
from console.ui.page import link, needs, page, render_panels
from failures.error_groups.merges import members_of
from failures.error_groups.operations import MAY_MERGE, MAY_WRITE
from failures.error_groups.queries import (
    Alike,
    fingerprint_url,
    hours_of,
    of_fingerprints,
    settings_of_groups,
    totals_of,
)
from failures.error_groups.regressions import older_since
from failures.error_groups.rollup import fold_all
from failures.models import (
    Advice,
    FailureDelta,
    FailureProtocol,
    Fingerprint,
    FingerprintAct,
    FingerprintChange,
    KnownError,
)
from failures.pages.fingerprints import VIEW, trend_words
from failures.pages.protocols import protocols_url

WEEK = timedelta(days=7)
MONTH = timedelta(days=30)
SHOWN = 20
LATEST = 5


@dataclass(frozen=True, slots=True)
class ServerCount:
    """`page`: the server's, empty where it is gone. `url`: its protocols; empty where they are of several
    fingerprints, of which a list shows one."""

    name: str
    page: str
    count: int
    activations: int
    last_at: datetime
    url: str


@dataclass(frozen=True, slots=True)
class OfActivation:
    """`known`: the MA has it (still), so there is a page of it."""

    id: UUID
    setting: str
    known: bool
    servers: int
    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change of the history, in words; `other`: a fingerprint that it speaks of."""

    change: FingerprintChange
    word: str
    fields: list[tuple[str, str, str]]
    other: str
    other_url: str


@require_safe
@needs(VIEW)
def fingerprint_page(request: HttpRequest) -> HttpResponseBase:
    named, now = request.GET.get("of", "")[:64], timezone.now()
    rows = Fingerprint.objects.select_related("merged_into", "part_of").filter(pk=named)
    row = rows.first()
    if row is None and FailureDelta.objects.filter(fingerprint=named).exists():
        fold_all(now)  # it came a moment ago
        row = rows.first()
    if row is None:
        raise Http404(_("Unknown fingerprint."))
    return _page(request, row, now)


def _page(request: HttpRequest, row: Fingerprint, now: datetime) -> HttpResponseBase:
    members = members_of(row.pk)
    merged = list(Fingerprint.objects.filter(merged_into=row.pk, part_of=None).order_by("-last_at"))
    parts = list(Fingerprint.objects.filter(part_of=row.pk, merged_into=None).order_by("part_setting"))
    settings = settings_of_groups(members, now - WEEK)
    narrowed = {"fingerprint": row.part_of_id or row.pk}
    if row.part_of_id:
        narrowed["setting"] = row.part_setting
    hours = hours_of(members, now - WEEK + timedelta(hours=1), now)
    trend = [sum(column) for column in zip(*(hours[each] for each in members), strict=True)]
    found = of_fingerprints(members, now - MONTH)
    head = row.merged_into_id or row.pk
    known = KnownError.objects.select_related("changed_by", "fingerprint").filter(pk=head).first()
    totals = totals_of(members)
    latest = FailureProtocol.objects.filter(fingerprint__in=members).order_by("-occurred_at")
    if row.part_of_id:
        of_part = FailureProtocol.objects.filter(fingerprint=row.part_of_id, setting_key=row.part_setting)
        latest = of_part.order_by("-occurred_at")
    counted = totals_of([part.pk for part in parts])
    return page(
        request,
        "failures/fingerprint.html",
        title=row.exception_type[:80],
        section="fingerprints",
        crumbs=[(_("Error groups"), link("fingerprints"))],
        row=row,
        count=sum(total.count for total in totals.values()),
        first_at=min(total.first_at for total in totals.values()),
        last_at=max(total.last_at for total in totals.values()),
        head_url=fingerprint_url(row.merged_into_id) if row.merged_into_id else "",
        merged=[(each, fingerprint_url(each.pk), protocols_url(fingerprint=each.pk)) for each in merged],
        chart=_chart(trend, now),
        words=trend_words(trend),
        settings=[
            (setting, count, "" if merged else protocols_url(**{**narrowed, "setting": setting}))
            for setting, count in list(settings.items())[:SHOWN]
        ],
        servers=_by_server(narrowed, found, bool(merged or parts)),
        parts=[(part, fingerprint_url(part.pk), counted[part.pk]) for part in parts],
        whole_url=fingerprint_url(row.part_of_id) if row.part_of_id else "",
        splittable=sorted(settings) if not row.part_of_id and not row.merged_into_id else [],
        activations=_by_activation(found),
        latest=list(latest.defer("traceback", "properties")[:LATEST]),
        protocols_url=protocols_url(**narrowed),
        known=known,
        older=older_since(known, members) if known and not row.merged_into_id else [],
        advice=Advice(known.advice).label if known and known.advice else "",
        advices=Advice.choices,
        may_write=request.user.has_perm(MAY_WRITE.name),
        may_merge=request.user.has_perm(MAY_MERGE.name),
        history=[_change_row(change) for change in row.changes.select_related("by")[:SHOWN]],
        panels=render_panels("fingerprint", request, row),
    )


def _chart(hours: Sequence[int], now: datetime) -> SafeString:
    last = now.replace(minute=0, second=0, microsecond=0)
    edges = [last - timedelta(hours=len(hours) - 1 - index) for index in range(len(hours) + 1)]
    axis = over_time(edges, timezone.get_current_timezone())
    failures = Curve(_("Failures"), hours, Kind.BARS, "bad")
    return draw(Chart("failures-by-hour", _("Failures per hour"), axis, [failures]))


def _by_server(narrowed: dict[str, str], found: list[Alike], several: bool) -> list[ServerCount]:
    servers: dict[str, list[Alike]] = defaultdict(list)
    for alike in found:
        servers[alike.server_name].append(alike)
    known = set(Server.objects.filter(name__in=list(servers)).values_list("name", flat=True))
    rows = [
        ServerCount(
            name,
            link("server", name) if name in known else "",
            sum(alike.count for alike in alikes),
            len({alike.activation_uuid for alike in alikes}),
            max(alike.last_at for alike in alikes),
            "" if several else protocols_url(server=name, **narrowed),
        )
        for name, alikes in servers.items()
    ]
    return sorted(rows, key=lambda server: (-server.count, server.name))


def _by_activation(found: list[Alike]) -> list[OfActivation]:
    """The latest failure first."""
    activations: dict[UUID, list[Alike]] = defaultdict(list)
    for alike in found:
        activations[alike.activation_uuid].append(alike)
    shown = list(activations.items())[:SHOWN]
    known = set(Activation.objects.filter(pk__in=[key for key, _ in shown]).values_list("pk", flat=True))
    return [
        OfActivation(
            key,
            alikes[0].setting_key,
            key in known,
            len({alike.server_name for alike in alikes}),
            sum(alike.count for alike in alikes),
            max(alike.last_at for alike in alikes),
        )
        for key, alikes in shown
    ]


def _change_row(change: FingerprintChange) -> ChangeRow:
    detail: dict[str, Any] = change.detail
    way = next((way for way in ("with", "into", "off", "from") if way in detail), "")
    other = str(detail.get(way, ""))
    fields = []
    if detail.get("setting"):
        fields = [(_("setting"), "", str(detail["setting"]))]
    if change.what == FingerprintAct.WROTE:
        fields = [(_label(name), str(old), str(new)) for name, (old, new) in detail.items()]
    elif change.what == FingerprintAct.FIXED and detail.get("version"):
        fields = [(_label("fixed_in"), "", str(detail["version"]))]
    ways = {
        "with": _("merged into this group:"),
        "into": _("merged this group into"),
        "off": _("split off from this group:"),
        "from": _("split this group off from"),
    }
    word = ways.get(way) or FingerprintAct(change.what).label
    return ChangeRow(change, str(word), fields, other, fingerprint_url(other) if other else "")


def _label(name: str) -> str:
    return str(getattr(KnownError._meta.get_field(name), "verbose_name", name))
