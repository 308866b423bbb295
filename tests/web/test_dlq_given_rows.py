"""Rows of ours within a statement."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.db import connection

from console.database.bulk import INSTANT, WHOLE, values_table
from dlq.dead_letters.queries.ranges import QUEUE, type_of
from dlq.models import DeadLetter

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def rows(columns: dict[str, str], given: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    said, parameters = values_table("given", columns, given)
    assert len(parameters) <= len(columns), "as many as columns, not as rows"
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {said} SELECT * FROM given ORDER BY 1", parameters)
        return list(cursor.fetchall())


def test_rows_come_back_as_they_were_given() -> None:
    given = [(1, "DLQ.a'b\"c%s", None), (2, "DLQ.ключ", "x"), (2**62, "[1]", "")]
    assert rows({"n": WHOLE, "q": QUEUE, "v": type_of("fingerprint")}, given) == given
    assert rows({"n": WHOLE, "q": QUEUE}, []) == []


def test_instants_and_activations_are_compared_as_columns_are() -> None:
    at, activation = datetime(2026, 3, 1, 12, 30, tzinfo=UTC), UUID(int=7)
    DeadLetter(node_id="n", queue="q", orig_message_id=1, seen_at=at, activation_uuid=activation).save()
    field = DeadLetter._meta.get_field("activation_uuid")
    given = [
        (connection.ops.adapt_datetimefield_value(at), field.get_db_prep_value(activation, connection)),
        (connection.ops.adapt_datetimefield_value(at), field.get_db_prep_value(UUID(int=8), connection)),
    ]
    said, parameters = values_table("given", {"at": INSTANT, "v": type_of("activation_uuid")}, given)
    same = f"{DeadLetter._meta.db_table} ON seen_at <= given.at AND activation_uuid = given.v"
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {said} SELECT count(*) FROM given JOIN {same}", parameters)
        assert cursor.fetchone() == (1,)
