"""Describes what is watched of servers: silent ones, spools that fill, settings that their breaker switched
off, versions that are not supported, and reports about runs that a server never had."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.activations.queries import settings_not_allowed, withheld_runs
from agents.liveness import expected_servers
from agents.models import BreakerTrip, Server, Withheld
from agents.models.server import DISOBEYS_AFTER_SECONDS, lost_before
from agents.servers.admission import support_advice, support_problem, version_advice, version_problem
from alerts.kinds import AlertKind, Observation, Text
from alerts.models import Severity
from alerts.rules import AlertStep, Thresholds
from console.processes import seconds_since
from console.ui.amounts import duration, number, size
from console.ui.page import link
from failures.models import SpoolMark

MOST = 2000


def silent_servers(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Yields those that somebody counts on, and that were heard once."""
    servers = expected_servers().filter(last_seen_at__isnull=False).order_by("last_seen_at")
    for server in servers.prefetch_related("pools")[:MOST]:
        assert server.last_seen_at is not None
        seconds = max(0.0, (now - server.last_seen_at).total_seconds())
        facts = {
            "server": server.name,
            "last_seen_at": server.last_seen_at.isoformat(),
            **_refused_version(server),
        }
        yield _of_server(server, seconds, facts)


def disobeying_servers(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Yields those that are heard: a silent one is of the other kind."""
    servers = expected_servers().filter(last_seen_at__gt=lost_before(now)).order_by("desired_state_taken_at")
    for server in servers.prefetch_related("pools")[:MOST]:
        yield _of_server(server, server.seconds_disobeying(now), {"server": server.name})


def withheld_settings(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """One for each setting, however many servers should run it."""
    runs = (
        withheld_runs()
        .order_by("activation__setting__key", "pk")
        .values_list(
            "activation__setting", "activation__setting__key", "activation__setting__pool", "withheld_because"
        )
    )
    reported = set()
    # Also those of which no run is wanted now, such as one that waits for its schedule.
    kept = [
        (one.pk, one.key, one.pool_id, Withheld.AGENT_NOT_ALLOWED.value) for one in settings_not_allowed()
    ]
    for setting, key, pool, because in [*runs[:MOST], *kept[:MOST]]:
        if setting not in reported:
            reported.add(setting)
            facts = {"setting": key, "because": because}
            yield Observation(key, 1.0, setting=setting, pools=frozenset([pool]), facts=facts)


def filling_spools(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Yields what each server said last: the spool of a silent one is as full as it was."""
    servers = expected_servers().filter(spool_limit_bytes__gt=0).order_by("-spool_full", "-spool_bytes")
    for server in servers.prefetch_related("pools")[:MOST]:
        percent = 100.0 if server.spool_full else 100.0 * server.spool_bytes / server.spool_limit_bytes
        facts = {"server": server.name, "bytes": server.spool_bytes, "rows": server.spool_rows}
        yield _of_server(server, round(percent, 1), facts)


def silent_beat(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Its sign goes through Redis and the worker: one of the three is away, and whoever stands in for them
    looks."""
    seconds = seconds_since("beat", now)
    if seconds is not None:
        yield Observation("beat", max(0.0, seconds), facts={"process": "beat"})


def unsupported_kmas(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Yields those that are heard: a KMA whose wire is not spoken is silent."""
    servers = expected_servers().filter(last_seen_at__gt=lost_before(now)).order_by("name")
    for server in servers.prefetch_related("pools")[:MOST]:
        facts = {"server": server.name, "kma_version": server.kma_version}
        problem = support_problem(**facts)
        # An alert that closes keeps the version that it was about.
        yield _of_server(server, float(bool(problem)), facts if problem else {})


def _of_server(server: Server, value: float, facts: Mapping[str, Any]) -> Observation:
    pools = frozenset(pool.pk for pool in server.pools.all())
    return Observation(server.name, value, server=server.pk, pools=pools, facts=facts)


def open_trips(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """The opening is told by the notices that are written in the transaction of the trip itself."""
    for trip in BreakerTrip.objects.filter(ended_at=None).select_related("setting").order_by("-at")[:MOST]:
        facts = {"setting": trip.setting.key, "trip": trip.pk, "type": trip.exception_type}
        pools = frozenset([trip.setting.pool_id])
        yield Observation(str(trip.pk), 1.0, setting=trip.setting_id, pools=pools, facts=facts)


def _refused_version(server: Server) -> dict[str, int]:
    return {} if server.refused_version is None else {"refused_version": server.refused_version}


def _server_url(facts: Mapping[str, Any]) -> str:
    return reverse("admin:server", args=[facts["server"]])


def _silent(facts: Mapping[str, Any], value: float) -> str:
    if (version := facts.get("refused_version")) is not None:
        return version_problem(facts["server"], version)
    return _("No heartbeat from server %(server)s for %(time)s.") % {
        "server": facts["server"],
        "time": duration(round(value)),
    }


def _silent_advice(facts: Mapping[str, Any]) -> Text:
    version = facts.get("refused_version")
    return SILENT.what_to_do if version is None else version_advice(version)


def _disobeying(facts: Mapping[str, Any], value: float) -> str:
    text = _("Server %(server)s is online but has not accepted the desired state for %(time)s.")
    return text % {"server": facts["server"], "time": duration(round(value))}


def _withheld(facts: Mapping[str, Any], value: float) -> str:
    text = _("“%(key)s” is enabled but is not sent to its servers: %(why)s.")
    return text % {"key": facts["setting"], "why": _why(facts["because"])}


def _why(code: str) -> str:
    return str(Withheld(code).label) if code in Withheld.values else code


def _spool(facts: Mapping[str, Any], value: float) -> str:
    text = _("The spool of server %(server)s is %(percent)s%% full (%(size)s).")
    return text % {"server": facts["server"], "percent": number(value), "size": size(facts["bytes"])}


def _tripped(facts: Mapping[str, Any], value: float) -> str:
    if not facts["type"]:
        return _("The breaker disabled the setting “%(key)s”.") % {"key": facts["setting"]}
    text = _("The breaker disabled “%(key)s”: %(type)s.")
    return text % {"key": facts["setting"], "type": facts["type"]}


SILENT = AlertKind(
    name="server_silent",
    label=gettext_lazy("Server not responding"),
    severity=Severity.BAD,
    # After a pause of the MA itself every server seems silent, until it is heard a moment later.
    limits=Thresholds(60.0, 15.0, open_after=timedelta(seconds=20), close_after=timedelta(seconds=60)),
    unit=gettext_lazy("seconds since the last heartbeat"),
    says=_silent,
    measure=lambda value: duration(round(value)),
    what_to_do=gettext_lazy(
        "Check that the KMA is running and can reach the MA (./ma status, ./ma logs). "
        "Meanwhile, the KMA keeps its records. Single-server settings continue on other "
        "servers in the pool. If the server is permanently gone, delete it."
    ),
    url=_server_url,
    observe=silent_servers,
    advice=_silent_advice,
)
DISOBEYING = AlertKind(
    name="server_disobeying",
    label=gettext_lazy("Server not accepting the desired state"),
    severity=Severity.BAD,
    limits=Thresholds(
        DISOBEYS_AFTER_SECONDS, 15.0, open_after=timedelta(seconds=20), close_after=timedelta(seconds=30)
    ),
    unit=gettext_lazy("seconds since the desired state was last accepted"),
    says=_disobeying,
    measure=lambda value: duration(round(value)),
    what_to_do=gettext_lazy(
        "Enabling or disabling settings has no effect on this server. Check the site log "
        "(./ma logs web) for heartbeat errors. Check the KMA log (./ma logs kma-NAME) for a "
        "full disk. To stop all work on the server immediately, stop the KMA."
    ),
    url=_server_url,
    observe=disobeying_servers,
)
WITHHELD = AlertKind(
    name="setting_withheld",
    label=gettext_lazy("Setting not sent to its servers"),
    severity=Severity.BAD,
    limits=Thresholds(1.0, 1.0, open_after=timedelta(seconds=10), close_after=timedelta(seconds=10)),
    unit=gettext_lazy("1 while the setting is not sent to its servers"),
    says=_withheld,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "The setting page shows what to correct. Until you correct it, the setting does not "
        "run on any server, and its messages wait. All other settings continue to run."
    ),
    url=lambda facts: reverse("admin:setting", args=[facts["setting"]]),
    observe=withheld_settings,
)
SPOOL = AlertKind(
    name="spool_filling",
    label=gettext_lazy("Spool filling up"),
    severity=Severity.BAD,
    limits=Thresholds(80.0, 60.0, open_after=timedelta(seconds=30), close_after=timedelta(seconds=60)),
    unit=gettext_lazy("percent of the limit"),
    says=_spool,
    measure=lambda value: f"{number(value)}\N{NO-BREAK SPACE}%",
    what_to_do=gettext_lazy(
        "A server with a full spool stops receiving messages. Check the Health page and the "
        "KMA log to find out why the MA is not accepting records. Then raise the spool limit "
        "or enlarge the disk."
    ),
    url=_server_url,
    observe=filling_spools,
)
TRIP = AlertKind(
    name="trip",
    label=gettext_lazy("Breaker trip"),
    severity=Severity.BAD,
    limits=Thresholds(1.0, 1.0),
    unit=gettext_lazy("1 while the setting is disabled"),
    says=_tripped,
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "Check the failures behind the trip, fix the cause, then enable the setting. Its "
        "messages wait until then."
    ),
    url=lambda facts: reverse("admin:trip", args=[facts["trip"]]),
    observe=open_trips,
    notified_steps=frozenset({AlertStep.REPEATED, AlertStep.CLOSED}),
)
UNSUPPORTED = AlertKind(
    name="kma_unsupported",
    label=gettext_lazy("KMA version not supported"),
    severity=Severity.WARNING,
    # Longer than a rolling restart may have both versions: the site first, then each KMA.
    limits=Thresholds(1.0, 1.0, open_after=timedelta(minutes=10), close_after=timedelta(seconds=30)),
    unit=gettext_lazy("1 while the KMA's version is not supported"),
    says=lambda facts, value: support_problem(facts["server"], facts["kma_version"]),
    measure=lambda value: "",
    what_to_do=gettext_lazy(
        "Upgrade the site first, then its KMAs. Until then, the KMA continues as far as the site "
        "understands its reports."
    ),
    url=_server_url,
    observe=unsupported_kmas,
    advice=lambda facts: support_advice(facts["kma_version"]),
)
BEAT = AlertKind(
    name="beat_silent",
    label=gettext_lazy("Scheduler stopped"),
    severity=Severity.BAD,
    limits=Thresholds(60.0, 30.0, open_after=timedelta(seconds=10), close_after=timedelta(seconds=60)),
    unit=gettext_lazy("seconds since the last heartbeat"),
    says=lambda facts, value: (
        _("Beat, the worker or Redis is down: no scheduled tasks have run for %(time)s.")
        % {"time": duration(round(value))}
    ),
    measure=lambda value: duration(round(value)),
    what_to_do=gettext_lazy(
        "Replays, retention, schedules and notifications are delayed; agents keep running. "
        "Start the stopped component. To find it, run ./ma status, ./ma logs redis, ./ma logs "
        "beat and ./ma logs worker."
    ),
    url=lambda facts: reverse("admin:health"),
    observe=silent_beat,
)


# -- the alert about servers that report of runs which they never had ----------------------------------------


QUIET_REPORTS = timedelta(hours=24)
MOST_REPORTS = 500


def foreign_reports(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Yields for each server whose reports were set aside lately how many, of the spools that brought
    them."""
    rows = SpoolMark.objects.filter(set_aside__gt=0, set_aside_at__gt=now - QUIET_REPORTS).order_by(
        "-set_aside_at"
    )
    counts: dict[str, int] = {}
    servers: dict[str, int] = {}
    for name, pk, count in rows.values_list("server__name", "server", "set_aside")[:MOST_REPORTS]:
        counts[name], servers[name] = counts.get(name, 0) + count, pk
    for name, count in counts.items():
        yield Observation(name, float(count), server=servers[name], facts={"server": name})


def _set_aside(facts: Mapping[str, Any], value: float) -> str:
    text = ngettext(
        "%(server)s sent %(n)s report about an instance that never ran on it.",
        "%(server)s sent %(n)s reports about instances that never ran on it.",
        round(value),
    )
    return text % {"server": facts["server"], "n": number(round(value))}


SET_ASIDE = AlertKind(
    name="reports_set_aside",
    label=gettext_lazy("Reports about other servers' instances"),
    severity=Severity.BAD,
    limits=Thresholds(1.0, 1.0),
    unit=gettext_lazy("reports set aside"),
    says=_set_aside,
    measure=number,
    what_to_do=gettext_lazy(
        "Someone else may be using this server's token. Check which host uses it. If in "
        "doubt, revoke the token and issue a new one. The reports were not applied. The "
        "server page lists them. The alert closes after a day without new reports."
    ),
    url=lambda facts: link("server", facts["server"]),
    observe=foreign_reports,
)

KINDS = (SILENT, DISOBEYING, UNSUPPORTED, WITHHELD, SPOOL, TRIP, BEAT, SET_ASIDE)
