"""What a row of each kind costs in the database, and that the room of a deleted body is there for others."""

from time import sleep

import pytest
from django.db import connection
from django.utils import timezone

from bench.sizes_measuring import measure
from bench.sizes_rows import LEFT_AGO, delete_bodies, make_places, replay, store_letters
from bench.sizes_tables import bytes_by_table, pack
from dlq.models import LetterEdit, ReplayItem
from dlq.models.content import EditState

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

PATIENCE = 30  # looks, a second apart
KEPT_OF_EDITS = ("pk", "item", "state", "planned_at", "sent_at", "done_at", "problem")


def test_every_kind_has_a_size_and_a_letter_without_its_body_is_smaller() -> None:
    sizes = {size.kind: size for size in measure(200)}

    assert all(size.as_it_lies > 0 and size.packed > 0 for size in sizes.values()), sizes
    for body in (1024, 10 * 1024):
        name = f"dead letter, body of {body // 1024} KB"
        whole, without = sizes[name], sizes[f"{name} deleted"]
        assert whole.packed - without.packed > body / 3, (whole, without)


def test_small_bodies_that_retention_deletes_leave_their_room() -> None:
    places = make_places()
    letters = store_letters(places, 200, 1024)
    whole = bytes_by_table()["dlq_lettercontent"]
    replay(places, letters)
    delete_bodies()
    _pack_below("dlq_lettercontent", whole / 2)


def test_small_copies_of_edits_that_retention_deletes_leave_their_room() -> None:
    places = make_places()
    letters = store_letters(places, 200, 1024)
    replay(places, letters)
    left = timezone.now() - LEFT_AGO
    edits = [
        LetterEdit(
            item=item, encoded=b"e" * 1024, diff=[{"what": "body", "before": "b" * 200, "after": "a" * 200}]
        )
        for item in ReplayItem.objects.all()
    ]
    LetterEdit.objects.bulk_create(edits)
    LetterEdit.objects.update(state=EditState.DONE, planned_at=left, sent_at=left, done_at=left)
    whole, before = (
        bytes_by_table()["dlq_letteredit"],
        LetterEdit.objects.order_by("pk").values_list(*KEPT_OF_EDITS),
    )
    kept = list(before)
    delete_bodies()
    _pack_below("dlq_letteredit", whole / 2)

    assert not LetterEdit.objects.filter(body_deleted_at=None).exists()
    assert list(before.all()) == kept, "all but the copy stays"


def _pack_below(table: str, most: float) -> None:
    """Of PostgreSQL the room stays with its table, where other rows take it. What a session may still see
    stays there, too, so the end of such a session is waited for."""
    for _ in range(PATIENCE if connection.vendor == "postgresql" else 0):
        pack()
        if bytes_by_table()[table] < most:
            break
        sleep(1)
    assert bytes_by_table()[table] < most, _who_may_see_it()


def _who_may_see_it() -> str:
    if connection.vendor != "postgresql":
        return ""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, datname, state, backend_type, backend_xmin, backend_xid, now() - xact_start, query "
            "FROM pg_stat_activity UNION ALL "
            "SELECT 0, database, gid, 'prepared', transaction, NULL, NULL, '' FROM pg_prepared_xacts"
        )
        return "\n".join(map(str, cursor.fetchall()))
