"""Letters by their numbers at the broker."""

import pytest

from dlq.dead_letters.queries.ranges import letters_numbered
from dlq.models import LetterState
from tests.web import letters

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def test_letters_are_found_by_their_numbers_in_one_queue_of_one_broker() -> None:
    for number in (1, 2, 3, 9):
        letters.dead("orders", number)
    letters.dead("invoices", 2)
    gone = letters.dead("orders", 5)
    gone.state = LetterState.GONE
    gone.save()
    found = letters_numbered(letters.NODE, "DLQ.orders", [9, 2, 5, 7, -4])
    assert sorted(found.values_list("orig_message_id", flat=True)) == [2, 5, 9]
    assert {letter.queue for letter in found} == {"DLQ.orders"}
    assert not letters_numbered("another", "DLQ.orders", [2]).exists()


def test_no_numbers_are_no_letters() -> None:
    letters.dead("orders", 1)
    assert not letters_numbered(letters.NODE, "DLQ.orders", iter(())).exists()
