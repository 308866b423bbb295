"""Where a message is by its dead letters: a move into the trash gives it a second row, which is not dead for
who looks for the message."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from dlq.models import DeadLetter, LetterReport
from dlq.outcomes.places import places_of
from dlq.outcomes.settlement import deaths
from tests.web import letters
from tests.web.reports import AT

pytestmark = pytest.mark.django_db
CASE = ("orders", "ID:7")
LATER = timedelta(minutes=5)


def row(number: int, **fields: Any) -> DeadLetter:
    """Of one message, seen so many seconds after the others."""
    letter = letters.dead("orders", number, "ID:7")
    DeadLetter.objects.filter(pk=letter.pk).update(**{"state_at": letter.seen_at} | fields)
    return letter


def in_trash(number: int, **fields: Any) -> DeadLetter:
    return row(number, queue="DLQ.bin", orig_queue="DLQ.orders", **fields)


def place() -> str:
    return places_of({CASE})[CASE][0]


def test_what_was_discarded_is_in_the_trash_once_its_row_there_is_known() -> None:
    row(10, state="discarded")
    assert place() == "discarded"
    in_trash(11)
    assert place() == "in_trash"


def test_what_is_known_from_the_trash_alone_is_in_the_trash() -> None:
    in_trash(11)
    assert place() == "in_trash"


def test_an_edited_message_is_replayed_though_its_original_lies_in_the_trash() -> None:
    row(10, state="given_back")
    in_trash(11)
    assert place() == "replayed"

    LetterReport.objects.create(
        id=UUID(int=1), setting_key="orders", message_key="ID:7", result="handled", attempt=1,
        server_name="srv-1", activation_uuid=UUID(int=2), occurred_at=AT + LATER, received_at=AT + LATER,
    )  # fmt: skip
    assert place() == "recovered"


def test_what_was_restored_from_the_trash_is_dead_again() -> None:
    row(10, state="discarded")
    in_trash(11, state="gone")
    row(12)
    assert place() == "dead"


def test_a_message_did_not_die_when_it_was_seen_in_the_trash() -> None:
    """Else attempts of its edited copy from before that would not count."""
    died = row(10, state="given_back").seen_at
    in_trash(11)
    assert deaths("orders", ["ID:7"]) == {"ID:7": died}
