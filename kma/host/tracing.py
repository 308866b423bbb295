"""Spans of handlings, to a collector by OTLP over HTTP. The packages are an extra, that of
requirements-traces.txt."""

from typing import Any

from contract import __version__
from contract.outcomes import Outcome
from exposition.trace import TraceContext
from kma.delivery.trace import TracedHandling
from kma.logs import logger

# A collector that is away costs memory for so many spans, and nothing else: later ones are dropped.
MOST_WAITING = 2048
SEND_SECONDS = 5.0


class SpanSender:
    """`send` from any thread; a thread of the SDK delivers. `close` it once. Raises ImportError where the
    packages are missing."""

    def __init__(self, endpoint: str, server: str) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk import trace as sdk
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._trace, self._sdk = trace, sdk
        # A Session of its own; it follows no redirect with what it sends.
        exporter = OTLPSpanExporter(endpoint, timeout=SEND_SECONDS)
        self._processor: Any = BatchSpanProcessor(
            exporter, max_queue_size=MOST_WAITING, schedule_delay_millis=1000
        )
        self._resource = Resource(
            {"service.name": "kma", "service.version": __version__, "service.instance.id": server}
        )

    def send(self, handling: TracedHandling) -> None:
        trace, run = self._trace, handling.run
        failed = handling.outcome not in (Outcome.RETURNED, Outcome.RELEASED)
        attributes: dict[str, str | int] = {
            "messaging.operation.type": "process",
            "messaging.destination.name": handling.destination,
            "messaging.destination.subscription.name": run.setting,
            "ma.setting": run.setting,
            "ma.agent": run.agent,
            "ma.agent_version": run.agent_version,
            "ma.server": run.server,
            "ma.activation": str(run.activation),
            "ma.attempt": handling.attempt,
            "ma.result": handling.outcome.value,
        }
        if handling.error_type:
            attributes["error.type"] = handling.error_type
        span = self._sdk.ReadableSpan(
            name=f"process {run.setting}",
            context=self._context(handling.context),
            resource=self._resource,
            attributes=attributes,
            links=[trace.Link(self._context(each)) for each in handling.links],
            kind=trace.SpanKind.CONSUMER,
            status=trace.Status(trace.StatusCode.ERROR if failed else trace.StatusCode.UNSET),
            start_time=_nanoseconds(handling.began),
            end_time=_nanoseconds(handling.ended),
        )
        self._processor.on_end(span)

    def close(self) -> None:
        """Sends what waits, as long as a collector takes it."""
        self._processor.shutdown()

    def _context(self, context: TraceContext) -> Any:
        flags = self._trace.TraceFlags(self._trace.TraceFlags.SAMPLED if context.sampled else 0)
        return self._trace.SpanContext(
            int(context.trace_id, 16), int(context.span_id, 16), is_remote=False, trace_flags=flags
        )


def _nanoseconds(seconds: float) -> int:
    """A float of today holds microseconds, not more."""
    return round(seconds * 1e6) * 1000


def span_sender(endpoint: str, server: str) -> SpanSender | None:
    """None where nothing is to be traced, or the packages are missing: messages do not wait for that."""
    if not endpoint:
        return None
    log = logger(server=server)
    try:
        return SpanSender(endpoint, server)
    except ImportError as error:
        log.error("no traces: install requirements-traces.txt", problem=str(error))
        return None
