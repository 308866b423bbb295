"""The index of properties of messages that failed; protocols of before it get into it while the site runs.

A row (`PropertyBackfill`) says how far it is; none is open where everything is in the index. Meanwhile a
property is looked for from the newest protocol on, as a text is. SQLite: pieces, each one transaction with
its position. PostgreSQL makes the whole index in one statement that locks nobody out; its own view says how
far. Why each its own: docs/explanation/protocols.md.
"""

from datetime import datetime

from django.db import transaction

from console.database.json_values import value_index
from failures.models import FailureProtocol, PropertyBackfill

INDEX = value_index("failures_failureprotocol", "properties", "protocols_by_property")
PIECE = 1000


def is_complete() -> bool:
    """Returns whether the index has every protocol."""
    return not PropertyBackfill.objects.filter(open=True).exists()


def share() -> float | None:
    """Returns how much of it is done, from 0 to 1; None: all."""
    backfill = PropertyBackfill.objects.filter(open=True).first()
    if backfill is None:
        return None
    if not INDEX.in_pieces:
        return INDEX.share()
    # Ids are random, so a position says how many lie before it.
    return 0.0 if backfill.position is None else backfill.position.int / 2**128


def step(now: datetime) -> bool:
    """Does one piece; returns whether there may be more."""
    if is_complete():
        return False
    if INDEX.in_pieces:
        return _fill_piece(now)
    if INDEX.build():
        PropertyBackfill.objects.filter(open=True).update(open=False, ended_at=now)
    return False


@transaction.atomic
def _fill_piece(now: datetime) -> bool:
    """Two at a time take turns."""
    backfill = PropertyBackfill.objects.select_for_update().filter(open=True).first()
    if backfill is None:
        return False
    rows = FailureProtocol.objects.order_by("pk")
    rows = rows.filter(pk__gt=backfill.position) if backfill.position is not None else rows
    keys = list(rows.values_list("pk", flat=True)[:PIECE])
    if keys:
        INDEX.fill(backfill.position, keys[-1])
        backfill.position, backfill.rows = keys[-1], backfill.rows + len(keys)
    if len(keys) < PIECE:
        backfill.open, backfill.ended_at = False, now
    backfill.save()
    return backfill.open
