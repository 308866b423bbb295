"""The items of a replay: which letter they hold, how they are found, and what giving back leaves alone."""

from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from dlq.models import DeadLetter, ItemState, ReplayItem, ReplayJob, ReplaySlice, Scope, SliceState
from dlq.replay.counts import planned_of, write_items
from tests.web import letters

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
RELEASED = {state for state in ItemState.values if state not in ("planned", "given_back")}


def job() -> ReplayJob:
    return ReplayJob.objects.create(setting_key=f"orders-{uuid4().hex[:8]}", scope=Scope.SELECTION)


def slice_of(one: ReplayJob, number: int, state: SliceState = SliceState.PLANNED) -> ReplaySlice:
    return one.slices.create(number=number, first_letter_id=0, last_letter_id=0, size=1, state=state)


def written(one: ReplayJob, letter: DeadLetter, piece: ReplaySlice | None = None) -> bool:
    write_items(one, [letter.pk], timezone.now(), piece=piece)
    return one.items.filter(letter=letter).exists()


@pytest.mark.parametrize("state", ItemState.values)
def test_a_letter_is_held_while_its_item_is_planned_or_given_back(state: str) -> None:
    letter, first, second = letters.dead("orders", 10), job(), job()
    assert written(first, letter)
    first.items.update(state=state)
    assert first.items.get().released_as == (state if state in RELEASED else "")
    assert written(second, letter) == (state in RELEASED)


def test_one_job_has_a_letter_once() -> None:
    letter, one = letters.dead("orders", 10), job()
    assert written(one, letter)
    one.items.update(state=ItemState.CANCELLED)
    assert written(one, letter) and one.items.count() == 1


def test_what_is_planned_is_found_by_the_slices_that_are_open() -> None:
    one, other = job(), job()
    places = [
        None,
        slice_of(one, 1),
        slice_of(one, 2, SliceState.MOVED),
        slice_of(one, 3, SliceState.CHECKED),
    ]
    for number, piece in enumerate(places):
        written(one, letters.dead("orders", number), piece)
    written(other, letters.dead("orders", 20))
    one.items.filter(slice=places[3]).update(state=ItemState.GIVEN_BACK)
    assert set(planned_of(one).values_list("slice", flat=True)) == {
        piece.pk if piece else None for piece in places[:3]
    }


def test_giving_back_changes_no_index_of_the_items() -> None:
    """Else PostgreSQL writes each of them anew for every letter that is given back."""
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, ReplayItem._meta.db_table)
    columns = {
        column
        for each in found.values()
        if each["index"] or each["unique"]
        for column in each["columns"] or ()
    }
    assert "released_as" in columns and not columns & {"state", "state_at", "why"}
    meta = ReplayItem._meta
    conditions = [
        str(each.condition) for each in [*meta.constraints, *meta.indexes] if getattr(each, "condition", None)
    ]
    assert len(conditions) == 2 and not any("'state" in condition for condition in conditions)


def test_pages_of_items_have_room_for_those_that_are_given_back() -> None:
    """What the migration adds by hand."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT reloptions FROM pg_class WHERE relname = 'dlq_replayitem'")
            assert cursor.fetchone() == (["fillfactor=55"],)
