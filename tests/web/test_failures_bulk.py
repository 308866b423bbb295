"""Rows that go in by COPY or one prepared INSERT are those that Django would have stored."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import DataError, IntegrityError, transaction

from console.database import bulk
from failures.error_groups.increments import deltas
from failures.models import FailureDelta, FailureProtocol
from tests.web.factories import HOSTILE, World

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
ODD = {"text": "a\tb\\N\\.\n\r'\"; \u2028 é 😀", "none": None, "list": [1, 2.5, True, {"x": []}], "": ""}


def stored(pk: UUID) -> dict[str, Any]:
    return dict(FailureProtocol.objects.values().get(pk=pk))


def twin(world: World, **fields: Any) -> FailureProtocol:
    row = FailureProtocol.objects.get(pk=world.protocols[0].pk)
    row.pk, row.spool = uuid4(), uuid4()
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def test_every_value_comes_back_as_the_orm_stores_it(world: World) -> None:
    hostile = HOSTILE.replace("\x00", "\u2400")
    fields = {
        "exception_text": f"\\N\t{hostile}\\.",
        "traceback": "\\N",
        "properties": ODD,
        "letter_id": None,
        "number": 2**62,
    }
    one, other = twin(world, **fields), twin(world, **fields)
    bulk.insert_rows([one, twin(world)])
    other.save(force_insert=True)

    by_bulk, by_orm = stored(one.pk), stored(other.pk)
    for name in ("id", "spool"):
        by_bulk.pop(name), by_orm.pop(name)
    assert (
        by_bulk == by_orm and by_bulk["properties"] == ODD and by_bulk["exception_text"].startswith("\\N\t")
    )


def test_a_key_that_the_database_counts_up_is_left_to_it(world: World) -> None:
    before = FailureDelta.objects.count()
    bulk.insert_rows(deltas(world.protocols))

    assert FailureDelta.objects.count() > before
    assert len(set(FailureDelta.objects.values_list("pk", flat=True))) == FailureDelta.objects.count()


def test_nothing_is_nothing() -> None:
    bulk.insert_rows([])


def test_what_the_database_refuses_is_an_error_of_django_and_stores_none(world: World) -> None:
    before = FailureProtocol.objects.count()
    again = twin(world)
    again.pk = world.protocols[0].pk
    for rows in ([twin(world), again], [twin(world), twin(world, number=2**70)]):
        with pytest.raises((DataError, IntegrityError, OverflowError)), transaction.atomic():
            bulk.insert_rows(rows)

    assert FailureProtocol.objects.count() == before
