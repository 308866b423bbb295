"""The broker's rows of waiting messages, read: hostile properties, lost types, who holds what."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker.waiting import Delivering
from contract.connections import connection_name, server_of
from contract.identity import message_key
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from dlq.waiting.rows import held_messages, next_try, waiting_message

AMQP = {"messageID": 7, "_AMQ_AD": "t", "address": "t", "durable": True, "priority": 4, "timestamp": 0, "expiration": 0}
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
            [("string", "0ce1bf58-4e46-42b1-90a3-389a559e22e6"), ("uuid", "0ce1bf58-4e46-42b1-90a3-389a559e22e6")],
        ),
        ({**CORE, "userID": "ID:6fc4f506-e5c6-11f1-bc2f-02fc00000001"}, [
            ("string", "ID:6fc4f506-e5c6-11f1-bc2f-02fc00000001")
        ]),
    ],
)  # fmt: skip
def test_the_keys_that_a_message_may_have(row: dict[str, Any], keys: list[tuple[str, Any]]) -> None:
    assert waiting_message(row).keys == tuple(key_of(kind, value) for kind, value in keys)


def test_a_copy_of_ours_has_the_key_of_its_case_and_without_an_id_there_is_none() -> None:
    assert waiting_message({**AMQP, "userID": "ID:x", "ma_letter": "ID:first"}).key == "ID:first"
    assert waiting_message(AMQP).keys == ()


def test_only_what_a_producer_set_is_called_a_property() -> None:
    row = {
        **AMQP, "x-opt-ORIG-QUEUE": "q", "x-opt-delivery-time": 1, "_AMQ_ORIG_QUEUE": "q", "__AMQ_CID": "c", "to": "t",
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
