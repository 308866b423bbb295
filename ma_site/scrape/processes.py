"""Metrics of processes that serve no pages: each listens for its own. Tasks of the worker run in threads of
one process, so what it counts begins at 0 with it."""

import time
from collections.abc import Callable, Mapping, Sequence
from threading import local
from typing import Any

import structlog
from celery import signals
from django.conf import settings
from django.utils import timezone
from prometheus_client import ProcessCollector

from console.hooks import process_begins
from dlq.index import feed
from exposition.declared import Declared, Sample, Tallies, text
from exposition.listener import Address, Listener
from ma_site.scrape.declared import DECLARED, OF_WORKER

log = structlog.get_logger(__name__)

# Both have one environment: each takes its own port, from that of MA_METRICS_ADDRESS on.
PORTS = {"feed": 0, "worker": 1}

tasks = Tallies(OF_WORKER)
COUNTED: Mapping[str, Callable[[], Sequence[Sample]]] = {
    "feed": feed.tallies.samples,
    "worker": tasks.samples,
}
_began = local()


@process_begins.implement
def listen(process: str) -> None:
    """Listens until the process ends, where MA_METRICS_ADDRESS is set."""
    address = settings.MA_METRICS_ADDRESS
    if address is None:
        return
    own = address.moved(PORTS[process])
    if serve(own, DECLARED[process], COUNTED[process]) is not None and process == "worker":
        signals.task_prerun.connect(begin, weak=False)
        signals.task_postrun.connect(end, weak=False)


def serve(
    own: Address, declared: Sequence[Declared], samples: Callable[[], Sequence[Sample]]
) -> Listener | None:
    """An address that is taken is logged: no dead letter waits for a metric."""
    of_process = ProcessCollector(registry=None)

    def scrape() -> bytes:
        return text(declared, samples(), timezone.now(), of_process.collect())

    try:
        listener = Listener(own, settings.MA_METRICS_TOKEN, scrape)
    except OSError as error:
        log.error("metrics cannot be served", host=own.host, port=own.port, reason=str(error))
        return None
    listener.start()
    log.info("metrics are served", host=own.host, port=listener.port)
    return listener


def begin(**_: Any) -> None:
    _began.at = time.monotonic()


def end(task: Any, state: str | None = None, **_: Any) -> None:
    tasks.count("ma_tasks_total", task.name, (state or "unknown").lower())
    tasks.observe("ma_task_seconds", time.monotonic() - _began.at, task.name)
