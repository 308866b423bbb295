"""Of a compressed body only the head is kept: the letter says so, and nobody sends that head back."""

import pytest

from broker.amqp.codec import encode
from broker.amqp.compressed import LARGE_COMPRESSED, LARGE_SIZE
from broker.port import BodyKind, Message
from contract.typed import Typed
from dlq.dead_letters.rules.parser import letter_row
from dlq.edit.rules.copy import message_of
from dlq.edit.rules.values import EditRefused
from dlq.models import DeadLetter


@pytest.mark.django_db
def test_a_body_that_is_not_whole_says_so_and_is_not_edited() -> None:
    properties = {LARGE_COMPRESSED: Typed("boolean", True), LARGE_SIZE: Typed("long", 3_000_000)}
    cut = Message(
        body=Typed("binary", b"head"),
        body_kind=BodyKind.DATA,
        properties=properties,
        message_id=Typed("string", "ID:1"),
        annotations={"x-opt-ORIG-MESSAGE-ID": Typed("long", 7)},
    )
    row: DeadLetter = letter_row(encode(cut), "node", DeadLetter().seen_at)
    assert row.truncated
    row.truncated = False  # as it was stored before this was known
    with pytest.raises(EditRefused) as refused:
        message_of(row)
    assert refused.value.code == "truncated"
