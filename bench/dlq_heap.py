"""The broker's heap with very many dead letters: lying there, browsed whole, and given back by a job."""

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import Bound, Line
from bench.dlq import DLA, Here
from bench.dlq_letters import count, make_letters
from contract.names import dead_letter_queue

# Milliseconds between two looks at the heap.
EVERY = 500
UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}
# Columns of `jstat -gc`, in KB: what is used of the two survivor spaces, of the young and the old generation.
USED = ("S0U", "S1U", "EU", "OU")


@dataclass(slots=True)
class Peak:
    """MB of heap in use; what a collection would free is among them."""

    used: float = 0.0


def measure(here: Here) -> Sequence[Line]:
    if not here.broker_pid:
        raise SystemExit("the heap is only measured of a throw-away broker: leave BENCH_AMQP_URL unset")
    from agents.models import Destination, LaunchSetting, Pool
    from console.broker import management

    key, pid, broker = "bench-heap", here.broker_pid, management()
    destination, pool = (
        Destination.objects.create(name=f"bench.{key}"),
        Pool.objects.create(name="bench-heap"),
    )
    setting = LaunchSetting.objects.create(key=key, agent="bench.noop", destination=destination, pool=pool)
    with _watched(pid) as dying:
        # What is in the feed is no part of this: the walk brings the same letters.
        make_letters(here.place, broker, key, here.many, fed=False)
    limit, rest = _limit(pid), _at_rest(pid)
    with _watched(pid) as browsing:
        _browse(dead_letter_queue(key), here.many)
    with _watched(pid) as replaying:
        _give_back(setting)
    if left := count(broker, dead_letter_queue(key)):
        raise RuntimeError(f"{left} letters were not given back")
    name = f"heap of the broker with {here.many:,} letters"
    peaks = {"dying": dying, "browsed whole": browsing, "given back by a job": replaying}
    return [
        Bound(name=f"{name} · {what}", product=peak.used, reference=rest, goal=limit, unit="MB", at_most=True)
        for what, peak in peaks.items()
    ]


def _browse(queue: str, letters: int) -> None:
    """As the sweep does it: each letter becomes a row."""
    from dlq.index.walk import index_queue

    walked = index_queue(queue, DLA)
    if walked.seen != letters:
        raise RuntimeError(f"a walk saw {walked.seen} of {letters} letters")


def _give_back(setting: object) -> None:
    """As a worker does it, in this process."""
    from django.contrib.auth.models import User
    from django.utils import timezone

    from console.jobs import engine
    from dlq.models import OPEN_JOBS, ReplayJob
    from dlq.replay.creation import create_job
    from dlq.replay.requests import ReplayRequest
    from ma_site.tasks import run_job

    setattr(engine, "send", lambda *_, **__: True)  # noqa: B010  # this process is the worker
    by = User.objects.create_user("bench-heap")
    asked = ReplayRequest(setting, "give_back", "all", reason="bench")  # type: ignore[arg-type]  # a LaunchSetting
    job = create_job(asked, by=by, now=timezone.now())
    while ReplayJob.objects.filter(pk=job.pk, state__in=OPEN_JOBS).exists():
        run_job("dlq.replayjob", str(job.pk))
        time.sleep(0.2)


# -- the heap ------------------------------------------------------------------------------------------------


@contextmanager
def _watched(pid: int) -> Iterator[Peak]:
    """The peak while the block runs, sampled by the JDK's own tool."""
    peak = Peak()
    watching = subprocess.Popen(
        ["jstat", "-gc", str(pid), str(EVERY)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield peak
    finally:
        watching.terminate()
        told, _ = watching.communicate(timeout=30)
        peak.used = max((_used(told.splitlines()[0], line) for line in told.splitlines()[1:]), default=0.0)


def _at_rest(pid: int) -> float:
    """What is left in use after a collection."""
    subprocess.run(["jcmd", str(pid), "GC.run"], check=True, stdout=subprocess.DEVNULL)
    told = subprocess.run(
        ["jstat", "-gc", str(pid)], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return _used(told[0], told[1])


def _used(head: str, line: str) -> float:
    columns = dict(zip(head.split(), line.split(), strict=False))
    return sum(_number(columns.get(name, "0")) for name in USED) / 1024


def _number(text: str) -> float:
    """A machine may be set to decimal commas; `-` is nothing."""
    return float(text.replace(",", ".")) if text != "-" else 0.0


def _limit(pid: int) -> float:
    """MB, by the command line of the broker."""
    found = re.search(r"-Xmx(\d+)([KMG])", Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace"))
    if found is None:
        raise RuntimeError("the broker's heap has no limit")
    return int(found[1]) * UNITS[found[2]]
