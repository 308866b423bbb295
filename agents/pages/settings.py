"""The page of one launch setting: it whole, with what can be done, and where it is stopped."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Prefetch, Sum
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from agents.activations.queries import OpenRun, newest_by_server, open_runs, why_not_sent, withheld_runs
from agents.activations.rules.outcome import is_partial
from agents.destinations import redelivery
from agents.models import (
    Activation,
    ActivationState,
    LaunchSetting,
    OfferedAgent,
    Run,
    RunPhase,
    ServerStop,
    Withheld,
)
from agents.models.labels import label_words
from agents.models.parameters import DEEPEST_PARAMETERS
from agents.pages import setting_fields
from agents.pages.states import (
    ACTIVATIONS,
    PROVISIONED,
    RunRow,
    drain_line,
    facts_of,
    run_rows,
    setting_label,
    stopping_label,
)
from agents.pools.rights import may, may_anywhere, why_not
from agents.provisioning.queue_counts import figures_of
from agents.provisioning.subscriptions import drains_of
from agents.schedules.queries import scheduled
from agents.settings.operations import DisableSetting, EnableSetting, RetryMessage, RunSetting, StopSetting
from console.operations.web import operation_buttons
from console.reasons import NO_REASON, Reason
from console.ui.amounts import number
from console.ui.charts.chart import sparkline
from console.ui.page import Button, link, needs, page, render_panels

# -- a setting that is stopped on some servers ---------------------------------------------------------------
# Who stopped it, and the buttons beside its instances.


NAMED_SERVERS = 3
STOPS = ServerStop.objects.select_related("server", "by").order_by("server__name")


@dataclass(frozen=True, slots=True)
class StopRow:
    """A stop with its button."""

    stop: ServerStop
    start: Button


def stops_of(settings: Iterable[int]) -> dict[int, list[ServerStop]]:
    """Returns the stops of these settings, by setting and the server's name. One query."""
    found: dict[int, list[ServerStop]] = defaultdict(list)
    for stop in STOPS.filter(setting__in=list(settings)):
        found[stop.setting_id].append(stop)
    return found


def not_stopped(runs: Iterable[OpenRun], stops: Collection[ServerStop]) -> list[OpenRun]:
    """Those on servers where the setting is wanted."""
    stopped = {stop.server_id for stop in stops}
    return [run for run in runs if run.server_id not in stopped]


def stopped_text(stops: Sequence[ServerStop]) -> str:
    """`stopped on srv-2 by alice, on srv-3 by bob`; empty where there is none."""
    if len(stops) > NAMED_SERVERS:
        return gettext("stopped on several servers (%(n)s)") % {"n": number(len(stops))}
    return ", ".join(
        (gettext("stopped on %(server)s by %(person)s") if stop.by else gettext("stopped on %(server)s"))
        % {"server": stop.server.name, "person": stop.by}
        for stop in stops
    )


def stop_rows(setting: LaunchSetting, stops: Collection[ServerStop], user: Any) -> list[StopRow]:
    return [StopRow(stop, _button("start_on", setting, stop.server.name, user)) for stop in stops]


def with_stops(
    rows: Sequence[RunRow], setting: LaunchSetting, stops: Collection[ServerStop], user: Any
) -> list[RunRow]:
    """The same with the stop of each server. The newest instance there has the button, while it is
    open or interrupted."""
    stopped = {stop.server_id: stop for stop in stops}
    newest = {run.pk for run in newest_by_server(row.run for row in rows).values()}
    found = []
    for row in rows:
        run, stop = row.run, stopped.get(row.run.server_id)
        works = (run.wanted and run.closed_at is None) or run.state == RunPhase.INTERRUPTED
        asks = setting.enabled and stop is None and run.pk in newest and works
        button = _button("stop_on", setting, run.server.name, user) if asks else None
        found.append(replace(row, stop=stop, stop_button=button))
    return found


def _button(verb: str, setting: LaunchSetting, server: str, user: Any) -> Button:
    text, icon = (gettext("Stop here…"), "pause") if verb == "stop_on" else (gettext("Start here…"), "play")
    url = link(f"setting_{verb}", setting.key, server)
    return Button(f"{verb}-{server}", text, url, icon, "", why_not(user, "stop", setting))


# -- failures of activations by server, as small bars: one query for a page of activations -------------------


# More bars than people can tell apart: of a larger pool those with the most failures.
MOST_BARS = 30
NAMED = 6


@dataclass(frozen=True, slots=True)
class ByServer:
    """The small bars name the servers with the most failures."""

    spark: SafeString
    total: int


def failures_by_server(activations: Sequence[Activation]) -> dict[UUID, ByServer]:
    """Returns them by activation; those in which nothing failed are left out."""
    rows = Run.objects.filter(activation__in=[activation.pk for activation in activations]).order_by()
    counts: dict[UUID, dict[str, int]] = defaultdict(dict)
    for key, server, failed in rows.values_list("activation_id", "server__name").annotate(sum=Sum("failed")):
        counts[key][server] = failed
    return {key: _drawn(of_one) for key, of_one in counts.items() if any(of_one.values())}


def _drawn(counts: dict[str, int]) -> ByServer:
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{server}: {number(count)}" for server, count in most[:NAMED] if count]
    left_out = sum(1 for _server, count in most[NAMED:] if count)
    if left_out:
        words.append(gettext("servers not shown: %(n)s") % {"n": number(left_out)})
    shown = dict(most[:MOST_BARS])
    bars = [shown[server] for server in sorted(shown)]
    return ByServer(sparkline(bars, ", ".join(words), going_on=False), sum(bars))


# -- why a setting is not sent to its servers, in the reader's language --------------------------------------


@dataclass(frozen=True, slots=True)
class Note:
    why: str
    what_to_do: str


WHY: dict[str, str | Promise] = {
    Withheld.PARAMETERS_TOO_DEEP: _("The parameters are nested too deeply to be sent to a server."),
    Withheld.PARAMETERS_UNREADABLE: _("The parameters cannot be read from the database."),
    Withheld.AGENT_NOT_ALLOWED: _("The pool does not allow the agent."),
    Withheld.CANNOT_BE_SENT: _("The data for the setting's servers cannot be prepared."),
}
WHAT_TO_DO: dict[str, str | Promise] = {
    Withheld.PARAMETERS_TOO_DEEP: _(
        "Reduce the nesting to at most %(most)s levels. Until then, the setting does not run on any server."
    ),
    Withheld.PARAMETERS_UNREADABLE: _(
        "Edit the setting and enter the parameters again. Until then, the setting does not run on any server."
    ),
    Withheld.AGENT_NOT_ALLOWED: _(
        "Choose an allowed agent, or allow this one in the pool. Until then, the setting does "
        "not run on any server."
    ),
    Withheld.CANNOT_BE_SENT: _(
        "The site log shows the cause: ./ma logs web. Until the cause is fixed, the setting "
        "does not run on any server."
    ),
}


def withheld_note(setting: LaunchSetting) -> Note | None:
    """Also of a setting that is off: it could not be enabled."""
    found = (
        withheld_runs()
        .filter(activation__setting=setting)
        .order_by("pk")
        .values_list("withheld_because", flat=True)
    )
    code = why_not_sent(setting) or found.first()
    if not code:
        return None
    return Note(str(WHY[code]), str(WHAT_TO_DO[code]) % {"most": DEEPEST_PARAMETERS})


VIEW = "agents.view_launchsetting"
SHOWN_CHANGES = 15
SHOWN_ACTIVATIONS = 10


@require_safe
@needs(VIEW)
def setting_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting = _setting(key)
    now = timezone.now()
    servers = list(setting.pool.servers.all())
    offered = list(OfferedAgent.objects.filter(name=setting.agent, server__in=servers))
    shown = list(setting.activations.all()[:SHOWN_ACTIVATIONS])
    current = next(iter(shown), None)
    member = getattr(setting, "membership", None)
    stops = list(setting.server_stops.all())
    runs = not_stopped(open_runs([setting.pk]).get(setting.pk, []), stops)
    facts, figures, withheld = facts_of([setting.pk])[setting.pk], figures_of(setting), withheld_note(setting)
    facts = replace(facts, withheld=withheld is not None)
    failed = failures_by_server(shown)
    return page(
        request,
        "agents/setting.html",
        title=setting.key,
        section="settings",
        crumbs=[(gettext("Settings"), link("settings"))],
        setting=setting,
        labels=label_words(setting.labels),
        state=stopping_label(setting, figures.consumers) or setting_label(setting, runs, now, facts),
        partial=is_partial(runs, now),
        stopped=stopped_text(stops) if setting.enabled else "",
        stops=stop_rows(setting, stops, request.user),
        provisioned=PROVISIONED[setting.provision_state],
        groups=setting_fields.groups(setting, servers, offered),
        warnings=setting_fields.breaker_warnings(setting),
        preview=redelivery.preview_of(setting) if setting.takes_messages else None,
        figures=figures,
        drain=drain_line(drains_of([setting.pk], now).get(setting.pk)),
        runs=with_stops(run_rows(_runs_of(current), setting, now), setting, stops, request.user),
        current=current,
        activations=[(each, ACTIVATIONS[each.state], failed.get(each.pk)) for each in shown],
        changes=setting.changes.select_related("by", "server", "activation")[:SHOWN_CHANGES],
        buttons=operation_buttons(
            request.user, setting, EnableSetting, RetryMessage, StopSetting, RunSetting, DisableSetting
        ),
        group=member.group if member else None,
        schedule=scheduled(setting, now),
        pending=pending_reason(current),
        withheld=withheld,
        stopping=stopping_note(setting, figures.consumers),
        notes=render_panels("setting_notes", request, setting),
        trip=setting.trips.filter(ended_at=None).first() if not setting.enabled else None,
        live_panels=render_panels("setting_live", request, setting),
        whole_panels=render_panels("setting_whole", request, setting),
        panels=render_panels("setting", request, setting),
        may_change=may(request.user, "edit", setting),
        may_add=may_anywhere(request.user, "add"),
    )


def _runs_of(activation: Activation | None) -> list[Run]:
    return (
        list(activation.runs.select_related("server").order_by("server__name", "epoch")) if activation else []
    )


def _setting(key: str) -> LaunchSetting:
    """Its stops are read once, for the panel of the breaker too."""
    rows = LaunchSetting.objects.select_related("pool", "destination", "disabled_by", "membership__group")
    return get_object_or_404(rows.prefetch_related(Prefetch("server_stops", STOPS)), key=key)


def pending_reason(activation: Activation | None) -> Reason:
    """Returns why the activation that is open does not run anywhere yet; empty for any other."""
    if activation is None or activation.state != ActivationState.PENDING:
        return NO_REASON
    reason: Reason = activation.reason
    return reason


def stopping_note(setting: LaunchSetting, consumers: int | None) -> str:
    """Returns what a disabled setting waits for; empty where nothing consumes."""
    if setting.enabled or not consumers:
        return ""
    text = ngettext(
        "Disabled, but %(n)s consumer of its subscription is still open and may process "
        "messages. If an instance below is still stopping, the consumer belongs to it. "
        "Otherwise it belongs to another client.",
        "Disabled, but %(n)s consumers of its subscription are still open and may process "
        "messages. If instances below are still stopping, the consumers belong to them. "
        "Otherwise they belong to another client.",
        consumers,
    )
    return text % {"n": number(consumers)}
