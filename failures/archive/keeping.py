"""With the archive on, retention deletes only what is in settled blocks of it."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from uuid import UUID

from django.db.models import Max, Min, QuerySet

from failures.archive import is_on
from failures.archive.kinds import kinds
from failures.models.archive import IN_LINE, ArchiveBlock
from failures.retention.keepers import Picked

LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)


def not_archived(picked: Sequence[Picked], now: datetime) -> Collection[UUID]:
    if not is_on():
        return ()
    line = ArchiveBlock.objects.filter(kind="protocols").aggregate(first=Min("first"), last=Max("last"))
    if line["first"] is None:
        return {each.id for each in picked}
    unsettled = list(_unsettled("protocols").values_list("first", "last"))

    def is_kept(at: datetime) -> bool:
        if not line["first"] <= at < line["last"]:
            return True
        return any(first <= at < last for first, last in unsettled)

    return {each.id for each in picked if is_kept(each.received_at)}


def protocols_archived_before(now: datetime) -> datetime | None:
    """Of protocols that were received before it none is kept."""
    return archived_before("protocols", now) or now


def archived_before(kind: str, now: datetime) -> datetime | None:
    """What was received before that is in settled blocks, all of it. None: the archive is off, nothing is
    kept for it."""
    if not is_on() or kind not in kinds():
        return None
    line = ArchiveBlock.objects.filter(IN_LINE, kind=kind).aggregate(first=Min("first"), last=Max("last"))
    if line["first"] is None:
        return LONG_AGO
    open_from = _unsettled(kind).aggregate(first=Min("first"))["first"]
    before: datetime = line["last"] if open_from is None else min(open_from, line["last"])
    earliest = kinds()[kind].earliest()
    # Before the first block there may be rows of a clock that was set back.
    return LONG_AGO if earliest is not None and earliest < line["first"] else before


def _unsettled(kind: str) -> QuerySet[ArchiveBlock]:
    """With those that were read from the database anew or add to others, until these are verified."""
    open_still = ArchiveBlock.objects.filter(kind=kind, settled_at=None)
    return open_still.exclude(late_of__isnull=False, verified_at__isnull=False)
