"""Each handling is told with its trace, what leads to it, and what its agent sends belongs to it."""

import time
from dataclasses import replace
from typing import Any
from uuid import UUID

from broker.amqp.codec import decode, encode
from contract.messages import Mode
from contract.outcomes import Outcome
from contract.typed import Typed
from exposition.trace import TRACEPARENT, TRACESTATE, attempt_context, parse
from kma.delivery.in_flight import InFlight
from kma.delivery.trace import TracedHandling, outgoing
from kma.sdk.encoding import encoded_message
from kma.testing import run_agent
from tests.kma.conftest import Make
from tests.kma.fakes import eventually, message

PRODUCER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SEND = {"do": "send", "destination": "demo.invoices"}


def from_producer(body: Any, identity: str = "ID:1", **properties: str) -> bytes:
    given = {TRACEPARENT: PRODUCER, **properties}
    found = decode(message(body, identity=identity))
    return encode(replace(found, properties={name: Typed("string", text) for name, text in given.items()}))


def property_of(sent: Any, name: str) -> str | None:
    value = sent.message.properties.get(name)
    return None if value is None else str(value.value)


def test_a_success_is_told_with_its_times_and_its_producer(stage: Make) -> None:
    found: list[TracedHandling] = []
    before = time.time()
    one = stage([from_producer({"do": "sleep", "seconds": 0.05})], trace=found.append)
    one.settled(1)
    (told,) = found
    assert told.context == attempt_context("orders", "ID:1", 1, UUID(int=0))
    assert told.links == (parse(PRODUCER),)
    assert (told.attempt, told.outcome, told.error_type) == (1, Outcome.RETURNED, "")
    assert before <= told.began <= told.ended - 0.05 <= time.time()
    assert (told.run.setting, told.destination) == ("orders", "demo.orders")


def test_each_attempt_is_told_and_linked_to_the_one_before(stage: Make) -> None:
    found: list[TracedHandling] = []
    one = stage([from_producer({"do": "raise", "type": "KeyError", "text": "x"})], trace=found.append)
    one.settled(3)
    assert [told.attempt for told in found] == [1, 2, 3]
    assert {told.error_type for told in found} == {"KeyError"}
    contexts = [told.context for told in found]
    assert len({each.trace_id for each in contexts}) == 3
    assert [told.links for told in found] == [
        (parse(PRODUCER),),
        (parse(PRODUCER), contexts[0]),
        (parse(PRODUCER), contexts[1]),
    ]


def test_a_process_that_died_is_told_too(stage: Make) -> None:
    found: list[TracedHandling] = []
    one = stage([message({"do": "exit", "code": 3}, identity="ID:1")], trace=found.append, max_attempts=1)
    one.settled(1)
    (told,) = found
    assert (told.outcome, told.error_type, told.links) == (Outcome.CHILD_DIED, "exit:3", ())
    assert told.began <= told.ended


def test_what_is_sent_belongs_to_the_handling_in_each_mode(stage: Make) -> None:
    for mode in (Mode.TRANSACTED, Mode.AUTO):
        found: list[TracedHandling] = []
        one = stage([from_producer(SEND)], trace=found.append, mode=mode)
        one.settled(1)
        (sent,) = one.link.sent
        assert property_of(sent, TRACEPARENT) == str(found[0].context)


def test_what_is_sent_in_the_mode_client_belongs_to_it_too(stage: Make) -> None:
    commit = {"do": "acknowledge", "action": "COMMIT"}
    for steps in ([SEND, commit], [commit, SEND], [SEND]):
        found: list[TracedHandling] = []
        one = stage([from_producer(steps)], trace=found.append, mode=Mode.CLIENT)
        eventually(lambda one=one: bool(one.link.sent or one.published), "it is sent")  # type: ignore[misc]
        (sent,) = [*one.link.sent, *one.published]
        eventually(lambda found=found: bool(found), "it is told")  # type: ignore[misc]
        assert property_of(sent, TRACEPARENT) == str(found[0].context)


def test_an_agent_that_chose_a_trace_keeps_it() -> None:
    own = "00-11111111111111111111111111111111-2222222222222222-01"
    work = InFlight(1, from_producer("x"), 0, 1, UUID(int=1).bytes, 0, ())
    context = attempt_context("orders", "ID:1", 1, UUID(int=1))
    sends = [
        ("a", encoded_message("x", {TRACEPARENT: given} if given else {})) for given in (own, PRODUCER, "")
    ]
    found = [property_of(sent, TRACEPARENT) for sent in outgoing(sends, work, context)]
    assert found == [own, str(context), str(context)]


def test_without_a_collector_the_producer_s_trace_is_passed_on(stage: Make) -> None:
    one = stage([from_producer(SEND, **{TRACESTATE: "vendor=1"})], mode=Mode.TRANSACTED)
    one.settled(1)
    (sent,) = one.link.sent
    assert [property_of(sent, name) for name in (TRACEPARENT, TRACESTATE)] == [PRODUCER, "vendor=1"]


def test_equal_messages_without_an_id_are_linked_to_nobody_else(stage: Make) -> None:
    found: list[TracedHandling] = []
    bare = [encode(replace(decode(message({"do": "ok"})), message_id=None, delivery_count=n)) for n in (0, 1)]
    one = stage(bare, trace=found.append)
    one.settled(2)
    assert [told.links for told in found] == [(), ()]
    assert found[0].context.trace_id != found[1].context.trace_id


def test_the_trace_of_the_message_is_passed_on_by_what_is_sent() -> None:
    class Sends:
        def run_agent(self, message: Any, context: Any) -> None:
            context.send("shop.invoices", "text")
            context.send("shop.invoices", "text", {"a": "b"})
            context.send("shop.invoices", "text", {TRACEPARENT: "own"})

    result = run_agent(Sends, "", {TRACEPARENT: PRODUCER, TRACESTATE: "vendor=1"})
    first, second, third = (dict(each.message.properties) for each in result.sent)
    assert first == {TRACEPARENT: PRODUCER, TRACESTATE: "vendor=1"}
    assert second == {TRACEPARENT: PRODUCER, TRACESTATE: "vendor=1", "a": "b"}
    assert third[TRACEPARENT] == "own"


def test_what_is_no_trace_is_not_passed_on() -> None:
    class Sends:
        def run_agent(self, message: Any, context: Any) -> None:
            context.send("shop.invoices", "text")

    for given in ({}, {TRACEPARENT: "none"}, {TRACEPARENT: 7}, {TRACESTATE: "vendor=1"}):
        (sent,) = run_agent(Sends, "", given).sent
        assert dict(sent.message.properties) == {}
    (sent,) = run_agent(Sends, "", {TRACEPARENT: PRODUCER, TRACESTATE: "v" * 600}).sent
    assert dict(sent.message.properties) == {TRACEPARENT: PRODUCER}
