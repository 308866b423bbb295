"""Describes what needs a person now, worst first, each with what can be done about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.activations.queries import newest_by_server
from agents.models import (
    BreakerTrip,
    Duty,
    GroupActivation,
    GroupActivationState,
    ProvisionState,
    RunPhase,
    Server,
    ServerState,
)
from agents.pages import trips
from agents.pages.groups import VIEW as SEE_GROUPS
from agents.pages.servers import ServerRow
from agents.pages.states import at_work
from agents.pages.trips import cause_of_trip
from agents.pools.rights import may
from agents.templatetags.agents import run_problem
from console.ui.amounts import ago, coarse, duration, number
from console.ui.page import Text, link
from dlq.queues.queries import QueueRow
from dlq.rights import GIVE_BACK_EVERYWHERE
from ma_site.pages.parts import Part
from ma_site.pages.table import SettingRow

# -- one row of what needs a person --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Need:
    """`acts` are the buttons: text and address."""

    tone: str
    icon: str
    who: str
    why: Text
    url: str
    acts: Sequence[tuple[Text, str]] = ()


# -- attention: settings off by their breaker, groups whose last run failed ----------------------------------


MOST_LAUNCHING = 50


def of_trips(request: HttpRequest, now: datetime) -> list[Need]:
    if not request.user.has_perm(trips.VIEW):
        return []
    open_trips = BreakerTrip.objects.filter(ended_at=None, setting__enabled=False).select_related(
        "setting", "group"
    )
    return [
        _tripped(request, trip, now)
        for trip in open_trips.prefetch_related("interruptions__server")[:MOST_LAUNCHING]
    ]


def _tripped(request: HttpRequest, trip: BreakerTrip, now: datetime) -> Need:
    setting, why_url = trip.setting, link("trip", trip.pk)
    facts = {
        "time": coarse(now - setting.state_since),
        "cause": cause_of_trip(trip, list(trip.interruptions.all())),
    }
    why = _("disabled by the breaker %(time)s ago: %(cause)s") % facts
    acts: list[tuple[Text, str]] = [(_("Reason"), why_url)]
    if trip.group:
        why += " · " + _("group %(group)s is disabled too") % {"group": trip.group.name}
        acts.append((_("Open group"), link("group", trip.group.name)))
    elif may(request.user, "enable", setting):
        acts.append((_("Enable…"), link("setting_enable", setting.key)))
    return Need("bad", "off", setting.key, why, link("setting", setting.key), acts)


def of_groups(request: HttpRequest, now: datetime) -> list[Need]:
    """Those whose newest pass has failed; a trip of a member is told by the trip."""
    if not request.user.has_perm(SEE_GROUPS):
        return []
    newest = GroupActivation.objects.filter(group=OuterRef("group")).order_by("-started_at").values("pk")[:1]
    failed = GroupActivation.objects.filter(state=GroupActivationState.FAILED, pk=Subquery(newest))
    off_by_trip = BreakerTrip.objects.filter(ended_at=None).exclude(group=None).values("group")
    failed = failed.exclude(group__in=off_by_trip).select_related("group")
    return [_failed(each, now) for each in failed.order_by("-ended_at")[:MOST_LAUNCHING]]


def _failed(failed: GroupActivation, now: datetime) -> Need:
    url = link("group", failed.group.name)
    why = _("the last group run failed %(time)s ago") % {
        "time": coarse(now - (failed.ended_at or failed.started_at))
    }
    if failed.reason:
        why += f": {failed.reason}"
    return Need("warn", "warn", failed.group.name, why, url, [(_("Open"), url)])


WORST_FIRST = ("bad", "warn", "info", "off")
MOST = 16


def needs_of(
    request: HttpRequest, settings: list[SettingRow], dead: list[QueueRow], servers: list[ServerRow],
    parts: list[Part],
    now: datetime,
) -> list[Need]:  # fmt: skip
    """A silent server that somebody counts on stays, however long ago it was heard: only a person can say
    that it is gone for good, by deleting it."""
    found = [
        *_of_parts(parts),
        *of_trips(request, now),
        *_of_settings(request, settings, now),
        *of_groups(request, now),
        *_of_servers(servers, now),
        *_of_dead(request, dead, now),
    ]
    return sorted(found, key=lambda need: WORST_FIRST.index(need.tone))


def _of_parts(parts: list[Part]) -> list[Need]:
    url = link("health")
    return [
        Need(
            "bad" if part.state == "down" else "warn",
            "warn",
            str(part.name),
            part.says,
            url,
            [(_("Recommended action"), url)],
        )
        for part in parts
        if part.state != "ok"
    ]


def _of_settings(request: HttpRequest, rows: list[SettingRow], now: datetime) -> list[Need]:
    return [need for row in rows if (need := _of_setting(request, row, now))]


def _of_setting(request: HttpRequest, row: SettingRow, now: datetime) -> Need | None:
    setting = row.setting
    if setting.provision_state == ProvisionState.FAILED:
        why = _("not created on the broker: %(problem)s") % {"problem": setting.provision_problem}
        return Need("bad", "warn", setting.key, why, row.url, [(_("Open"), row.url)])
    if not setting.enabled and (row.facts.tripped or row.facts.with_group):
        return None  # told by the trip
    waiting = (row.figures.waiting or 0) + (row.figures.delayed or 0)
    if not setting.enabled and waiting:
        return _off(request, row, waiting, now)
    if setting.enabled and (given_up := _interrupted_alone(row, now)):
        why = _("interrupted on %(servers)s; no other server runs it") % {"servers": ", ".join(given_up)}
        return Need("bad", "bad", setting.key, why, row.url, [(_("Open"), row.url)])
    if setting.enabled and row.state.tone in ("bad", "warn"):
        troubled = (run for run in row.runs if run.wanted and (run.problems or run.blocked))
        problem = next(filter(None, map(run_problem, troubled)), "")
        why = f"{row.state.word}: {problem}" if problem else str(row.state.word)
        return Need(row.state.tone, row.state.icon, setting.key, why, row.url, [(_("Open"), row.url)])
    return None


def _interrupted_alone(row: SettingRow, now: datetime) -> list[str]:
    """The servers that gave it up, where nothing else is at work; empty where something is, or nobody gave it
    up."""
    newest = newest_by_server(row.runs).values()
    alive = [run for run in newest if run.wanted and run.server.state(now) is ServerState.ALIVE]
    if any(at_work(run, row.setting) for run in alive):
        return []
    return sorted(run.server.name for run in newest if run.state == RunPhase.INTERRUPTED)


def _off(request: HttpRequest, row: SettingRow, waiting: int, now: datetime) -> Need:
    setting = row.setting
    text = ngettext(
        "disabled for %(time)s, %(n)s message waiting",
        "disabled for %(time)s, %(n)s messages waiting",
        waiting,
    )
    why = text % {"time": coarse(now - setting.state_since), "n": number(waiting)}
    if setting.disabled_reason:
        why += f" · {setting.disabled_reason}"
    acts = [(_("Open"), row.url)]
    if not row.facts.member and may(request.user, "enable", setting):
        acts.append((_("Enable…"), link("setting_enable", setting.key)))
    return Need("warn", "off", setting.key, why, row.url, acts)


def _of_servers(rows: list[ServerRow], now: datetime) -> list[Need]:
    found = []
    for row in rows:
        server, url = row.server, link("server", row.server.name)
        look = [(_("Open"), url)]
        if not row.expected and server.state(now) is not ServerState.ALIVE:
            continue
        if server.last_seen_at is None:
            why = _("no heartbeat yet: start a KMA with its token, or delete the server")
            found.append(Need("warn", "new", server.name, why, url, look))
        elif row.note:
            found.append(Need("bad", "silent", server.name, row.note.says, url, look))
        elif server.duty != Duty.ACTIVE:
            found.append(_on_other_duty(server, url, now))
        elif server.spool_full:
            found.append(
                Need(
                    "bad",
                    "warn",
                    server.name,
                    _("spool is full: the server takes no more messages"),
                    url,
                    look,
                )
            )
        elif server.problems:
            found.append(Need("warn", "warn", server.name, str(server.problems[0]), url, look))
        elif row.skewed:
            why = _("clock differs from the site clock by %(time)s") % {
                "time": duration(abs(round(server.clock_skew_seconds, 1)))
            }
            found.append(Need("warn", "wait", server.name, why, url, look))
    return found


def _on_other_duty(server: Server, url: str, now: datetime) -> Need:
    why = server.get_duty_display()
    if server.duty_since:
        why = _("%(duty)s for %(time)s") % {"duty": why, "time": coarse(now - server.duty_since)}
    if server.duty_by:
        why += f" · {server.duty_by}"
    if server.duty_reason:
        why += f" · {server.duty_reason}"
    if server.duty_until:
        why += " · " + _("back %(when)s") % {"when": ago(server.duty_until, now)}
    return Need("info", "pause", server.name, why, url, [(_("Open"), url)])


def _of_dead(request: HttpRequest, rows: list[QueueRow], now: datetime) -> list[Need]:
    return [_dead(request, row, now) for row in rows if row.exact or (row.exact is None and row.since)]


def _dead(request: HttpRequest, row: QueueRow, now: datetime) -> Need:
    if row.exact is None:
        why = _("dead letters from the index: %(n)s") % {"n": row.indexed}
    else:
        why = ngettext("%(n)s dead letter", "%(n)s dead letters", row.exact) % {"n": number(row.exact)}
    if row.since:
        why += " · " + _("oldest %(time)s") % {"time": coarse(now - row.since)}
    if row.top:
        why += f" · {row.top_share} % {row.top}"
    acts = [(_("Open"), row.url)]
    if row.setting and request.user.has_perm(GIVE_BACK_EVERYWHERE):
        acts.append((_("Replay…"), f"{link('give_back', row.key)}?all=1"))
    return Need("warn", "letter", row.key if row.setting else row.queue, why, row.url, acts)
