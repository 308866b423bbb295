"""The tables of insights: their columns, order and filters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import django_filters
import django_tables2 as tables
from django.db.models import Model, QuerySet
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.filters import InstantFilter, ListFilter, NamesFilter, OneOfFilter, TextFilter
from console.templatetags.console import at
from console.ui.amounts import number
from console.ui.page import Text, link
from console.ui.text import visible_html
from failures.models import Fingerprint
from failures.protocols.filter import server_names, setting_keys
from insights.models import DayStatus
from insights.pages import panel as cells
from insights.runs.folder import TABLES

NUM = {"td": {"class": "num"}, "th": {"class": "num"}}
LESS = {"td": {"class": "num less"}, "th": {"class": "num less"}}
NUMBERS = (
    "count", "temporary", "messages", "rank", "handled", "failures", "failures_per_1000", "wasted_deliveries",
    "m",
    "runs", "trips", "deliveries_saved", "false_trips", "m_now", "m_suggested", "failed_again", "dead_again",
    "dead",
    "recovered", "support", "lift", "rows_going",
)  # fmt: skip
SECONDS = ("duration_seconds", "seconds_to_trip", "seconds_to_repair")
SHARES = ("temporary_share", "rate", "peers_rate", "low", "high")
BYTES = ("bytes_going", "archive_bytes", "database_bytes")
# Where the unit is told by each cell.
HEADS = {
    "duration_seconds": _("Duration"),
    "seconds_to_trip": _("Time to trip"),
    "seconds_to_repair": _("Time to recovery"),
    "activation": _("Activation"),
    "setting_key": _("Setting"),
    "fingerprint": _("Error group"),
    "bytes_going": _("Data to delete"),
    "archive_bytes": _("Archive"),
    "database_bytes": _("Database"),
}
INSTANTS = ("hour", "first_at", "last_at", "started_at", "tripped_at", "first_trip_at", "last_trip_at")


class Cells(tables.Table):
    """Every column is drawn by what it is; `names` of fingerprints are those of the page."""

    names: Mapping[str, str] = {}

    class Meta:
        template_name = "ma/table.html"
        attrs = {"class": "grid many"}

    def before_render(self, request: Any) -> None:
        shown = {getattr(row.record, "fingerprint", "") for row in self.paginated_rows}
        rows = Fingerprint.objects.filter(pk__in=shown - {""})
        self.names = {
            row.pk: f"{row.exception_type} · {row.place}" if row.place else row.exception_type for row in rows
        }


def _draw(name: str) -> Any:
    def plain(self: Cells, value: Any) -> Any:
        if name in SECONDS:
            return cells.seconds_cell(value)
        if name in SHARES:
            return cells.share_cell(value)
        if name in BYTES:
            return cells.bytes_cell(value)
        if name in INSTANTS:
            return at(value)
        if name == "day":
            return date_format(value, "DATE_FORMAT")
        return number(value, 1) if name in NUMBERS else visible_html(value)

    def drawn(self: Cells, record: Any) -> Any:
        return _SPECIAL[name](self, record)

    return drawn if name in _SPECIAL else plain


def _behind_failures(table: Cells, row: Any) -> SafeString:
    if hasattr(row, "hour"):
        wanted = {"server": row.server, "fingerprint": row.fingerprint, **cells.in_hour(row.hour)}
    else:
        wanted = {"fingerprint": row.fingerprint, **cells.in_day(row.day)}
    return cells.behind(row.count, setting=row.setting_key, **wanted)


def _failures(table: Cells, row: Any) -> SafeString:
    more = {"activation": row.activation} if hasattr(row, "activation") else {"server": row.server}
    return cells.behind(row.failures, setting=row.setting_key, **more)


_SPECIAL: dict[str, Any] = {
    "setting_key": lambda table, row: cells.setting_cell(row.setting_key),
    "fingerprint": lambda table, row: cells.fingerprint_cell(row.fingerprint, table.names),
    "count": _behind_failures,
    "failures": _failures,
    "activation": lambda table, row: cells.linked(
        str(row.activation)[:8], link("activation", row.activation)
    ),
    "standing": lambda table, row: row.get_standing_display(),
    "m": lambda table, row: cells.what_if_cell(row.setting_key, row.m),
    "m_suggested": lambda table, row: cells.what_if_cell(row.setting_key, row.m_suggested),
    "why": lambda table, row: cells.suggestion_reason(row.why),
    "age_bucket": lambda table, row: cells.bucket(row.age_bucket),
    "since_fix_bucket": lambda table, row: cells.bucket(row.since_fix_bucket),
    "odd": lambda table, row: _odd(row.odd),
}


def _odd(odd: bool) -> Text:
    return pgettext_lazy("a server", "outlier") if odd else pgettext_lazy("a server", "normal")


@dataclass(frozen=True, slots=True)
class Spec:
    """`order` ends with what makes it exact. `instant`: what `since` and `until` are asked of."""

    name: str
    label: Text
    about: Text
    columns: Sequence[str]
    order: Sequence[str]
    instant: str = ""
    quiet: Sequence[str] = ()

    @property
    def model(self) -> type[Model]:
        return TABLES[self.name]

    def rows(self) -> QuerySet[Any]:
        return self.model._default_manager.order_by(*self.order, "pk")

    def table(self, rows: Any, order_by: Sequence[str] = ()) -> Cells:
        # Django-tables2 hands no Meta on by inheritance.
        columns: dict[str, Any] = {"Meta": Cells.Meta}
        for name in self.columns:
            field: Any = self.model._meta.get_field(name)
            attrs = (NUM if name not in self.quiet else LESS) if _is_num(name) else {}
            label = capfirst(HEADS.get(name, field.verbose_name))
            columns[name] = tables.Column(verbose_name=label, attrs=attrs, default=cells.NOTHING)
            columns[f"render_{name}"] = _draw(name)
        kind: type[Cells] = type("InsightTable", (Cells,), columns)
        made: Cells = kind(rows, order_by=order_by or None)
        return made

    def filters(self, query: Any) -> ListFilter:
        names = {field.name for field in self.model._meta.fields}
        found: dict[str, Any] = {"setting": NamesFilter(_("Setting"), setting_keys, field_name="setting_key")}
        if "server" in names:
            found["server"] = NamesFilter(_("Server"), server_names)
        if "fingerprint" in names:
            found["fingerprint"] = TextFilter(_("Error group"), 64)
        if "standing" in names:
            found["standing"] = OneOfFilter(_("Status"), DayStatus.choices)
        if "odd" in names:
            found["odd"] = django_filters.BooleanFilter(label=_("Outliers only"))
        if self.instant:
            found["since"] = InstantFilter(field_name=self.instant, lookup_expr="gte", label=_("From"))
            found["until"] = InstantFilter(field_name=self.instant, lookup_expr="lt", label=_("Before"))
        kind = type("InsightFilter", (ListFilter,), {**found, "quiet": ("fingerprint",)})
        made: ListFilter = kind(query, self.rows())
        return made


def _is_num(name: str) -> bool:
    return name in NUMBERS or name in SECONDS or name in SHARES or name in BYTES


SPECS = {
    spec.name: spec
    for spec in (
        Spec(
            "failure_trends", _("Failures by hour"),
            _("Failures of each error group per hour, by setting and server."),
            ("hour", "setting_key", "server", "fingerprint", "count", "temporary", "messages"),
            ("-hour", "-count"), "hour", ("temporary", "messages"),
        ),
        Spec(
            "failure_days", _("Error groups by day"),
            _("Error groups that appeared, returned or disappeared each day, most frequent first."),
            ("day", "setting_key", "fingerprint", "count", "messages", "standing", "rank"),
            ("-day", "-count"), "", ("messages", "rank"),
        ),
        Spec(
            "activation_health", _("Activation health"),
            _("Failure rate, time to breaker trip and time to recovery for each finished "
"activation."),
            (
                "started_at", "setting_key", "activation", "duration_seconds", "handled", "failures",
                "failures_per_1000", "seconds_to_trip", "seconds_to_repair", "wasted_deliveries",
                "temporary_share",
            ),
            ("-started_at",), "started_at", ("duration_seconds", "seconds_to_repair", "temporary_share"),
        ),
        Spec(
            "breaker_suggestions", _("Suggested thresholds"),
            _("The best threshold M for each setting, based on its history. Settings are not "
"changed automatically."),
            ("setting_key", "m_now", "m_suggested", "why"), ("setting_key",),
        ),
        Spec(
            "breaker_backtest", _("Threshold back-test"),
            _("Back-test of each threshold M on past data: trips, deliveries avoided, and false "
"trips."),
            ("setting_key", "mode", "m", "runs", "trips", "deliveries_saved", "false_trips", "first_trip_at"),
            ("setting_key", "mode", "m"), "", ("runs",),
        ),
        Spec(
            "replay_success", _("Replay success rate"),
            _("Outcome of replayed messages, by message age and time since the fix."),
            (
                "setting_key", "fingerprint", "age_bucket", "since_fix_bucket", "handled", "failed_again",
                "dead_again",
            ),
            ("setting_key", "fingerprint", "age_bucket"),
        ),
        Spec(
            "odd_servers", _("Server comparison"),
            _("Servers where a setting fails significantly more or less often than on other "
"servers."),
            ("setting_key", "server", "handled", "failures", "rate", "peers_rate", "low", "high", "odd"),
            ("-odd", "-rate"), "", ("low", "high"),
        ),
        Spec(
            "poison_profile", _("Poison-message indicators"),
            _("Properties and sizes that are more common in dead letters than in messages processed "
"after a failure."),
            ("setting_key", "property", "value_bucket", "dead", "recovered", "support", "lift"),
            ("-lift", "-dead"),
        ),
        Spec(
            "retention_plan", _("Retention plan"),
            _("Data that retention will delete in the next 30 days, and the archive and database "
"sizes after that."),
            ("day", "setting_key", "rows_going", "bytes_going", "archive_bytes", "database_bytes"),
            ("day", "setting_key"),
        ),
    )
}  # fmt: skip
