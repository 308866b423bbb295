"""The broker's rows of waiting messages, read: hostile properties, lost types, who holds what."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker.management.waiting_messages import Delivering
from contract.message_key import message_key
from contract.names import connection_name, server_of
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from dlq.subscriptions.rules import Held, NextTry, WaitingMessage, held_messages, next_try, waiting_message

AMQP = {
    "messageID": 7,
    "_AMQ_AD": "t",
    "address": "t",
    "durable": True,
    "priority": 4,
    "timestamp": 0,
    "expiration": 0,
}
CORE = {"messageID": 8, "type": 3, "_AMQ_ROUTING_TYPE": 0, "address": "t", "timestamp": 1_795_277_586_666}


def key_of(kind: str, value: Any) -> str:
    return message_key(Typed(kind, value), b"", {}).text


@pytest.mark.parametrize(
    ("row", "keys"),
    [
        ({**AMQP, "userID": "ID:plain"}, [("string", "plain")]),
        ({**AMQP, "userID": "ID:ID:m-1"}, [("string", "ID:m-1")]),
        ({**AMQP, "userID": "ID:" + "y" * 400}, [("string", "y" * 400)]),
        ({**AMQP, "userID": "ID:7"}, [("string", "7"), ("ulong", 7)]),
        (
            {**AMQP, "userID": "ID:0ce1bf58-4e46-42b1-90a3-389a559e22e6"},
            [("string", "0ce1bf58-4e46-42b1-90a3-389a559e22e6"), ("uuid",
            "0ce1bf58-4e46-42b1-90a3-389a559e22e6")],
        ),
        ({**CORE, "userID": "ID:6fc4f506-e5c6-11f1-bc2f-02fc00000001"}, [
            ("string", "ID:6fc4f506-e5c6-11f1-bc2f-02fc00000001")
        ]),
    ],
)  # fmt: skip
def test_the_keys_that_a_message_may_have(row: dict[str, Any], keys: list[tuple[str, Any]]) -> None:
    assert waiting_message(row).keys == tuple(key_of(kind, value) for kind, value in keys)


def test_the_key_is_that_of_the_likeliest_type() -> None:
    assert waiting_message(AMQP | {"userID": "ID:7"}).key == key_of("string", "7")
    assert waiting_message(AMQP).key == ""


def test_a_copy_of_ours_has_the_key_of_its_case_and_without_an_id_there_is_none() -> None:
    assert waiting_message({**AMQP, "userID": "ID:x", "ma_letter": "ID:first"}).key == "ID:first"
    assert waiting_message(AMQP).keys == ()


def test_only_what_a_producer_set_is_called_a_property() -> None:
    row = {
        **AMQP, "x-opt-ORIG-QUEUE": "q", "x-opt-delivery-time": 1, "_AMQ_ORIG_QUEUE": "q", "__AMQ_CID": "c",
        "to": "t",
        "destination-type": "MULTICAST", "receipt": "r", "tenant": "acme", "n": 3, "f": 1.5, "yes": True,
        "bytes": [97, -1], "\ud800": "\udfff",
    }  # fmt: skip
    properties = {each["name"]: each["value"] for each in waiting_message(row).properties}
    plain = {"tenant": "acme", "n": "3", "f": "1.5", "yes": "true", "bytes": "0x61ff"}
    assert plain.items() <= properties.items()
    assert len(properties) == len(plain) + 1
    for text in (*properties, *properties.values()):
        text.encode()


def test_a_producer_cannot_say_where_an_amqp_message_was_before() -> None:
    assert waiting_message({**AMQP, "_AMQ_ORIG_MESSAGE_ID": 77, "x-opt-ORIG-MESSAGE-ID": 5}).before == 5
    assert waiting_message({**CORE, "_AMQ_ORIG_MESSAGE_ID": 77}).before == 77
    assert waiting_message({**AMQP, "_AMQ_ORIG_MESSAGE_ID": "x"}).before is None


@pytest.mark.parametrize("milliseconds", [-1, 2**63, 1e300, "soon", None])
def test_any_timestamp_of_a_producer_is_survived(milliseconds: Any) -> None:
    assert waiting_message({**AMQP, "timestamp": milliseconds}).sent_at is None


def test_who_holds_a_message_and_since_when() -> None:
    ours = {"clientID": f"{connection_name('srv-2')}-{'0' * 36}", "lastDeliveredTime": 1_000_000}
    strange = {"clientID": "", "remoteAddress": "127.0.0.1:5000", "lastDeliveredTime": 0}
    rows = [{**AMQP, "messageID": number} for number in (1, 2, 3, 4)]
    found = held_messages(
        [Delivering(strange, (rows[3],)), Delivering(ours, (rows[0],)), Delivering({}, tuple(rows[1:3]))]
    )
    assert [(held.message.number, held.server, held.exact) for held in found] == [
        (1, "srv-2", True), (2, "", False), (3, "", False), (4, "", True),
    ]  # fmt: skip
    assert found[0].since == datetime(1970, 1, 1, 0, 16, 40, tzinfo=UTC)
    assert (found[3].connection, found[3].since) == ("127.0.0.1:5000", None)


@pytest.mark.parametrize("name", ["", "ma-1", "kma", "other.srv-1-00000000-0000-0000-0000-000000000000"])
def test_a_connection_that_is_no_kma_has_no_server(name: str) -> None:
    assert server_of(name) == ""


def test_the_next_try_is_the_redelivery_after_the_last_failure() -> None:
    policy = RedeliveryPolicy(max_attempts=4, delay=1000, multiplier=2.0)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    found = next_try(policy, 2, at)
    assert (found.number, found.of, found.due) == (3, 4, at + timedelta(seconds=2))
    assert next_try(RedeliveryPolicy(max_attempts=-1), 1, at).of is None


def test_a_row_is_read_as_a_whole_and_what_is_missing_is_what_the_broker_means_by_it() -> None:
    whole = {
        **CORE, "messageID": "8", "userID": "ID:é\0", "priority": "7", "durable": False, "timestamp": 1500,
        "expiration": 1, "_AMQ_ORIG_MESSAGE_ID": 0, "b": 1, "a": "\0",
    }  # fmt: skip
    assert waiting_message(whole) == WaitingMessage(
        number=8, message_id="ID:é␀", keys=(key_of("string", "ID:é\0"),), before=0, priority=7, durable=False,
        sent_at=datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
        expires_at=datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC),
        properties=({"name": "a", "value": "␀"}, {"name": "b", "value": "1"}),
    )  # fmt: skip
    assert waiting_message({"messageID": 1}) == WaitingMessage(1, "", (), None, 4, True, None, None, ())
    assert waiting_message({"messageID": 1}).key == ""
    assert waiting_message({**AMQP, "userID": "ID:ID:m"}).message_id == "ID:m"


@pytest.mark.parametrize(
    ("row", "keys"),
    [
        ({**AMQP, "userID": "ID:x", "ma_letter": "y" * 300}, ("y" * 255,)),
        ({**AMQP, "userID": "ID:x", "ma_letter": "a\0"}, ("a␀",)),
        ({**AMQP, "userID": "ID:x", "ma_letter": ""}, (key_of("string", "x"),)),
        ({**AMQP, "userID": "ID:x", "ma_letter": 7}, (key_of("string", "x"),)),
        ({**AMQP, "userID": "ID:"}, ()),
        ({**AMQP, "userID": None}, ()),
        ({**AMQP, "userID": "ID:" + "1" * 20}, (key_of("string", "1" * 20), key_of("ulong", int("1" * 20)))),
        ({**AMQP, "userID": "ID:" + "1" * 21}, (key_of("string", "1" * 21),)),
        ({**AMQP, "userID": "ID:٧"}, (key_of("string", "٧"),)),
        ({**AMQP, "userID": "ID:-7"}, (key_of("string", "-7"),)),
        ({**AMQP, "userID": "ID:" + "z" * 36}, (key_of("string", "z" * 36),)),
        ({**AMQP, "userID": "ID:" + "a" * 32}, (key_of("string", "a" * 32),)),
        ({**AMQP, "userID": "ID:0CE1BF58-4E46-42B1-90A3-389A559E22E6"}, (
            key_of("string", "0CE1BF58-4E46-42B1-90A3-389A559E22E6"),
        )),
        ({**CORE, "userID": "7"}, (key_of("string", "7"),)),
    ],
)  # fmt: skip
def test_keys_are_those_that_the_id_can_be_of(row: dict[str, Any], keys: tuple[str, ...]) -> None:
    assert waiting_message(row).keys == keys


@pytest.mark.parametrize(
    ("number", "before"),
    [(0, 0), (-1, None), (2**63 - 1, 2**63 - 1), (2**63, None), (1.5, None), (None, None)],
)
def test_the_id_before_the_last_move_is_one_of_the_brokers(number: Any, before: int | None) -> None:
    assert waiting_message({**CORE, "_AMQ_ORIG_MESSAGE_ID": number}).before == before
    assert (
        waiting_message({**AMQP, "x-opt-ORIG-MESSAGE-ID": number, "_AMQ_ORIG_MESSAGE_ID": 77}).before
        == before
    )


@pytest.mark.parametrize(
    "name",
    [
        "address", "userID", "expiration", "durable", "priority", "timestamp", "type", "to", "__AMQ_CID",
        "x-opt-ORIG-ADDRESS", "JMS_AMQP_HEADER", "JMSXGroupID", "_AMQ_GROUP_ID", "receipt",
    ],
)  # fmt: skip
def test_the_words_of_a_broker_are_no_properties(name: str) -> None:
    assert waiting_message({"messageID": 1, name: 4}).properties == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([0, 255, 256, -1, "x"], "0x00ff00ff"),
        ([], "0x"),
        (True, "true"),
        (False, "false"),
        (1.5, "1.5"),
        ("Ab", "Ab"),
    ],
)
def test_a_value_without_its_type_is_text_or_bytes(value: Any, text: str) -> None:
    assert waiting_message({"messageID": 1, "p": value}).properties == ({"name": "p", "value": text},)


def test_what_is_held_says_by_whom() -> None:
    row = {**AMQP, "messageID": 5}
    consumer = {"clientID": "some\0body", "remoteAddress": "127.0.0.1:1", "lastDeliveredTime": 1000}
    second = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert held_messages([Delivering(consumer, (row,))]) == [
        Held(waiting_message(row), server="", connection="some␀body", since=second, exact=True)
    ]
    assert held_messages([Delivering({}, (row,))])[0] == Held(waiting_message(row), "", "", None, True)


@pytest.mark.parametrize(
    ("attempts", "attempt", "expected"),
    [(1, 0, (1, 1, 1)), (0, 1, (2, None, 1)), (1, 1, (2, 1, 1)), (9, 3, (4, 9, 4))],
)
def test_the_next_try_is_counted_from_the_attempt_that_failed(
    attempts: int, attempt: int, expected: tuple[int, int | None, int]
) -> None:
    policy = RedeliveryPolicy(max_attempts=attempts, delay=1000, multiplier=2.0)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    number, of, seconds = expected
    assert next_try(policy, attempt, at) == NextTry(number, of, at + timedelta(seconds=seconds))
