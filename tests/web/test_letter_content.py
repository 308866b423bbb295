"""What a letter holds is its own, whoever it is stored with."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker.amqp.codec import decode, encode
from broker.port import Message
from contract.typed import Typed
from dlq.dead_letters.rules.parser import letter_row
from dlq.index import store
from dlq.models import DeadLetter, LetterContent
from dlq.models.content import with_heads
from tests.web.letters import NODE
from tests.web.reports import AT

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

BODIES = [f'{{"order": {number}}}' for number in range(5)]


@pytest.fixture
def stored() -> list[DeadLetter]:
    """All in one batch, as the feed brings them."""
    rows = []
    for number, body in enumerate(BODIES):
        properties = {"order": Typed("int", number)}
        annotations = {
            "x-opt-ORIG-MESSAGE-ID": Typed("long", number),
            "x-opt-ORIG-QUEUE": Typed("string", "orders"),
        }
        message = Message(body=Typed("string", body), properties=properties, annotations=annotations)
        row = letter_row(encode(message), NODE, AT + timedelta(seconds=number))
        row.queue = "DLQ.orders"
        rows.append(row)
    return store.store(rows, AT)


def test_each_letter_of_a_batch_has_its_own_content(stored: list[DeadLetter]) -> None:
    read = DeadLetter.objects.order_by("orig_message_id")
    assert [row.body_text for row in read] == BODIES
    assert [decode(bytes(row.encoded)).body.value for row in read] == BODIES
    assert [row.properties[0]["value"] for row in read] == [0, 1, 2, 3, 4]
    assert [row.annotations[0]["value"] for row in read] == [0, 1, 2, 3, 4]


def test_a_list_reads_the_heads_with_the_letters(stored: list[DeadLetter]) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert [row.body_text for row in with_heads(DeadLetter.objects.order_by("orig_message_id"))] == BODIES
    assert len(queries) == 1
    assert "encoded" not in queries[0]["sql"] and '"properties"' not in queries[0]["sql"]


def test_a_letter_goes_with_its_content(stored: list[DeadLetter]) -> None:
    DeadLetter.objects.filter(orig_message_id=2).delete()
    assert sorted(LetterContent.objects.values_list("body_text", flat=True)) == [*BODIES[:2], *BODIES[3:]]
