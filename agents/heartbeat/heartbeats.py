"""A KMA's heartbeat: what it says of itself, of its runs, and what it gets back."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from agents import hooks
from agents.acknowledgements.answers import to_pass_on
from agents.activations.end import close_never_started, end_activations
from agents.activations.plan import plan_open_activations
from agents.heartbeat.desired import desired_state
from agents.heartbeat.run_reports import BIGGEST_TOTAL, MOST_PROBLEMS, accept_claims, bounded
from agents.liveness import note_hearing_again
from agents.models import Activation, OfferedAgent, Server, ServerState, StateChange
from agents.models.activation import ActivationState
from agents.reasons import AGENT_VERSION, KMA_VERSION
from agents.reconciler import stand_in
from agents.state_history import note
from console.reasons import Reason
from contract.messages import Heartbeat, HeartbeatReply, SpoolReport, check_version
from contract.wire import UnsupportedVersion

MOST_AGENTS = 1000
TAKEN_AGAIN_AFTER = timedelta(seconds=5)


class WrongServer(Exception):
    """A KMA spoke for another server than its token's: refuse the whole report."""


def accept_heartbeat(server: Server, heartbeat: Heartbeat, now: datetime) -> HeartbeatReply:
    """Cheap when nothing changed: one update of the server's row. Raises WrongServer, UnsupportedVersion."""
    if heartbeat.server != server.name:
        raise WrongServer(f"The token belongs to server {server.name}, the heartbeat to {heartbeat.server}.")
    check_version(heartbeat.version)
    appeared = server.state(now) is not ServerState.ALIVE
    with transaction.atomic():
        if appeared:
            note_hearing_again(server, now)
        if appeared or server.heard_since is None:
            _store(server, {"heard_since": now})
        _store_server(server, heartbeat, now)
        agents_changed = _store_agents(server, heartbeat, now)
        accept_claims(server, heartbeat.runs, now)
    stand_in(now)
    if appeared or agents_changed or _waits_for(server):
        plan_open_activations(now, server)
    desired = desired_state(server)
    known = heartbeat.desired_version == desired.version
    if known and close_never_started(server, [run.activation for run in heartbeat.runs], now):
        end_activations(now)
    reply = HeartbeatReply(
        now=now,
        desired_version=desired.version,
        desired=None if known else desired,
        answers=to_pass_on(server),
        spool_stored_up_to=_stored_less(server, heartbeat.spool, now),
    )
    _note_taken(server, heartbeat.desired_version, desired.version, now)
    return reply


def refuse_version(server: Server, version: int) -> None:
    """Notes that the KMA speaks a version that this site does not, and raises UnsupportedVersion; else does
    nothing.

    Asked before the heartbeat is read: its other fields may be of that version, too. It is not heard: what it
    says of its runs is not known."""
    try:
        check_version(version)
    except UnsupportedVersion:
        if server.refused_version != version:
            _store(server, {"refused_version": bounded(version, BIGGEST_TOTAL)})
        raise


def _note_taken(server: Server, has: str, sent: str, now: datetime) -> None:
    """Last of all: what failed before this was not answered, and a server without answers obeys nothing.

    It has taken the desired state when it has what it should have now, or what the answer before this one
    told it: on a busy server the state is another one at each heartbeat. Killed before this line nothing is
    known of this heartbeat, and the next one confirms.
    """
    values: dict[str, Any] = {}
    if sent != server.desired_version_sent:
        values["desired_version_sent"] = sent
    if has and has in (sent, server.desired_version_sent) and _is_old(server.desired_state_taken_at, now):
        values["desired_state_taken_at"] = now
    if values:
        _store(server, values)


def _store(server: Server, values: Mapping[str, Any]) -> None:
    Server.objects.filter(pk=server.pk).update(**values)
    for name, value in values.items():
        setattr(server, name, value)


def _is_old(at: datetime | None, now: datetime) -> bool:
    """Says so rarely that most heartbeats write one row once."""
    return at is None or not at <= now < at + TAKEN_AGAIN_AFTER


def _store_server(server: Server, heartbeat: Heartbeat, now: datetime) -> None:
    values: dict[str, Any] = {
        "boot": heartbeat.boot,
        "kma_version": heartbeat.kma_version[:60],
        "clock_skew_seconds": round((heartbeat.sent_at - now).total_seconds(), 1),
        "spool_rows": bounded(heartbeat.spool.rows, BIGGEST_TOTAL),
        "spool_bytes": bounded(heartbeat.spool.bytes, BIGGEST_TOTAL),
        "spool_limit_bytes": bounded(heartbeat.spool.limit_bytes, BIGGEST_TOTAL),
        "spool_full": heartbeat.spool.full,
        "problems": [Reason.reported(problem) for problem in heartbeat.problems[:MOST_PROBLEMS]],
        "desired_version": heartbeat.desired_version[:64],
        "refused_version": None,
    }
    changed = {name: value for name, value in values.items() if getattr(server, name) != value}
    if server.kma_version and "kma_version" in changed:
        _note_version(server, server.kma_version, changed["kma_version"], KMA_VERSION(), now)
    _store(server, {"last_seen_at": now, **changed})


def _store_agents(server: Server, heartbeat: Heartbeat, now: datetime) -> bool:
    """Returns whether the offered agents changed."""
    offered = {
        agent.name[:200]: (agent.kind[:20], agent.version[:60], agent.summary[:2000])
        for agent in heartbeat.agents[:MOST_AGENTS]
    }
    stored = OfferedAgent.objects.filter(server=server).values_list("name", "kind", "version", "summary")
    known = {name: (kind, version, summary) for name, kind, version, summary in stored}
    if offered == known:
        return False
    OfferedAgent.objects.filter(server=server, name__in=known.keys() - offered.keys()).delete()
    for name, (kind, version, summary) in offered.items():
        if known.get(name) != (kind, version, summary):
            if name in known and known[name][1] != version:
                _note_version(server, known[name][1], version, AGENT_VERSION(agent=name), now)
            OfferedAgent.objects.update_or_create(
                server=server,
                name=name,
                defaults={"kind": kind, "version": version, "summary": summary, "seen_at": now},
            )
    return True


# So many changes of versions on a server are kept: whoever changes them all the time fills nothing.
MOST_VERSIONS = 500


def _note_version(server: Server, old: str, new: str, whose: Reason, now: datetime) -> None:
    """So that people see beside curves when something was deployed."""
    note(None, "version", old, new, now=now, reason=whose, server=server)
    kept = StateChange.objects.filter(server=server, what="version").order_by("-at", "-pk")
    StateChange.objects.filter(pk__in=list(kept.values_list("pk", flat=True)[MOST_VERSIONS:])).delete()


def _waits_for(server: Server) -> bool:
    waiting = Activation.objects.filter(state=ActivationState.PENDING, setting__enabled=True)
    return waiting.filter(setting__pool__servers=server).exists()


def _stored_less(server: Server, spool: SpoolReport, now: datetime) -> int | None:
    """The number up to which records are stored, where the KMA was told a higher one and can send them
    again."""
    if spool.id is None or spool.after is None:
        return None
    answers = hooks.stored_less(server, spool.id, spool.after, now)
    return next((answer for answer in answers if answer is not None), None)
