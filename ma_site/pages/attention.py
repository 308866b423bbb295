"""Describes what needs attention now, worst first, each with what can be done about it."""

from datetime import datetime

from django.db.models import OuterRef, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

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
from alerts.models import Alert, AlertState, Severity
from alerts.pages.alerts import VIEW as SEE_ALERTS
from alerts.queries import MOST_COUNTED, open_alerts
from alerts.text import about as about_alert
from alerts.text import alert_label, one_line, what_to_do
from alerts.text import says as alert_says
from console.ui.amounts import ago, coarse, duration, number
from console.ui.page import Text, link
from dlq.queues.queries import QueueRow
from dlq.rights import GIVE_BACK_EVERYWHERE
from ma_site.pages.need import (
    COMPONENT,
    GROUP,
    QUEUE,
    SERVER,
    SETTING,
    Alerted,
    Attention,
    Need,
    by_subject,
    with_alerts,
)
from ma_site.pages.parts import Part
from ma_site.pages.table import SettingRow

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
    said = frozenset({"trip"})
    return Need("bad", "off", setting.key, why, link("setting", setting.key), acts, says_kinds=said)


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
    return Need("warn", "warn", failed.group.name, why, url, [(_("Open"), url)], GROUP)


# -- attention: open alerts ----------------------------------------------------------------------------------


# What is wrong with a component is said of it by its name on the health page.
COMPONENTS: dict[str, Text] = {
    "broker_away": gettext_lazy("Broker"),
    "broker_adopted": gettext_lazy("Broker"),
    "redis_away": "Redis",
    "beat_silent": gettext_lazy("Scheduler (beat)"),
    "feed_silent": gettext_lazy("Dead-letter indexer"),
    "feed_behind": gettext_lazy("Dead-letter indexer"),
    "pipeline_failed": gettext_lazy("Data pipeline"),
    "archive_damaged": gettext_lazy("Archive"),
    "certificate_expires": gettext_lazy("Certificates"),
    "backup_old": gettext_lazy("Backups"),
}


def of_alerts(request: HttpRequest) -> list[Alerted]:
    """Those that the badge counts."""
    if not request.user.has_perm(SEE_ALERTS):
        return []
    rows = open_alerts().filter(state=AlertState.OPEN).select_related("setting", "server")
    return [_alerted(alert) for alert in rows[:MOST_COUNTED]]


def _alerted(alert: Alert) -> Alerted:
    about, who, url = _subject_of(alert)
    says, page = f"{alert_label(alert)}: {alert_says(alert)}", about_alert(alert)
    tone = "bad" if alert.severity == Severity.BAD else "warn"
    need = Need(tone, "warn", who, says, url or page, [(_("Open"), page)], about, todo=what_to_do(alert))
    return Alerted(alert.kind, need, (_("Alert"), link("alert", alert.pk)))


def _subject_of(alert: Alert) -> tuple[str, str, str]:
    """Returns the kind, the name and the page of what it is about; of one that is about several settings the
    page is empty, and the name is that of its cause."""
    if alert.setting:
        return SETTING, alert.setting.key, link("setting", alert.setting.key)
    if alert.server:
        return SERVER, alert.server.name, link("server", alert.server.name)
    if alert.kind in COMPONENTS:
        return COMPONENT, str(COMPONENTS[alert.kind]), link("health")
    if queue := alert.facts.get("queue"):
        return QUEUE, str(queue), ""
    cause = alert.facts.get("type") or alert.facts.get("address") or alert_label(alert)
    return f"alert {alert.kind} {alert.subject}", one_line(cause), ""


# -- all of it -----------------------------------------------------------------------------------------------


def needs_of(
    request: HttpRequest, settings: list[SettingRow], dead: list[QueueRow], servers: list[ServerRow],
    parts: list[Part],
    now: datetime,
) -> list[Attention]:  # fmt: skip
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
    return by_subject(with_alerts(found, of_alerts(request)))


def _of_parts(parts: list[Part]) -> list[Need]:
    url, said = link("health"), frozenset({"beat_silent", "feed_silent", "broker_away"})
    return [
        Need(
            "bad" if part.state == "down" else "warn",
            "warn",
            str(part.name),
            part.says,
            url,
            [(_("Recommended action"), url)],
            COMPONENT,
            said,
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
        why = _("interrupted on %(servers)s; no other server is running it") % {
            "servers": ", ".join(given_up)
        }
        return Need("bad", "bad", setting.key, why, row.url, [(_("Open"), row.url)])
    if setting.enabled and row.state.tone in ("bad", "warn"):
        troubled = (run for run in row.runs if run.wanted and (run.problems or run.blocked))
        problem = next(filter(None, map(run_problem, troubled)), "")
        why = f"{row.state.word}: {problem}" if problem else str(row.state.word)
        said = frozenset({"setting_withheld"}) if row.facts.withheld else frozenset()
        return Need(
            row.state.tone, row.state.icon, setting.key, why, row.url, [(_("Open"), row.url)], says_kinds=said
        )
    return None


def _interrupted_alone(row: SettingRow, now: datetime) -> list[str]:
    """The servers that gave it up, where nothing else is at work; empty where something is, or nobody gave it
    up."""
    newest = newest_by_server(row.wanted_runs).values()
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
    return [
        need
        for row in rows
        if (row.expected or row.server.state(now) is ServerState.ALIVE) and (need := _of_server(row, now))
    ]


def _of_server(row: ServerRow, now: datetime) -> Need | None:
    server, url = row.server, link("server", row.server.name)

    def needs(tone: str, icon: str, why: str, *kinds: str) -> Need:
        acts = [(_("Open"), url)]
        return Need(tone, icon, server.name, why, url, acts, SERVER, frozenset(kinds))

    if server.last_seen_at is None:
        return needs(
            "warn", "new", _("no heartbeat yet: start a KMA with this server's token, or delete the server")
        )
    if row.note:
        return needs(
            "bad", "silent", row.note.says, "server_silent", "server_disobeying", "kma_without_broker"
        )
    if server.duty != Duty.ACTIVE:
        return needs("info", "pause", _on_other_duty(server, now))
    if server.spool_full:
        return needs("bad", "warn", _("spool is full: the server takes no more messages"), "spool_filling")
    if server.problems:
        return needs("warn", "warn", str(server.problems[0]))
    if row.skewed:
        skew = duration(abs(round(server.clock_skew_seconds, 1)))
        return needs("warn", "wait", _("clock differs from the site clock by %(time)s") % {"time": skew})
    return None


def _on_other_duty(server: Server, now: datetime) -> str:
    why = str(server.get_duty_display())
    if server.duty_since:
        why = _("%(duty)s for %(time)s") % {"duty": why, "time": coarse(now - server.duty_since)}
    if server.duty_by:
        why += f" · {server.duty_by}"
    if server.duty_reason:
        why += f" · {server.duty_reason}"
    if server.duty_until:
        why += " · " + _("uncordons %(when)s") % {"when": ago(server.duty_until, now)}
    return why


def _of_dead(request: HttpRequest, rows: list[QueueRow], now: datetime) -> list[Need]:
    """The largest queue first."""
    holding = [row for row in rows if row.exact or (row.exact is None and row.since)]
    return [_dead(request, row, now) for row in sorted(holding, key=lambda row: -row.size)]


def _dead(request: HttpRequest, row: QueueRow, now: datetime) -> Need:
    if row.exact is None:
        why = _("dead letters in the index: %(n)s") % {"n": row.indexed}
    else:
        why = ngettext("%(n)s dead letter", "%(n)s dead letters", row.exact) % {"n": number(row.exact)}
    if row.since:
        why += " · " + _("oldest: %(time)s") % {"time": coarse(now - row.since)}
    if row.top:
        why += f" · {row.top_share} % {row.top}"
    acts = [(_("Open"), row.url)]
    if row.setting and request.user.has_perm(GIVE_BACK_EVERYWHERE):
        acts.append((_("Replay…"), f"{link('give_back', row.key)}?all=1"))
    who, about = (row.key, SETTING) if row.setting else (row.queue, QUEUE)
    return Need("warn", "letter", who, why, row.url, acts, about, frozenset({"dead_letters_old"}))
