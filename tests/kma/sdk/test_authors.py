"""What agent authors import: registration, the message, the context, the harness."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from broker.amqp.codec import decode, encode
from broker.port import BodyKind
from broker.port import Message as AmqpMessage
from contract.typed import Typed
from kma.agent import (
    AcknowledgementRefused,
    Agent,
    AgentStopped,
    Context,
    InvalidMessage,
    Message,
    TemporaryUnavailable,
    agent,
)
from kma.handling.failure import type_name
from kma.sdk import errors, registry
from kma.sdk.encoding import encoded_message
from kma.testing import ACKNOWLEDGEMENT, Action, Outcome, as_json, run_agent


def seen(body: Any = "", encoded: bytes | None = None, attempt: int = 1, **fields: Any) -> Message:
    """The message as an agent gets it."""
    found: list[Message] = []
    result = run_agent(
        lambda message, context: found.append(message), body, encoded=encoded, attempt=attempt, **fields
    )
    assert result.ok, result.failure
    return found[0]


def test_classes_and_functions_are_registered_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_AGENTS", {})

    @agent("shop.a", version="3")
    class One(Agent):
        """First line.

        More.
        """

        def run_agent(self, message: Message, context: Context) -> None: ...

    @agent("shop.b", summary="given")
    def two(message: Message, context: Context) -> None: ...

    @agent("shop.c")
    def alone(context: Context) -> None: ...

    found = [(one.name, one.kind, one.version, one.summary) for one in registry.offered()]
    assert found == [
        ("shop.a", "message", "3", "First line."),
        ("shop.b", "message", "", "given"),
        ("shop.c", "standalone", "", ""),
    ]
    assert run_agent("shop.a").ok and run_agent("shop.b").ok
    with pytest.raises(TypeError, match="accepts no messages"):
        run_agent("shop.c")
    with pytest.raises(errors.UnknownAgent, match=r"available: shop\.a"):
        run_agent("shop.d")


def test_one_name_is_one_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_AGENTS", {})

    def one(message: Message, context: Context) -> None: ...

    def other(message: Message, context: Context) -> None: ...

    agent("shop.a")(one)
    agent("shop.a")(one)  # a module that is imported twice
    with pytest.raises(errors.AgentNameTaken):
        agent("shop.a")(other)


@pytest.mark.parametrize("name", ["", " a", "x" * 101, "a\nb"])
def test_a_name_that_no_page_could_show_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not an agent name"):
        agent(name)(lambda message, context: None)


def test_what_cannot_be_called_with_a_message_is_no_agent() -> None:
    with pytest.raises(TypeError):
        agent("shop.bad")(lambda: None)
    with pytest.raises(TypeError):
        agent("shop.bad")(object)


def test_natural_values_come_as_they_were_sent() -> None:
    at = datetime(2026, 7, 1, 12, tzinfo=UTC)
    properties = {
        "i": 7,
        "f": 0.5,
        "b": True,
        "s": "ж",
        "u": UUID(int=1),
        "at": at,
        "raw": b"\x00",
        "none": None,
    }
    message = seen("hello", properties=properties, message_id="ID:1", correlation_id="c", reply_to="r")
    assert (message.kind, message.body) == ("text", "hello")
    assert message.properties == properties
    assert (message.id, message.key, message.correlation_id, message.reply_to) == ("ID:1", "ID:1", "c", "r")
    assert message.destination == "test.destination"


@pytest.mark.parametrize(
    ("body", "kind"), [("", "text"), (b"", "bytes"), ({"a": 1}, "map"), ([1, "x"], "stream"), (None, "other")]
)
def test_each_kind_of_body_comes_back_as_it_went(body: Any, kind: str) -> None:
    message = seen(body)
    assert (message.kind, message.body) == (kind, body)


def test_a_message_without_annotation_is_known_by_its_body() -> None:
    for body, section, kind in (
        (Typed("string", "x"), BodyKind.VALUE, "text"),
        (Typed("binary", b"x"), BodyKind.DATA, "bytes"),
        (Typed("list", (Typed("int", 1),)), BodyKind.SEQUENCE, "stream"),
        (Typed("long", 5), BodyKind.VALUE, "other"),
    ):
        assert seen(encoded=encode(AmqpMessage(body=body, body_kind=section))).kind == kind


def test_a_java_object_stays_bytes() -> None:
    java = "application/x-java-serialized-object"
    content = AmqpMessage(body=Typed("binary", b"\xac\xed"), body_kind=BodyKind.DATA, content_type=java)
    message = seen(encoded=encode(content))
    assert (message.kind, message.body) == ("object", b"\xac\xed")
    with pytest.raises(InvalidMessage):
        message.json()


def test_json_is_read_from_text_and_bytes_and_refused_when_it_is_none() -> None:
    assert seen('{"a": [1]}').json() == {"a": [1]} == seen(b'{"a": [1]}').json()
    for body in ("", "{", b"\xff", "[" * 100_000, {"a": 1}, None):
        with pytest.raises(InvalidMessage):
            seen(body).json()


def test_the_first_attempt_is_no_redelivery() -> None:
    assert not seen("", attempt=1).redelivered
    assert seen("", attempt=2).redelivered and seen("", attempt=2).attempt == 2


def test_outcomes_of_the_harness_are_those_of_the_container() -> None:
    def raising(error: BaseException) -> Any:
        def run(message: Message, context: Context) -> None:
            context.send("x", "never")
            raise error

        return run

    assert run_agent(raising(TemporaryUnavailable("t"))).outcome is Outcome.TEMPORARY
    assert run_agent(raising(InvalidMessage("i"))).outcome is Outcome.INVALID
    assert run_agent(raising(SystemExit(1))).outcome is Outcome.RAISED
    assert run_agent(raising(AgentStopped())).outcome is Outcome.RAISED
    assert run_agent(raising(AgentStopped()), stopping=True).outcome is Outcome.RELEASED
    result = run_agent(raising(KeyError("sku")))
    assert result.outcome is Outcome.RAISED and result.sent == () and result.failure is not None
    assert result.failure.exception_type == "KeyError" and result.failure.place == "test_authors.py:run"


def test_bytes_that_are_no_message_are_invalid() -> None:
    assert run_agent(lambda message, context: None, encoded=b"\x00").outcome is Outcome.INVALID


def test_what_is_sent_can_be_looked_at() -> None:
    def sender(message: Message, context: Context) -> None:
        context.send("a", "text", {"n": 1}, correlation_id=message.id, priority=7, ttl=timedelta(seconds=5))
        context.send_json("b", {"ж": 1})
        context.send("c", b"raw", durable=False)

    first, second, third = run_agent(sender, "", message_id="ID:1").sent
    assert (first.destination, first.message.body, first.message.properties) == ("a", "text", {"n": 1})
    assert first.message.correlation_id == "ID:1" and first.message.id.startswith("ID:")
    assert second.json() == {"ж": 1} and second.message.content_type == "application/json"
    assert third.message.kind == "bytes"


@pytest.mark.parametrize(
    "body", [{"a": object()}, {1, 2}, 2**63, datetime(2026, 1, 1)], ids=["object", "set", "large", "naive"]
)
def test_what_amqp_cannot_carry_fails_in_send_itself(body: Any) -> None:
    result = run_agent(lambda message, context: context.send("x", body))
    assert result.outcome is Outcome.RAISED and result.failure is not None
    assert result.failure.exception_type in ("TypeError", "ValueError")


@pytest.mark.parametrize("destination", ["", "a\nb", "x" * 501])
def test_a_destination_that_is_none_fails_in_send_itself(destination: str) -> None:
    assert run_agent(lambda message, context: context.send(destination, "x")).outcome is Outcome.RAISED


def test_sent_messages_are_persistent_and_typed_unless_asked_otherwise() -> None:
    message = decode(
        encoded_message("x", {"d": Decimal("1.5"), "i": Typed("int", 3)}, ttl=timedelta(seconds=2))
    )
    assert message.durable and message.ttl_ms == 2000 and message.created_at is not None
    assert message.annotations["x-opt-jms-msg-type"] == Typed("byte", 5)
    assert message.properties == {"d": Typed("string", "1.5"), "i": Typed("int", 3)}
    assert not decode(encoded_message("x", {}, durable=False)).durable


def test_parameters_and_names_of_the_run_are_in_the_context() -> None:
    def look(message: Message, context: Context) -> None:
        assert context.parameters == {"limit": 3} and context.server == "test" and context.setting == "test"
        assert not context.stopping and UUID(context.activation)

    assert run_agent(look, parameters={"limit": 3}).ok


def test_as_json_is_what_json_reads() -> None:
    assert seen(as_json({"a": "ü"})).json() == {"a": "ü"} == json.loads(as_json({"a": "ü"}))


def test_the_harness_takes_answers_of_the_mode_client() -> None:
    def commit(message: Message, context: Context) -> None:
        assert context.acknowledgement_id == ACKNOWLEDGEMENT
        context.send("shop.done", "before")
        assert context.acknowledge(context.acknowledgement_id, "jbxCommit") == "committed"
        context.send("shop.done", "after")
        assert context.acknowledge("of-another", "ROLLBACK") == "rolled_back"
        with pytest.raises(AcknowledgementRefused) as refused:
            context.acknowledge(ACKNOWLEDGEMENT, "ROLLBACK")
        assert refused.value.state == "committed"
        if message.body:
            raise KeyError

    done = run_agent(commit, client=True)
    assert (done.ok, done.answer, [sent.message.body for sent in done.sent]) == (
        True,
        Action.COMMIT,
        ["before", "after"],
    )
    assert done.answers == ((ACKNOWLEDGEMENT, Action.COMMIT), ("of-another", Action.ROLLBACK))
    assert run_agent(commit, "x", client=True).outcome is Outcome.RAISED_AFTER_COMMIT

    def roll_back(message: Message, context: Context) -> None:
        context.send("shop.done", "before")
        context.acknowledge(context.acknowledgement_id, "ROLLBACK")

    undone = run_agent(roll_back, client=True)
    assert (undone.outcome, undone.answer, undone.sent) == (Outcome.ROLLED_BACK, Action.ROLLBACK, ())
    unanswered = run_agent(lambda message, context: None, client=True)
    assert (unanswered.ok, unanswered.answer) == (True, None)
    assert run_agent(lambda message, context: context.log.info(context.acknowledgement_id or "none")).ok


def test_another_action_is_refused_with_what_there_is() -> None:
    def answer(message: Message, context: Context) -> None:
        context.acknowledge(context.acknowledgement_id, "ACCEPT")

    failed = run_agent(answer, client=True)
    assert failed.failure is not None and failed.answer is None
    assert failed.failure.text == "'ACCEPT' is not an action: COMMIT (JBXCommit) or ROLLBACK (JBXRollback)"


def test_a_send_brings_the_time_to_answer_as_an_integer_property() -> None:
    sent = run_agent(lambda message, context: context.send("a", "b", acknowledgement_timeout=30)).sent[0]
    assert sent.message.properties == {"JBXAcknowledgmentTimeout": 30}


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "7", 2**31])
def test_a_time_to_answer_is_a_whole_number_of_seconds(value: Any) -> None:
    failed = run_agent(lambda message, context: context.send("a", "b", acknowledgement_timeout=value)).failure
    assert (
        failed is not None
        and failed.exception_type == "ValueError"
        and "whole number of seconds from 1" in failed.text
    )


def test_exceptions_keep_the_names_that_are_stored_and_hashed_into_fingerprints() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert {type_name(kind) for kind in kinds if issubclass(kind, BaseException)} == {
        "kma.agent.AcknowledgementRefused",
        "kma.agent.AgentStopped",
        "kma.agent.InvalidMessage",
        "kma.agent.SendRefused",
        "kma.agent.TemporaryUnavailable",
        "kma.registry.AgentNameTaken",
        "kma.registry.UnknownAgent",
    }
