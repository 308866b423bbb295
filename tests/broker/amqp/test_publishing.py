"""What a publisher promises, and that nothing of a message is lost on the way through the broker."""

from dataclasses import replace

import pytest

from broker.port import AddressUnknown, BodyKind, Message, Outgoing, Settle
from contract.typed import Typed
from tests.broker.houses import DLA, House, eventually, text_message
from tests.broker.messages import NESTED, VALUES, everything, named


def roundtrip(house: House, message: Message) -> Message:
    setting = house.setting()
    house.publisher.publish([Outgoing(setting.address, message)])
    consumer, owner = house.consume(setting)
    got = owner.got()
    consumer.settle([(got.tag, Settle.ACCEPT)])
    consumer.stop()
    return got.message


@pytest.mark.parametrize("body", VALUES, ids=lambda value: value.type)
def test_a_value_of_every_type_arrives_as_it_was_sent(house: House, body: Typed) -> None:
    assert roundtrip(house, Message(body=body)).body == body


def test_every_field_and_property_arrives(house: House) -> None:
    sent = everything(Typed("string", "body"))
    assert replace(roundtrip(house, sent), to=sent.to) == sent


def test_a_property_of_a_compound_type_arrives(house: House) -> None:
    # Not allowed by AMQP, and seen all the same.
    sent = Message(body=Typed("string", "odd"), properties=named(NESTED))
    assert roundtrip(house, sent).properties == sent.properties


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (BodyKind.DATA, Typed("binary", b"")),
        (BodyKind.DATA, Typed("binary", b"\x00\xff" * 1000)),
        (BodyKind.SEQUENCE, Typed("list", NESTED)),
        (BodyKind.VALUE, Typed("string", "")),
        (BodyKind.VALUE, Typed("null", None)),
    ],
)
def test_every_kind_of_body_arrives(house: House, kind: BodyKind, body: Typed) -> None:
    arrived = roundtrip(house, Message(body=body, body_kind=kind))
    assert (arrived.body_kind, arrived.body) == (kind, body)


def test_a_body_of_20_mb_arrives(house: House) -> None:
    body = Typed("binary", b"0123456789" * 2_000_000)
    assert roundtrip(house, Message(body=body, body_kind=BodyKind.DATA)).body == body


def test_text_with_a_broken_surrogate_arrives(house: House) -> None:
    body = Typed("string", "half \ud83d of a smile")
    assert roundtrip(house, Message(body=body)).body == body


def test_a_stranger_s_property_with_a_broken_surrogate_is_handled_and_its_letter_is_in_the_feed_only(
    house: House,
) -> None:
    setting = house.setting()
    consumer, owner = house.consume(setting)
    broken = {"text": Typed("string", f"\ud83d {setting.key}"), "n": Typed("int", 1)}
    house.publish_as_a_stranger(setting.address, text_message("odd", properties=broken))
    got = owner.got()
    assert got.message.properties == broken
    consumer.settle([(got.tag, Settle.REJECT)])

    def found(queue: str) -> bool:
        return broken in [each.properties for each in house.look(DLA, queue, limit=100_000)]

    # The filters of the other queues cannot read it, so they do not match.
    eventually(lambda: found("DLQ.feed"))
    assert not found(setting.dead)
    assert not found("DLQ.unknown")


@pytest.mark.parametrize(
    "message",
    [
        text_message("x", properties={"text": Typed("string", "\ud83d")}),
        text_message("x", properties={"\ud83d": Typed("int", 1)}),
        text_message("x", properties={"list": Typed("list", (Typed("symbol", "\ud83d"),))}),
        text_message("x", reply_to="\ud83d"),
        text_message("x", properties={"n": Typed("byte", 300)}),
        text_message("x", properties={"n": Typed("nothing", 1)}),
    ],
)
def test_what_no_filter_could_read_is_not_sent(house: House, message: Message) -> None:
    setting = house.setting()
    with pytest.raises(ValueError):
        house.publisher.publish(
            [Outgoing(setting.address, text_message("first")), Outgoing(setting.address, message)]
        )
    assert house.figures(setting).added == 0


def test_an_unknown_address_or_queue_is_refused_and_nothing_is_sent(house: House) -> None:
    setting = house.setting()
    for destination in ("nobody.made.this", "nobody.made.this::queue", f"{setting.address}::nobody"):
        with pytest.raises(AddressUnknown):
            house.publisher.publish(
                [Outgoing(setting.address, text_message("first")), Outgoing(destination, text_message("x"))]
            )
    assert house.figures(setting).added == 0
    house.publish(setting.address, "goes on")
    eventually(lambda: house.figures(setting).messages == 1)


def test_one_queue_of_an_address_can_be_published_to(house: House) -> None:
    one = house.setting()
    other = house.setting(address=one.address)
    house.publish(f"{one.address}::{one.key}", "only here")
    eventually(lambda: house.figures(one).messages == 1)
    assert house.figures(other).messages == 0


def test_a_copy_of_a_dead_letter_begins_anew(house: House) -> None:
    setting = house.setting()
    letter = replace(house.die(setting, "old")[0], delivery_count=7)
    house.publisher.publish([Outgoing(setting.address, letter)])
    _, owner = house.consume(setting)
    assert owner.got().count == 0


def test_thousands_are_published_at_once(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, *("x" for _ in range(3000)))
    eventually(lambda: house.figures(setting).messages == 3000)
