"""The trace of a handling: what it is called, what leads to it, and what its agent sends in it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from broker.amqp.codec import decode
from broker.port import Outgoing
from contract.outcomes import Outcome
from contract.records import RecordRun
from contract.typed import Typed, text_of
from exposition.trace import TRACEPARENT, TraceContext, attempt_context, parse
from kma.delivery.effects import RunFacts
from kma.delivery.in_flight import InFlight
from kma.delivery.message_identity import case
from kma.handling.handler import HandlingResult


@dataclass(frozen=True, slots=True)
class TracedHandling:
    """A handling that is over. `links`: the producer's context, and that of the attempt before. `began` and
    `ended` in seconds since 1970. `error_type` is empty where it went well."""

    run: RecordRun
    destination: str
    context: TraceContext
    links: tuple[TraceContext, ...]
    attempt: int
    outcome: Outcome
    error_type: str
    began: float
    ended: float


# Never raises, never waits.
Trace = Callable[[TracedHandling], None]


def context_of(setting: str, work: InFlight, attempt: int | None = None) -> TraceContext:
    identified = work.identified
    known = "" if identified.key.weak else case(identified)
    return attempt_context(setting, known, attempt or work.attempt, UUID(bytes=work.record))


def traced(
    facts: RunFacts, work: InFlight, handled: HandlingResult, began: float, ended: float
) -> TracedHandling:
    run = facts.run
    return TracedHandling(
        run=run,
        destination=facts.desired.destination,
        context=context_of(run.setting, work),
        links=tuple(_links(run.setting, work)),
        attempt=work.attempt,
        outcome=handled.outcome,
        error_type=handled.failure.exception_type if handled.failure is not None else "",
        began=began,
        ended=max(began, ended),
    )


def _links(setting: str, work: InFlight) -> Iterator[TraceContext]:
    producer = parse(work.identified.traceparent)
    if producer is not None:
        yield producer
    if work.attempt > 1 and not work.identified.key.weak:
        yield context_of(setting, work, work.attempt - 1)


def outgoing(
    sends: Iterable[tuple[str, bytes]], work: InFlight, context: TraceContext | None
) -> list[Outgoing]:
    """What an agent sent, in the trace of its handling unless it chose another one. Without a `context` the
    producer's was passed on by the agent's process."""
    found = [Outgoing(destination, decode(encoded)) for destination, encoded in sends]
    if context is None:
        return found
    return [_within(each, work.identified.traceparent, context) for each in found]


def _within(sent: Outgoing, producers: str, context: TraceContext) -> Outgoing:
    own = sent.message.properties.get(TRACEPARENT)
    if own is not None and text_of(own) != producers:
        return sent
    properties = {**sent.message.properties, TRACEPARENT: Typed("string", str(context))}
    return replace(sent, message=replace(sent.message, properties=properties))
