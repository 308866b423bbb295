"""Describes how far a spool is stored, and what of it is missing.

Records that were stored may not be here any more: the database was put back from a copy, or another server of
it took over that had not got the last commits. The mark of the spool went back with them, so the KMA's own is
higher; what it still has it sends again (`kma.spool.retained`).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db.models import F, Q, QuerySet

from agents.models import Server
from failures.intake import gaps
from failures.intake.sanitize import BIGGEST, fit
from failures.models import SpoolMark

log = structlog.get_logger(__name__)

MOST_NAMES = 20  # of fields that were not understood, kept per spool
TOLD_FOR = timedelta(days=1)  # by the doctor: what does not come within a day does not come


def stored_up_to(server: Server, spool: UUID, sent: int, now: datetime) -> int | None:
    """Returns how much of the spool is stored; None where that is all that its KMA was told."""
    if not 0 < sent <= BIGGEST:
        return None
    mark = SpoolMark.objects.filter(pk=spool).first()
    if mark is None:
        return 0  # its row is for the first batch to make: who only speaks leaves none
    if mark.server_id != server.pk or mark.stored_up_to >= sent:
        return None
    note_restored(mark, sent, now)
    return mark.stored_up_to


def note_restored(mark: SpoolMark, sent: int, now: datetime) -> None:
    """Once per loss, however often its KMA is asked, unless the records have come meanwhile."""
    first = mark.stored_up_to + 1
    same = Q(lost_from=first, lost_to=sent, lost_at__isnull=False)
    rows = SpoolMark.objects.filter(pk=mark.pk, stored_up_to=mark.stored_up_to).exclude(same)
    if rows.update(lost_at=now, lost_from=first, lost_to=sent):
        log.error(
            "stored records are missing: requested again",
            server=mark.server.name,
            spool=str(mark.spool),
            first=first,
            last=sent,
        )


def still_missing(now: datetime) -> QuerySet[SpoolMark]:
    """Spools of which something that was stored is not here again."""
    rows = SpoolMark.objects.filter(lost_to__gt=F("stored_up_to"), lost_at__gt=now - TOLD_FOR)
    return rows.select_related("server").order_by("server__name", "spool")


def passed_over(now: datetime) -> QuerySet[SpoolMark]:
    """Spools of which something will never come, as was seen lately."""
    return (
        SpoolMark.objects.filter(passed_at__gt=now - TOLD_FOR)
        .select_related("server")
        .order_by("server__name", "spool")
    )


def move(
    mark: SpoolMark, numbers: Sequence[int], unknown: Sequence[str], set_aside: int, now: datetime
) -> None:
    """Notes how far the spool is stored, what of it never came and what was ignored, once per batch.
    `numbers` are above the mark and ascending."""
    changed = []
    if passed := list(gaps.gaps(mark.stored_up_to, numbers)):
        log.warning(
            "records were never received",
            server=mark.server.name,
            spool=str(mark.spool),
            numbers=passed[: gaps.MOST_GAPS],
        )
        mark.never_came, mark.gaps = mark.never_came + gaps.size(passed), gaps.newest_gaps(mark.gaps, passed)
        mark.passed_at = now
        changed += ["never_came", "gaps", "passed_at"]
    if numbers:
        mark.stored_up_to, mark.updated_at = numbers[-1], now
        changed += ["stored_up_to", "updated_at"]
    if unknown:
        names = sorted({fit(name, 100) for name in unknown})[:MOST_NAMES]
        log.warning("unknown fields ignored", server=mark.server.name, fields=len(unknown), names=names)
        mark.unknown_fields, mark.unknown_names = mark.unknown_fields + len(unknown), names
        changed += ["unknown_fields", "unknown_names"]
    if set_aside:
        mark.set_aside, mark.set_aside_at = mark.set_aside + set_aside, now
        changed += ["set_aside", "set_aside_at"]
    if changed:
        mark.save(update_fields=changed)
