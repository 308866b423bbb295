"""The table of settings: what each does now, what waits and what is dead."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Concat
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.activations.queries import OpenRun, open_runs
from agents.activations.rules.outcome import is_partial
from agents.models import LaunchSetting, RunPhase, ServerState, ServerStop
from agents.models.labels import has_labels, label_words, wanted_in
from agents.pages.settings import not_stopped, stopped_text, stops_of
from agents.pages.states import SettingFacts, at_work, drain_text, facts_of, setting_label, stopping_label
from agents.provisioning.queue_counts import Figures, figures_for
from agents.provisioning.subscriptions import drains_of
from console.lists.columns import Column, Listing, listing, matching
from console.ui.amounts import number
from console.ui.charts.chart import sparkline
from console.ui.page import StateLabel, link
from contract.names import DEAD_LETTER_PREFIX
from dlq.models import DeadLetter, LetterState
from dlq.pages.holds import HeldSubscription, held_subscriptions
from failures.models import FailureProtocol
from failures.pages.protocols import protocols_url
from metrics.queries import Point, scope_of, series_of

MOST_DOTS = 12
TONES = ("bad", "warn", "ok")
# Why a setting is disabled: by its breaker, by a person, or it was never enabled.
OFF = TRIPPED, MANUAL, NEVER = "tripped", "manual", "never"
STATES = ("on", "problem", "off", *OFF)
# Characters of what a list is narrowed by.
LONGEST = 300


@dataclass(frozen=True, slots=True)
class Dot:
    """One server of a run: filled while it runs there, hollow while it is on its way."""

    tone: str
    label: str


@dataclass(frozen=True, slots=True)
class Curves:
    """Small curves of the last day by hour."""

    processed: SafeString
    failed: SafeString
    waiting: SafeString
    dead: SafeString


@dataclass(frozen=True, slots=True)
class SettingRow:
    setting: LaunchSetting
    state: StateLabel
    facts: SettingFacts
    partial: bool
    dots: list[Dot]
    more_dots: int
    runs: list[OpenRun]
    figures: Figures
    failed_at: datetime | None
    dead_since: datetime | None
    held: HeldSubscription | None = None
    stops: Sequence[ServerStop] = ()
    drain: str = ""
    curves: "Curves | None" = None

    def is_in(self, group: str) -> bool:
        """Returns what the list is filtered by: `problem` (tripped is one), `on` and well, `off`, or one kind
        of `off`."""
        problem = self.state.tone in ("bad", "warn")
        if group == "off":
            return not self.setting.enabled
        if group in OFF:
            return self.off == group
        return problem if group == "problem" else self.setting.enabled and not problem

    @property
    def off(self) -> str:
        """Returns why it is disabled: a code of `OFF`; empty: it is enabled. A trip of a member disables its
        whole group."""
        if self.setting.enabled:
            return ""
        if self.facts.tripped or self.facts.with_group:
            return TRIPPED
        setting = self.setting
        once = setting.enablings or setting.disabled_by_id or setting.disabled_reason
        return MANUAL if once else NEVER

    @property
    def stopped(self) -> str:
        return stopped_text(self.stops) if self.setting.enabled else ""

    @property
    def wanted_runs(self) -> list[OpenRun]:
        """Those on servers where nobody stopped it."""
        return not_stopped(self.runs, self.stops)

    @property
    def url(self) -> str:
        return link("setting", self.setting.key)

    @property
    def dead_url(self) -> str:
        return link("dead_letters_of", self.setting.key)

    @property
    def activation(self) -> str:
        return str(self.runs[0].activation_id) if self.runs else ""

    @property
    def activation_url(self) -> str:
        return link("activation", self.activation) if self.activation else self.url

    @property
    def failed_url(self) -> str:
        wanted = {"activation": self.activation} if self.activation else {"setting": self.setting.key}
        return protocols_url(**wanted)

    @property
    def protocols_url(self) -> str:
        return protocols_url(setting=self.setting.key)

    @property
    def handled(self) -> int:
        return sum(run.handled for run in self.runs)

    @property
    def failed(self) -> int:
        return sum(run.failed + run.temporary for run in self.runs)

    @property
    def labels(self) -> list[str]:
        return label_words(self.setting.labels)

    @property
    def destination(self) -> str:
        return self.setting.destination.name if self.setting.destination else ""

    @property
    def texts(self) -> list[str]:
        """Returns what it is searched by."""
        setting = self.setting
        return [setting.key, setting.agent, self.destination, setting.pool.name, *self.labels]

    @property
    def worst_first(self) -> tuple[int, int, str]:
        """Returns its place among others: what fails, what fails in part, what has dead letters, what
        somebody disabled; at the end what was never enabled."""
        dead = self.figures.dead or 0
        tone = self.state.tone
        ranks = (
            tone == "bad",
            tone == "warn",
            self.partial,
            dead > 0 or self.dead_since is not None,
            self.off == MANUAL,
            tone == "info",
            self.off != NEVER,
        )
        return next((place for place, so in enumerate(ranks) if so), len(ranks)), -dead, self.setting.key


@dataclass(frozen=True, slots=True)
class Selection:
    """What the list of settings is narrowed by; empty: by nothing. `label`: `key` or `key=value`, of several
    each. A state that nobody knows is none."""

    state: str = ""
    label: str = ""
    pool: str = ""
    destination: str = ""
    q: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Selection":
        found = {name: str(values.get(name) or "").strip()[:LONGEST] for name in cls.__slots__}
        return cls(**found | {"state": found["state"] if found["state"] in STATES else ""})

    @property
    def query(self) -> str:
        """Returns the address of the list that shows it."""
        return urlencode({name: value for name, value in asdict(self).items() if value})

    def among(self, rows: Iterable[SettingRow]) -> list[SettingRow]:
        wanted = wanted_in(self.label)
        found = [
            row
            for row in rows
            if (not self.state or row.is_in(self.state))
            and (not wanted or has_labels(row.setting.labels, wanted))
            and self.pool in ("", row.setting.pool.name)
            and self.destination in ("", row.destination)
        ]
        return matching(found, self.q, lambda row: row.texts)


COLUMNS: tuple[Column[SettingRow], ...] = (
    Column("key", gettext_lazy("Setting"), lambda row: row.setting.key),
    Column("state", gettext_lazy("State"), lambda row: row.worst_first),
    Column("servers", gettext_lazy("Servers"), classes="least"),
    Column("day", gettext_lazy("Last 24 hours"), classes="less"),
    Column(
        "processed",
        gettext_lazy("Processed"),
        lambda row: row.handled if row.runs else None,
        largest_first=True,
        classes="num",
    ),
    Column(
        "failed",
        gettext_lazy("Failed"),
        lambda row: row.failed if row.runs else None,
        largest_first=True,
        classes="num",
    ),
    Column(
        "failure", gettext_lazy("Last failure"), lambda row: row.failed_at, largest_first=True, classes="less"
    ),
    Column(
        "waiting", gettext_lazy("Waiting"), lambda row: row.figures.waiting, largest_first=True, classes="num"
    ),
    Column(
        "delayed",
        gettext_lazy("Delayed"),
        lambda row: row.figures.delayed,
        largest_first=True,
        classes="num less",
    ),
    Column("dead", gettext_lazy("In DLQ"), lambda row: row.figures.dead, largest_first=True, classes="num"),
    Column("oldest", gettext_lazy("Oldest in DLQ"), lambda row: row.dead_since, classes="least"),
)


def settings_listing(request: HttpRequest, rows: Iterable[SettingRow]) -> Listing[SettingRow]:
    """Those that the address selects, the worst first, unless somebody asks for another order."""
    found = Selection.of(request.GET).among(rows)
    return listing(request, sorted(found, key=lambda row: row.worst_first), COLUMNS)


DAY = timedelta(days=1)


def with_curves(listed: Listing[SettingRow], now: datetime) -> Listing[SettingRow]:
    """The same with small curves of those on this page. Two queries."""
    rows = listed.rows
    scopes = {row.setting.pk: scope_of(setting=row.setting.pk) for row in rows if row.setting.takes_messages}
    found = series_of(scopes.values(), now - DAY, now, now) if scopes else {}
    curves = {pk: _curves(found[scope].points) for pk, scope in scopes.items()}
    listed.pages.object_list = [replace(row, curves=curves.get(row.setting.pk)) for row in rows]
    return listed


def _curves(points: Sequence[Point]) -> Curves:
    failed = [point.failed + point.temporary for point in points]
    return Curves(
        _small([point.succeeded for point in points], _("%(sum)s processed, peak %(most)s per hour"), "ok"),
        _small(failed, _("%(sum)s failed, peak %(most)s per hour"), "bad"),
        _small([point.waiting for point in points], _("waiting, peak %(most)s"), "info"),
        _small([point.dead for point in points], _("in DLQ, peak %(most)s"), "bad"),
    )


def _small(values: Sequence[int | None], text: str, tone: str) -> SafeString:
    """Nothing where there was nothing all day."""
    known = [value for value in values if value]
    if not known:
        return SafeString("")
    return sparkline(values, text % {"sum": number(sum(known)), "most": number(max(known))}, tone=tone)


def setting_rows(now: datetime, user: Any) -> list[SettingRow]:
    """Everything that is not of the broker comes from rows; its figures from `figures_for`, as old as they
    are."""
    settings = list(_settings())
    keys = [setting.pk for setting in settings]
    runs, facts, figures = open_runs(keys), facts_of(keys), figures_for(settings)
    held, stops = held_subscriptions(settings, user), stops_of(keys)
    drains = drains_of(keys, now)
    return [
        _row(
            setting,
            runs.get(setting.pk, []),
            stops.get(setting.pk, []),
            facts[setting.pk],
            figures[setting.key],
            held.get(setting.key),
            drain_text(drains.get(setting.pk)),
            now,
        )
        for setting in settings
    ]


def _settings() -> QuerySet[LaunchSetting]:
    failed = (
        FailureProtocol.objects.filter(setting=OuterRef("pk"))
        .order_by("-occurred_at")
        .values("occurred_at")[:1]
    )
    queue = Concat(Value(DEAD_LETTER_PREFIX), OuterRef("key"))
    dead = DeadLetter.objects.filter(queue=queue, state=LetterState.DEAD).order_by("pk")
    return LaunchSetting.objects.select_related("pool", "destination", "disabled_by").annotate(
        failed_at=Subquery(failed), dead_since=Subquery(dead.values("seen_at")[:1])
    )


def _row(
    setting: LaunchSetting,
    runs: list[OpenRun],
    stops: list[ServerStop],
    facts: SettingFacts,
    figures: Figures,
    held: HeldSubscription | None,
    drain: str,
    now: datetime,
) -> SettingRow:
    # What a person stopped on a server does not count for its state.
    wanted = not_stopped(runs, stops) if stops else runs
    dotted = [
        (_tone(run, setting, now), run) for run in wanted if run.wanted or run.state == RunPhase.INTERRUPTED
    ]
    # Of many servers those that need a look come first.
    if len(dotted) > MOST_DOTS:
        dotted.sort(key=lambda pair: TONES.index(pair[0]))
    return SettingRow(
        setting=setting,
        state=stopping_label(setting, None if figures.stale else figures.consumers)
        or setting_label(setting, wanted, now, facts),
        facts=facts,
        partial=is_partial(wanted, now),
        dots=[Dot(tone, _label(run, now)) for tone, run in dotted[:MOST_DOTS]],
        more_dots=max(0, len(dotted) - MOST_DOTS),
        runs=runs,
        figures=figures,
        failed_at=getattr(setting, "failed_at", None),
        dead_since=getattr(setting, "dead_since", None),
        held=held,
        stops=stops,
        drain=drain,
    )


def _tone(run: OpenRun, setting: LaunchSetting, now: datetime) -> str:
    if run.server.state(now) is not ServerState.ALIVE or run.state == RunPhase.INTERRUPTED:
        return "bad"
    return "ok" if at_work(run, setting) else "warn"


def _label(run: OpenRun, now: datetime) -> str:
    state = run.server.state(now)
    said = RunPhase(run.state).label if state is ServerState.ALIVE else state.label
    return f"{run.server.name}: {said}"
