"""Messages that a Core client compressed: an agent is told what is missing, who asks for Core messages has
all."""

import zlib

import pytest

from broker.amqp.codec import encode
from broker.amqp.compressed import LARGE_COMPRESSED, LARGE_SIZE, MOST_BYTES, inflated, missing_bytes
from broker.amqp.consumer import AmqpConsumer
from broker.port import Settle
from contract.outcomes import Outcome
from contract.typed import Typed
from kma.agent import Context, InvalidMessage, Message
from kma.testing import run_agent
from tests.broker.houses import Got, Owner, RealHouse, Setting, eventually
from tests.broker.jms import jms_producer
from tests.broker.jms.jms_producer import Sent

SIZE = 3_000_000


def compressed(real: RealHouse, *content: str) -> Setting:
    setting = real.setting()
    jms_producer.send_by_command(
        real.service, "CORE", setting.address, *content, query=jms_producer.COMPRESSING
    )
    return setting


def delivered(real: RealHouse, setting: Setting, *, core: bool) -> Got:
    owner = Owner()
    consumer = AmqpConsumer(real.kma, setting.address, setting.key, owner, 1, core=core)
    consumer.start()
    got = owner.got()
    consumer.stop()
    eventually(lambda: real.figures(setting).delivering == 0)
    return got


def refuse_a_part(message: Message, context: Context) -> None:
    if message.truncated:
        raise InvalidMessage(f"{len(message.body)} of {message.declared_size} bytes")


def test_an_agent_is_told_that_only_the_head_of_a_body_came(real: RealHouse) -> None:
    setting = compressed(real, "--message-size", str(SIZE))
    cut = delivered(real, setting, core=False).message
    result = run_agent(refuse_a_part, encoded=encode(cut))
    assert result.outcome is Outcome.INVALID and result.failure is not None
    assert len(cut.body.value) < SIZE
    assert result.failure.text == f"{len(cut.body.value)} of {SIZE} bytes"
    assert run_agent(refuse_a_part, b"all of it").ok


def test_who_asks_for_core_messages_has_all_of_it_also_after_a_move(real: RealHouse) -> None:
    setting, target = compressed(real, "--message-size", str(SIZE)), real.setting()
    whole = delivered(real, setting, core=True).message
    assert len(whole.body.value) == SIZE
    assert not {LARGE_COMPRESSED, LARGE_SIZE} & whole.properties.keys()
    real.management.call(f"queue.{setting.key}", "moveMessages", 10, "", target.key, False, 1)
    assert delivered(real, target, core=True).message.body == whole.body


def test_a_compressed_text_is_whole_either_way(real: RealHouse) -> None:
    setting = compressed(real, "--text-size", "400000")
    theirs, ours = delivered(real, setting, core=False).message, delivered(real, setting, core=True).message
    assert theirs.body == ours.body and len(ours.body.value) > 400_000
    assert run_agent(refuse_a_part, encoded=encode(theirs)).ok
    consumer, owner = real.consume(setting, 1)
    consumer.settle([(owner.got().tag, Settle.ACCEPT)])


def return_the_body(message: Message, context: Context) -> None:
    raise InvalidMessage(f"{message.kind} {len(message.body)} {message.truncated} {message.body[-4:].hex()}")


def test_bytes_that_become_longer_by_compression_come_as_they_were_sent(real: RealHouse) -> None:
    """The broker hands over as many bytes as the compressed body has, the last of them zeros."""
    setting = real.setting()
    url = real.service.core_url + jms_producer.COMPRESSING
    jms_producer.send(url, real.service.publisher, setting.address, [Sent("noise", 1, 150_000)])
    consumer, owner = real.consume(setting, 1)
    got = owner.got()
    whole = got.message.body.value
    assert len(whole) > 150_000 and set(whole[150_000:]) == {0}
    result = run_agent(return_the_body, encoded=encode(got.message))
    assert result.failure is not None
    assert result.failure.text == f"bytes 150000 False {whole[149_996:150_000].hex()}"
    consumer.settle([(got.tag, Settle.ACCEPT)])


def test_a_compressed_object_is_whole_and_said_to_be_so(real: RealHouse) -> None:
    """Its size by its sender's word counts the four bytes before the object, which no agent gets."""
    setting = compressed(real, "--object-size", "1300000")
    theirs = delivered(real, setting, core=False).message
    assert LARGE_COMPRESSED in theirs.properties and len(theirs.body.value) > 1_300_000
    assert run_agent(refuse_a_part, encoded=encode(theirs)).ok
    consumer, owner = real.consume(setting, 1)
    consumer.settle([(owner.got().tag, Settle.ACCEPT)])


def said(size: object, compressed: object = True) -> dict[str, Typed]:
    return {LARGE_COMPRESSED: Typed("boolean", compressed), LARGE_SIZE: Typed("long", size)}


@pytest.mark.parametrize(
    ("body", "properties", "whole"),
    [
        (zlib.compress(b"x" * 9), said(9), b"x" * 9),
        (zlib.compress(b""), said(0), b""),
        (zlib.compress(b"x" * 9), said(8), None),
        (zlib.compress(b"x" * 9), said(10), None),
        (zlib.compress(b"x" * 9)[:-1], said(9), None),
        (zlib.compress(b"x" * 9) + b"more", said(9), None),
        (b"x" * 9, said(9), None),
        (zlib.compress(b"x" * 9), said(9, compressed=False), None),
        (zlib.compress(b"x" * 9), {}, None),
        (zlib.compress(b"\0" * 1_000_000), said(-1), None),
        (zlib.compress(b"\0" * 1_000_000), said(10), None),
        (b"", said(MOST_BYTES + 1), None),
    ],
)
def test_a_body_is_inflated_where_it_has_exactly_the_size_that_it_says(
    body: bytes, properties: dict[str, Typed], whole: bytes | None
) -> None:
    assert inflated(body, properties) == whole


def test_only_bytes_can_be_missing() -> None:
    assert missing_bytes(b"123", True, 10) == 7
    assert (
        missing_bytes("123", True, 10)
        == missing_bytes(b"123", False, 10)
        == missing_bytes(b"123", True, True)
        == 0
    )
