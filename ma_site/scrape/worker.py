"""What the worker counts of itself: its tasks run in threads of one process, so it begins at 0 with it."""

import time
from threading import local
from typing import Any

from celery import signals

from console.own_metrics import serve
from exposition.declared import Tallies
from ma_site.scrape.declared import OF_WORKER

tallies = Tallies(OF_WORKER)
_began = local()


def listen() -> None:
    """Call it in the worker alone, once."""
    if serve("worker", OF_WORKER, tallies.samples) is not None:
        signals.task_prerun.connect(_begin, weak=False)
        signals.task_postrun.connect(_end, weak=False)


def _begin(**_: Any) -> None:
    _began.at = time.monotonic()


def _end(task: Any, state: str | None = None, **_: Any) -> None:
    tallies.count("ma_tasks_total", task.name, (state or "unknown").lower())
    tallies.observe("ma_task_seconds", time.monotonic() - _began.at, task.name)
