"""Every few seconds: what time alone changes. Each part may run twice and in any process."""

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, InterfaceError

from agents.acknowledgements.answers import lose_redelivered
from agents.activations.drains import watch_drains
from agents.activations.end import end_activations, lose_unreachable_runs
from agents.activations.plan import plan_open_activations
from agents.activations.switch import forget_old_windows
from agents.breaker.trip import evaluate_open
from agents.freezes.held import forget_held
from agents.groups.group import advance_groups
from agents.isolation import isolated
from agents.provisioning.provision import provision_due
from agents.provisioning.subscriptions import watch_subscriptions
from agents.schedules.tick import ask_for_ticks, tend_schedules
from agents.servers.operations import expire_duties
from agents.settings.enable import end_pauses
from agents.settings.removal import finish_removals
from console.processes import once_per, record_heartbeat, seconds_since

log = structlog.get_logger(__name__)

EVERY = timedelta(seconds=5)
# It gives its sign every five.
BEAT_AWAY_SECONDS = 15.0
# In this order. Trips before anything is planned: what is given up must not be taken up elsewhere.
STEPS: tuple[tuple[str, Callable[[datetime], int]], ...] = (
    ("tripped", evaluate_open),
    ("duties", expire_duties),
    ("pauses", end_pauses),
    ("changed", plan_open_activations),
    ("lost", lose_unreachable_runs),
    ("ended", end_activations),
    ("redelivered", lose_redelivered),
    ("groups", advance_groups),
    ("schedules", tend_schedules),
)
REPORTED = ("tripped", "changed", "lost", "ended", "redelivered")


def tend(now: datetime) -> None:
    """Takes over from silent servers, starts on those that joined, ends what is over, makes what is still
    missing."""
    # beat asked for this and a worker does it: both are alive.
    record_heartbeat("beat", now)
    keep_up(now)
    rest: tuple[tuple[str, Callable[[datetime], object]], ...] = (
        ("old windows", forget_old_windows),
        ("old freezes", forget_held),
        ("removals", finish_removals),
        ("provisioning", provision_due),
        ("scheduled times until the next check", lambda now: ask_for_ticks(now, now + EVERY)),
    )
    for name, step in rest:
        with isolated(name):
            step(now)


def stand_in(now: datetime) -> bool:
    """Called with every heartbeat: while Redis, beat or the worker is away, heartbeats come all the same, and
    one of them in five seconds does what asks nobody but the database."""
    if not beat_is_away(now) or not once_per("keep up", EVERY, now):
        return False
    keep_up(now)
    return True


def beat_is_away(now: datetime) -> bool:
    """Returns whether it gave signs before and does not any more."""
    silent = seconds_since("beat", now)
    return silent is not None and silent > BEAT_AWAY_SECONDS


def keep_up(now: datetime) -> None:
    """Does what follows from the rows and the time alone, within heartbeats too: nothing that lies in the
    rows of one setting may keep the others of a server from their answer, nor one step the steps after it."""
    done: dict[str, int] = {}
    for name, step in STEPS:
        with isolated(name):
            done[name] = step(now)
    told = {name: done[name] for name in REPORTED if done.get(name)}
    if told:
        log.info("tended", **told)


# -- reconciling while Redis, beat or the worker is away -----------------------------------------------------
# Then nobody else does the steps that ask the broker, and nobody evaluates alerts. The process that follows
# the dead letters needs none of the three and has a connection to the broker: it does both meanwhile. The
# site evaluates alerts, too, for as long as a KMA sends heartbeats.


# As often as beat asks for the first of them.
STAND_IN_EVERY = timedelta(seconds=2)
WATCH_EVERY = timedelta(seconds=10)


def stand_in_at_broker(now: datetime) -> bool:
    """Returns whether it was done now. Never raises for the broker or the database, nor for a row that a
    person deletes at this moment. Each step may run twice, also beside a worker that comes back."""
    try:
        if not beat_is_away(now) or not once_per("keep up at the broker", STAND_IN_EVERY, now):
            return False
        watch_drains(now)
        provision_due(now)
        if once_per("watch subscriptions", WATCH_EVERY, now):
            watch_subscriptions(now)
    except (DatabaseError, InterfaceError) as error:
        log.warning("fallback reconciliation postponed", reason=str(error))
        return False
    return True
