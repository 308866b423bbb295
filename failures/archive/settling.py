"""Looks at blocks again when nothing can be committed into their range any more. What came late is planned as
a block of its own; where there is nothing more, the block is settled, and retention may delete what is in
it."""

from datetime import datetime, timedelta

from django.db.models import Sum

from failures.archive import anew, is_on, planning
from failures.archive.cutting import Cut, cut
from failures.archive.kinds import ArchivedKind, kinds
from failures.models.archive import IN_LINE, ArchiveBlock, BlockState

# So long after the end of its range; a request, or a transaction of a worker, ends long before.
AFTER = timedelta(hours=1)


def settle_all(now: datetime) -> None:
    """Between runs, so that retention need not wait for the next one."""
    if is_on():
        for kind in kinds().values():
            settle(kind, now)


def settle(kind: ArchivedKind, now: datetime) -> None:
    """Also of those that were damaged: what the database still has whole is read from it anew."""
    due = ArchiveBlock.objects.filter(IN_LINE, kind=kind.name, settled_at=None, last__lte=now - AFTER)
    for block in due.filter(state__in=[BlockState.VERIFIED, BlockState.REPLACED]).order_by("number"):
        if block.state == BlockState.VERIFIED or _is_verified(block):
            _settle_one(kind, block, now)
    for block in ArchiveBlock.objects.filter(kind=kind.name, state=BlockState.DAMAGED).order_by("number"):
        _read_anew(kind, block, now)


def _is_verified(replaced: ArchiveBlock) -> bool:
    """What took its place."""
    others = ArchiveBlock.objects.filter(kind=replaced.kind, number__gt=replaced.number).exclude(replaces=[])
    return any(replaced.number in each.replaces for each in others.filter(state=BlockState.VERIFIED))


def _settle_one(kind: ArchivedKind, block: ArchiveBlock, now: datetime) -> None:
    late = ArchiveBlock.objects.filter(kind=kind.name, late_of=block.number)
    if late.filter(verified_at=None).exists():
        return
    archived = (block.rows or 0) + (late.aggregate(rows=Sum("rows"))["rows"] or 0)
    if kind.count(block.first, block.last) <= archived:
        ArchiveBlock.objects.filter(pk=block.pk, state=block.state).update(settled_at=now)
        return
    if block.rows:
        planning.add(kind.name, Cut(block.first, block.last), now, late_of=block.number)
        return
    for each in cut(kind, block.first, block.last):  # it was empty, and may have several days
        if not each.empty:
            planning.add(kind.name, each, now, late_of=block.number)


def _read_anew(kind: ArchivedKind, block: ArchiveBlock, now: datetime) -> None:
    """Only what is whole in the database: of rows that retention deleted the damaged block may hold the
    rest."""
    blocks = ArchiveBlock.objects.filter(kind=kind.name)
    if any(
        block.number in each.replaces
        for each in blocks.filter(state__in=[BlockState.PLANNED, BlockState.WRITTEN])
    ):
        return
    beside = blocks.filter(first__lt=block.last, last__gt=block.first).exclude(state=BlockState.REPLACED)
    if kind.count(block.first, block.last) >= (beside.aggregate(rows=Sum("rows"))["rows"] or 0):
        planning.add(
            kind.name, Cut(block.first, block.last), now, replaces=[block.number, *block.replaces],
            late_of=block.late_of,
        )  # fmt: skip
        anew.ask(f"{block} was damaged and is read anew")
