"""The listener for metrics of a process that serves no pages."""

from collections.abc import Callable, Sequence

import structlog
from django.conf import settings
from django.utils import timezone
from prometheus_client import ProcessCollector

from exposition.declared import Declared, Sample, text
from exposition.listener import Listener

log = structlog.get_logger(__name__)

# Both have one environment: each takes its own port, from that of MA_METRICS_ADDRESS on.
PORTS = {"feed": 0, "worker": 1}


def serve(
    process: str, declared: Sequence[Declared], samples: Callable[[], Sequence[Sample]]
) -> Listener | None:
    """Listens until the process ends, where MA_METRICS_ADDRESS is set. An address that is taken is logged:
    no dead letter waits for a metric."""
    address = settings.MA_METRICS_ADDRESS
    if address is None:
        return None
    of_process = ProcessCollector(registry=None)

    def scrape() -> bytes:
        return text(declared, samples(), timezone.now(), of_process.collect())

    own = address.moved(PORTS[process])
    try:
        listener = Listener(own, settings.MA_METRICS_TOKEN, scrape)
    except OSError as error:
        log.error("metrics cannot be served", host=own.host, port=own.port, reason=str(error))
        return None
    listener.start()
    log.info("metrics are served", host=own.host, port=listener.port)
    return listener
