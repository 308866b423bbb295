"""The health page: each part of the house ok, degraded or down, since when, and what to do."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext
from django.views.decorators.http import require_safe

from agents.liveness import expected_servers
from agents.models import Server, ServerState
from agents.pages.servers import ServerNote, note_of, runs_without_broker
from agents.provisioning.queue_counts import broker_away_since
from agents.site.components import ping
from alerts.evaluation import late_kinds
from console.leases.queries import place_of
from console.processes import last_heartbeat
from console.ui.amounts import coarse, number
from console.ui.page import link, needs, page
from failures.models import RefusedRecord
from ma_site.pages.parts import (
    DEGRADED,
    DOWN,
    OK,
    SHOWN,
    UNUSED,
    Part,
    address_parts,
    archive_parts,
    backup_parts,
    broker_part,
    index_part,
    pipeline_part,
    provisioning_part,
    unassigned_part,
    undelivered_parts,
    unreadable_parts,
)
from retention.models import RetentionRun, RetentionState
from retention.worker import EVERY as RETENTION_EVERY

VIEW = "agents.view_server"
# Beat and feed give a sign every few seconds: past this one of them stands still.
LATE = timedelta(seconds=30)
RETENTION_LATE = 3 * RETENTION_EVERY
SLOW_SECONDS = 0.5
# Of refused records: as many are counted, and as many servers named.
MOST_REFUSED = 1000
REFUSED_SERVERS = 3


@require_safe
@needs(VIEW)
def health_page(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()
    parts = [part for _code, part in components(now)]
    servers = server_parts(now)
    return page(
        request,
        "ma_site/health.html",
        title=_("Health"),
        section="health",
        parts=parts,
        overall=SHOWN[overall(parts, servers)],
        servers=servers,
    )


def components(now: datetime) -> list[tuple[str, Part]]:
    """Each with its code for programs; asks the broker and Redis, each for a second or two at most."""
    found: dict[str, list[Part]] = {
        "database": [_database()],
        "redis": [_redis()],
        "broker": [broker_part()],
        **{name: [_process(name, now)] for name in PROCESSES},
        "index": [index_part()],
        "unassigned": [unassigned_part()],
        "unreadable": unreadable_parts(),
        "undeliverable": undelivered_parts(),
        "provisioning": [provisioning_part()],
        "addresses": address_parts(now),
        "records": _records(now),
        "retention": [_retention(now)],
        "pipeline": [pipeline_part(now)],
        "archive": archive_parts(),
        "backup": backup_parts(now),
        "alerts": [_alerts(now)],
    }
    return [(code, part) for code, parts in found.items() for part in parts]


def overall(parts: list[Part], servers: list[Part]) -> str:
    """The worst of the parts. A server that is missing degrades the house, others go on: as /healthz/
    says."""
    states = {part.state for part in parts}
    states |= {DEGRADED for server in servers if server.state in (DOWN, DEGRADED)}
    return next((state for state in (DOWN, DEGRADED) if state in states), OK)


def quick_parts(now: datetime) -> list[Part]:
    """Returns what the overview asks for: rows and what is known already, no call to another process."""
    parts = [_process(name, now) for name in PROCESSES]
    away = broker_away_since()
    if away:
        says = _("no response for %(time)s; figures are out of date") % {"time": coarse(now - away)}
        parts.append(Part(_("Broker"), DOWN, says, since=away))
    return parts


def _timed(check: Callable[[], object]) -> float:
    started = time.monotonic()
    check()
    return time.monotonic() - started


def _milliseconds(seconds: float) -> str:
    return _("responds in %(n)s ms") % {"n": number(seconds * 1000, 2)}


def _database() -> Part:
    def ask() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    seconds = _timed(ask)
    state = OK if seconds < SLOW_SECONDS else DEGRADED
    return Part(_("Database"), state, f"{connection.display_name} · {_milliseconds(seconds)}")


def _redis() -> Part:
    try:
        seconds = _timed(lambda: ping(settings.MA_REDIS_URL))
    except OSError as error:
        says = _("no response: %(problem)s") % {"problem": error}
        todo = _(
            "Workers receive no jobs. Servers learn of changes only by polling (every 2 s). Start "
            "Redis. To find the cause, run ./ma status and ./ma logs redis."
        )
        return Part("Redis", DOWN, says, todo)
    return Part("Redis", OK, _milliseconds(seconds))


PROCESSES = ("beat", "feed")


def _process(name: str, now: datetime) -> Part:
    labels = {"beat": _("Scheduler (beat)"), "feed": _("Dead-letter indexer")}
    todos = {
        "beat": _(
            "While the scheduler is down, lost servers are not replaced. Start the scheduler. To "
            "find the cause, run ./ma status, ./ma logs beat and ./ma logs worker."
        ),
        "feed": _(
            "Messages are safe on the broker, but new messages do not appear in the lists. Start "
            "the indexer. To find the cause, run ./ma status and ./ma logs feed."
        ),
    }
    at = last_heartbeat(name)
    if at is None:
        return Part(labels[name], DOWN, _("no heartbeat yet"), todos[name])
    if now - at > LATE:
        says = _("last heartbeat %(time)s ago") % {"time": coarse(now - at)}
        return Part(labels[name], DOWN, says, todos[name], at)
    return Part(labels[name], OK, _where(name, now), since=at)


def _where(name: str, now: datetime) -> str:
    place = place_of(name, now)
    if place is None:
        return _("heartbeat OK")
    if not place.standby:
        return _("heartbeat OK, on %(host)s") % {"host": place.host}
    says = _("heartbeat OK, on %(host)s; standby on %(standby)s")
    return says % {"host": place.host, "standby": place.standby}


def _records(now: datetime) -> list[Part]:
    """The servers with most of the newest ones."""
    refused = RefusedRecord.objects.filter(code="", received_at__gte=now - timedelta(days=1)).order_by(
        "-received_at"
    )
    newest = list(refused.values_list("server__name", flat=True)[: MOST_REFUSED + 1])
    if not newest:
        return [Part(_("Server records"), OK, _refused(0))]
    more = "+" if len(newest) > MOST_REFUSED else ""
    todo = _(
        "Open the server page to see the latest refused records and why they were refused. "
        "The usual cause is that the MA and KMA versions differ."
    )
    of_servers = Counter(newest[:MOST_REFUSED]).most_common()
    parts = []
    for name, count in of_servers[:REFUSED_SERVERS]:
        of_server = _("Records of server %(server)s") % {"server": name}
        parts.append(Part(of_server, DEGRADED, _refused(count, more), todo, url=link("server", name)))
    if left := of_servers[REFUSED_SERVERS:]:
        says = _refused(sum(count for _name, count in left), more)
        todo = _("Open the server pages: each page lists the refused records from that server.")
        parts.append(Part(_("Records from other servers"), DEGRADED, says, todo, url=link("servers")))
    return parts


def _refused(count: int, more: str = "") -> str:
    says = ngettext("%(n)s record refused in 24 h", "%(n)s records refused in 24 h", count)
    return says % {"n": number(count) + more}


def _retention(now: datetime) -> Part:
    """A run begins once an hour."""
    name, url = _("Retention"), link("retention")
    last = RetentionRun.objects.order_by("-id").first()
    if last is None:
        return Part(name, OK, _("has not run yet"), url=url)
    todo = _(
        "No data is lost, but the database keeps growing. The Retention page shows the "
        "reason. For details, see ./ma logs worker."
    )
    if last.problem:
        return Part(name, DEGRADED, _("last run partly failed"), todo, last.started_at, url)
    if now - last.started_at > RETENTION_LATE and last.state != RetentionState.RUNNING:
        return Part(name, DEGRADED, _("no recent runs"), todo, last.started_at, url)
    return Part(name, OK, _("on schedule"), since=last.started_at, url=url)


def _alerts(now: datetime) -> Part:
    """Returns whether each kind is looked at: one whose source breaks opens nothing and says nothing."""
    late = late_kinds(now)
    name, url = _("Alerts"), link("alerts")
    if late:
        says = _("not evaluated: %(names)s") % {"names": ", ".join(late)}
        return Part(name, DEGRADED, says, _("The worker log shows the reason: ./ma logs worker."), url=url)
    return Part(name, OK, pgettext("alerts", "active"), url=url)


def server_parts(now: datetime) -> list[Part]:
    expected, unfed = set(expected_servers().values_list("pk", flat=True)), runs_without_broker(now)
    return [
        _server(server, server.pk in expected, note_of(server, now, unfed, server.pk in expected), now)
        for server in Server.objects.all()
    ]


def _server(server: Server, expected: bool, note: ServerNote | None, now: datetime) -> Part:
    url, state = link("server", server.name), server.state(now)
    if note and not (note.works and server.spool_full):
        return Part(
            server.name,
            DEGRADED if note.works else DOWN,
            note.says,
            note.what_to_do,
            server.last_seen_at,
            url,
        )
    if state is ServerState.ALIVE:
        records = ngettext("%(n)s record in the spool", "%(n)s records in the spool", server.spool_rows)
        says = records % {"n": number(server.spool_rows)}
        todo = (
            _("The server takes no more messages until the MA accepts its records.")
            if server.spool_full
            else ""
        )
        return Part(server.name, DEGRADED if server.spool_full else OK, says, todo, server.last_seen_at, url)
    if not expected:
        todo = _("The server is in no pool and has no valid token. Delete it if it is no longer needed.")
        return Part(server.name, UNUSED, state.label, todo, server.last_seen_at, url)
    todo = _("Start a KMA with the token of this server, or delete the server.")
    return Part(server.name, DEGRADED, state.label, todo, url=url)
