"""Every few seconds: what time alone changes. Each part may run twice and in any process."""

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from agents.services.closing import lose_unreachable_runs
from agents.services.duty import expire_duties
from agents.services.endings import end_activations
from agents.services.groups import advance_groups
from agents.services.isolating import isolated
from agents.services.notices import ask_if_due
from agents.services.pauses import end_pauses
from agents.services.planning import plan_open_activations
from agents.services.provisioning import provision_due
from agents.services.redelivered import lose_redelivered
from agents.services.schedules import ask_for_ticks, tend_schedules
from agents.services.setting_removal import finish_removals
from agents.services.tripping import evaluate_open
from agents.services.window_history import forget_old_windows
from console.jobs.locks import once_per
from console.processes import record_heartbeat, seconds_since

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
TOLD = ("tripped", "changed", "lost", "ended", "redelivered")


def tend(now: datetime) -> None:
    """Takes over from silent servers, starts on those that joined, ends what is over, makes what is still
    missing."""
    # beat asked for this and a worker does it: both are alive.
    record_heartbeat("beat", now)
    keep_up(now)
    rest: tuple[tuple[str, Callable[[datetime], object]], ...] = (
        ("notices", ask_if_due),
        ("old windows", forget_old_windows),
        ("removals", finish_removals),
        ("provisioning", provision_due),
        ("windows until the next look", lambda now: ask_for_ticks(now, now + EVERY)),
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
    """Whether it gave signs before and does not any more."""
    silent = seconds_since("beat", now)
    return silent is not None and silent > BEAT_AWAY_SECONDS


def keep_up(now: datetime) -> None:
    """What follows from the rows and the time alone. Also within heartbeats: nothing that lies in the rows of
    one setting may keep the others of a server from their answer, nor one step the steps after it."""
    done: dict[str, int] = {}
    for name, step in STEPS:
        with isolated(name):
            done[name] = step(now)
    told = {name: done[name] for name in TOLD if done.get(name)}
    if told:
        log.info("tended", **told)
