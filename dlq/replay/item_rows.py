"""Writing the items of many letters at once: one statement, where the ORM makes an object and a tuple of
each."""

import json
from collections.abc import Sequence
from datetime import datetime

from django.db import connection

from dlq.models import ItemState, ReplayItem, ReplayJob, ReplaySlice

_FIELDS = [
    field for field in ReplayItem._meta.concrete_fields if not field.primary_key and not field.generated
]
_TABLE = ReplayItem._meta.db_table
_COLUMNS = ", ".join(f'"{field.column}"' for field in _FIELDS)
_FROM = {"sqlite": "json_each(%s) AS given", "postgresql": "unnest(%s::bigint[]) AS given(value)"}


def write_items(
    job: ReplayJob,
    letters: Sequence[int],
    now: datetime,
    *,
    piece: ReplaySlice | None = None,
    state: str = ItemState.PLANNED,
    why: str = "",
) -> None:
    """An item of the job for each of these letters, in their order. One that another item has already gets
    none: the database lets one outstanding replay have a letter. Call it in a transaction."""
    if not letters:
        return
    same = ReplayItem(job=job, slice=piece, state=state, state_at=now, why=why)
    marks, values = [], []
    for field in _FIELDS:
        if field.attname == "letter_id":
            marks.append("given.value")
        else:
            marks.append("%s")
            values.append(field.get_db_prep_save(getattr(same, field.attname), connection))
    given = json.dumps(list(letters)) if connection.vendor == "sqlite" else list(letters)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {_TABLE} ({_COLUMNS}) SELECT {', '.join(marks)} FROM {_FROM[connection.vendor]} "
            "WHERE true ON CONFLICT DO NOTHING",
            [*values, given],
        )
