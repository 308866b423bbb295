"""When a process is ready: asked of the process itself, not only of its runner."""

import time
from collections.abc import Callable

from deploy import artemis, redis, secret_files, site_health
from deploy.config import Config
from deploy.layout import Layout
from deploy.problem import Problem
from deploy.procfile import Process
from deploy.runner import Runner

Probe = Callable[[], bool]

# These leave a sign of life in the database each time round; the site tells how fresh it is.
SIGNED = ("beat", "feed")

LIMIT_SECONDS = 120.0
PAUSE_SECONDS = 0.2


def probe(
    process: Process, config: Config, layout: Layout, runner: Runner, health: site_health.Latest | None = None
) -> Probe:
    """`health`: shared by all who are waited for at the same time."""
    health = health or site_health.Latest(config)
    started = time.monotonic()
    if process.kind == "artemis":
        return lambda: artemis.answers(config.amqp_port)
    if process.kind == "redis":
        url = secret_files.read(layout.secrets / "redis_url")
        return lambda: redis.answers(url)
    if process.kind == "web":
        return lambda: health.ask() is not None
    if process.server:
        # A heartbeat of the KMA's previous life does not count.
        return lambda: site_health.heard_within(health.ask(), process.server, time.monotonic() - started)
    if process.kind in SIGNED:
        return lambda: site_health.part(health.ask(), process.name) == "ok"
    return lambda: runner.state(process.name).running


def reached(process: Process, probe: Probe, runner: Runner, layout: Layout, *, waited: float) -> bool:
    """Problem where it is not ready in time, or has ended for good."""
    state = runner.state(process.name)
    if state.running and probe():
        return True
    if state.state in ("FATAL", "STOPPED") or waited > LIMIT_SECONDS:
        why = f"{process.name} is not ready after {waited:.0f} s ({state.description or state.state.lower()})"
        raise Problem(why + _last_lines(process, layout))
    return False


def _last_lines(process: Process, layout: Layout) -> str:
    log = layout.log(process.name)
    lines = log.read_text("utf-8", errors="replace").splitlines()[-5:] if log.exists() else []
    shown = "".join(f"\n  | {line}" for line in lines)
    return f"; its log (./ma logs {process.name}) ends with:{shown}" if lines else ""
