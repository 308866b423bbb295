"""A setting that is stopped on some servers: who stopped it, and the buttons beside its instances."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from agents.activations.queries import OpenRun, newest_by_server
from agents.models import LaunchSetting, RunPhase, ServerStop
from agents.pages.states import RunRow
from agents.pools.rights import why_not
from console.ui.amounts import number
from console.ui.labels import Button
from console.ui.page import link

NAMED = 3
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
    if len(stops) > NAMED:
        return _("stopped on %(n)s servers") % {"n": number(len(stops))}
    return ", ".join(
        (_("stopped on %(server)s by %(person)s") if stop.by else _("stopped on %(server)s"))
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
    text, icon = (_("Stop here…"), "pause") if verb == "stop_on" else (_("Start here…"), "play")
    url = link(f"setting_{verb}", setting.key, server)
    return Button(f"{verb}-{server}", text, url, icon, "", why_not(user, "stop", setting))
