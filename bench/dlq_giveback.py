"""Giving dead letters back: all of a setting, and a chosen half of them by ids, by the job with its progress
and audit, beside bare `moveMessages` of as many at a time."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench import Bound, Line, Measure
from bench.dlq import DLA, Here
from bench.dlq_letters import count, empty_feed, make_letters
from contract.names import dead_letter_queue

# Of the rate of bare moves; and megabytes that the worker may grow by.
ALL_GOAL, HALF_GOAL, GROWTH_GOAL = 0.8, 0.3, 50.0
# A walk over letters, which any job may need, is not to be paid for the first time within the measured one.
WARM = 2_000


def measure(here: Here) -> Sequence[Line]:
    from console.broker import management

    broker = management()
    _give_back(_setting(here, broker, "warm", WARM), None)
    bare = _bare(here, broker)
    every = _setting(here, broker, "all", here.letters)
    before = _resident(fresh=True)
    all_rate = _give_back(every, None)
    growth = _resident("VmHWM") - before
    half_rate = _give_back(_setting(here, broker, "half", here.letters), 2)
    name = f"{here.database} · give back"
    return [
        Measure(name=f"{name} all", product=all_rate, reference=bare, goal=ALL_GOAL, unit="/s"),
        Measure(name=f"{name} a half by ids", product=half_rate, reference=bare, goal=HALF_GOAL, unit="/s"),
        Bound(
            name=f"{name} all: memory of the worker grows",
            product=growth, reference=before, goal=GROWTH_GOAL, unit="MB", at_most=True,
            peak_memory_mb=before + growth,
        ),
    ]  # fmt: skip


def _setting(here: Here, broker: Any, what: str, letters: int) -> Any:
    """With so many dead letters, all of them in the index."""
    from agents.models import Destination, LaunchSetting, Pool
    from dlq.index.walk import index_queue

    key = f"bench-back-{what}-{here.database}"
    make_letters(here.place, broker, key, letters)
    index_queue(dead_letter_queue(key), DLA)
    empty_feed(broker)
    destination = Destination.objects.create(name=f"bench.{key}")
    pool = Pool.objects.get_or_create(name="bench")[0]
    return LaunchSetting.objects.create(key=key, agent="bench.noop", destination=destination, pool=pool)


def _give_back(setting: Any, every: int | None) -> float:
    """Letters a second of the worker, of all or of each `every`-th one, from its first step to the end of the
    job."""
    from django.contrib.auth.models import User
    from django.utils import timezone

    from dlq.models import Action, DeadLetter, ReplayJob, Scope
    from dlq.replay.creation import create_job
    from dlq.replay.requests import ReplayRequest
    from ma_site.tasks import run_job

    person = User.objects.get_or_create(username="bench")[0]
    rows = DeadLetter.objects.filter(setting_key=setting.key).order_by("pk")
    chosen = list(rows.values_list("pk", flat=True))[::every] if every else []
    scope = Scope.SELECTION if every else Scope.ALL
    asked = ReplayRequest(setting, Action.GIVE_BACK, scope, letters=chosen)
    with patch("console.jobs.engine.send"):  # no Redis here: this process is the worker
        job = create_job(asked, by=person, now=timezone.now())
    began = time.monotonic()
    while not ReplayJob.objects.filter(pk=job.pk).exclude(finished_at=None).exists():
        run_job("dlq.replayjob", str(job.pk))
        if time.monotonic() - began > 3600:
            raise RuntimeError("the job does not come to its end")
    seconds = time.monotonic() - began
    job.refresh_from_db()
    expected = len(chosen) if every else rows.count()
    if job.counts.get("given_back") != expected:
        raise RuntimeError(f"{job.counts} of {expected} letters: {job.state} {job.problem}")
    return expected / seconds


def _bare(here: Here, broker: Any) -> float:
    """What somebody would write who only wants them moved."""
    from dlq.replay.rules.slices import RANGE_SLICE

    key = f"bench-back-bare-{here.database}"
    make_letters(here.place, broker, key, here.letters)
    dead = dead_letter_queue(key)
    began = time.monotonic()
    while broker.call(f"queue.{dead}", "moveMessages", RANGE_SLICE, "", key, False, RANGE_SLICE):
        pass
    seconds = time.monotonic() - began
    if count(broker, key) != here.letters:
        raise RuntimeError("the bare moves left letters behind")
    empty_feed(broker)
    return here.letters / seconds


def _resident(what: str = "VmRSS", *, fresh: bool = False) -> float:
    """Megabytes now, or with VmHWM the most since the last `fresh`."""
    if fresh:
        Path("/proc/self/clear_refs").write_text("5")
    found = re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0
