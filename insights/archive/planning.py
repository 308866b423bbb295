"""Plans what a run of the pipeline archives, as rows, before anything is read: whoever is killed goes on with
the same blocks."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Max, Min, Q, QuerySet, Sum

from agents.models import LaunchSetting
from console.database.statements import oldest_transaction
from console.database.storage import jdbc_url
from insights.archive.readiness import is_on
from insights.archive.statements import KINDS, ArchivedKind, Cut, cut, day_of, iso
from insights.models.archive import IN_LINE, ArchiveBlock, BlockState, Recomputation

# -- days that are over and have many blocks become one block ------------------------------------------------


# A day with so many blocks or more, so long after its end.
MANY, COMPACTED_AFTER = 8, timedelta(days=2)
# Rows of such a block; a day with more stays as it is.
MOST_ROWS = 2_000_000


def plan_kind(kind: str, now: datetime) -> None:
    """Only what is settled and computed: a job never finds a block under another number."""
    if ArchiveBlock.objects.filter(kind=kind, compacts=True, state=BlockState.PLANNED).exists():
        return
    blocks = ArchiveBlock.objects.filter(kind=kind, day__lt=day_of(now - COMPACTED_AFTER).date(), rows__gt=0)
    blocks = blocks.exclude(state=BlockState.REPLACED)
    not_yet = Q(computed=False) | ~Q(state=BlockState.VERIFIED) | Q(settled_at=None, late_of=None)
    days = blocks.values("day").annotate(
        blocks=Count("pk"), rows_of_day=Sum("rows"), first_of_day=Min("first"), last_of_day=Max("last"),
        not_yet=Count("pk", filter=not_yet),
    )  # fmt: skip
    for each in days.filter(blocks__gte=MANY, not_yet=0, rows_of_day__lte=MOST_ROWS).order_by("day"):
        numbers = blocks.filter(day=each["day"]).order_by("number").values_list("number", flat=True)
        first, last = each["first_of_day"].astimezone(UTC), each["last_of_day"].astimezone(UTC)
        add(
            kind, Cut(first, last), now, compacts=True, replaces=list(numbers), computed=True, settled_at=now
        )  # fmt: skip


# -- requests to recompute everything ------------------------------------------------------------------------
# Results that runs sum up part by part cannot be corrected for one block. A request is a row until a whole
# run that was planned with it has been loaded.


def request_recomputation(why: str) -> None:
    """Always another row: one that comes while a run computes must outlive this run. `why`: for people."""
    Recomputation.objects.create(why=why)


def asked() -> list[int]:
    return list(Recomputation.objects.order_by("pk").values_list("pk", flat=True))


def done(requests: Collection[int]) -> None:
    """Those that the run was planned with; one that came since stays."""
    Recomputation.objects.filter(pk__in=requests).delete()


# -- looks at blocks again when nothing can be committed into their range any more ---------------------------
# What came late is planned as a block of its own; where there is nothing more, the block is settled, and
# retention may delete what is in it.


# So long after the end of its range; a request, or a transaction of a worker, ends long before.
SETTLED_AFTER = timedelta(hours=1)


def settle_all(now: datetime) -> None:
    """Between runs, so that retention need not wait for the next one."""
    if is_on():
        for kind in KINDS.values():
            settle(kind, now)


def settle(kind: ArchivedKind, now: datetime) -> None:
    """Settles those too that were damaged: what the database still has whole is read from it again."""
    due = ArchiveBlock.objects.filter(IN_LINE, kind=kind.name, settled_at=None, last__lte=now - SETTLED_AFTER)
    for block in due.filter(state__in=[BlockState.VERIFIED, BlockState.REPLACED]).order_by("number"):
        if block.state == BlockState.VERIFIED or _is_verified(block):
            _settle_one(kind, block, now)
    for block in ArchiveBlock.objects.filter(kind=kind.name, state=BlockState.DAMAGED).order_by("number"):
        _recompute(kind, block, now)


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
        add(kind.name, Cut(block.first, block.last), now, late_of=block.number)
        return
    for each in cut(kind, block.first, block.last):  # it was empty, and may have several days
        if not each.empty:
            add(kind.name, each, now, late_of=block.number)


def _recompute(kind: ArchivedKind, block: ArchiveBlock, now: datetime) -> None:
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
        add(
            kind.name, Cut(block.first, block.last), now, replaces=[block.number, *block.replaces],
            late_of=block.late_of,
        )  # fmt: skip
        request_recomputation(f"{block} was damaged and is read again")


# What is committed so long after it was received is planned late.
LAG = timedelta(minutes=10)
MARGIN = timedelta(minutes=1)

Plan = dict[str, Any]

# Names of variables.
URL, USER, PASSWORD = "MA_PIPELINE_JDBC_URL", "MA_PIPELINE_JDBC_USER", "MA_PIPELINE_JDBC_PASSWORD"


def plan(now: datetime) -> Plan:
    """The archive's part of plan.json. Plans new blocks first; with the archive off: nothing. Only who holds
    the open run plans: of two at once one would fail by the numbers of the blocks."""
    if not is_on():
        return {"archive": "", "blocks": [], "verify": [], "new_blocks": {}}
    upper = _upper(now)
    for kind in KINDS.values():
        _plan_kind(kind, upper, now)
        settle(kind, now)
        plan_kind(kind.name, now)
    blocks = ArchiveBlock.objects.order_by("kind", "number")
    requests = asked()
    return {
        "archive": settings.MA_ARCHIVE_URL,
        "source": source(),
        "blocks": [block_plan(each) for each in blocks.filter(state=BlockState.PLANNED, erases=False)],
        "verify": [
            block_plan(each) for each in blocks.filter(Q(state=BlockState.WRITTEN) | Q(check_asked=True))
        ],
        "new_blocks": new_blocks(anew=bool(requests)),
        "anew": bool(requests),
        "anew_requests": requests,
    }


def source() -> Plan:
    """Returns what the pipeline has to know of this database; the secrets are in the environment that
    `environment` gives."""
    masks = LaunchSetting.objects.order_by().values_list("key", "masked_properties")
    return {
        "url_env": URL,
        "user_env": USER,
        "password_env": PASSWORD,
        "statements": {kind.name: kind.statement() for kind in KINDS.values()},
        "masks": {
            key: [str(name) for name in names] if isinstance(names, list) else [] for key, names in masks
        },
    }


def environment() -> Mapping[str, str]:
    """Raises KeyUnreadable."""
    known = connection.settings_dict
    return {URL: jdbc_url(known), USER: str(known["USER"]), PASSWORD: str(known["PASSWORD"])}


def new_blocks(*, anew: bool = False) -> dict[str, list[int]]:
    """{kind: numbers} that no job has seen, also those that are only planned yet. `anew`: all there are."""
    found: dict[str, list[int]] = {kind: [] for kind in KINDS}
    rows = ArchiveBlock.objects.exclude(state=BlockState.REPLACED)
    rows = rows.exclude(rows=0) if anew else rows.filter(computed=False)
    rows = rows.exclude(state=BlockState.PLANNED, erases=True)
    for kind, number in rows.order_by("kind", "number").values_list("kind", "number"):
        found.setdefault(kind, []).append(number)
    return found


def preview_blocks(now: datetime) -> dict[str, int]:
    """Rows by kind that a run would archive; nothing is planned by asking."""
    found = {}
    for name, kind in KINDS.items():
        edge = ArchiveBlock.objects.filter(IN_LINE, kind=name).aggregate(last=Max("last"))["last"]
        first = edge or kind.earliest()
        upper = _upper(now)
        found[name] = kind.count(first, upper) if first is not None and first < upper else 0
    return found


def _upper(now: datetime) -> datetime:
    """Returns up to which instant everything that was received is committed, as far as the database tells."""
    upper = now - LAG
    began = oldest_transaction()
    return upper if began is None else min(upper, began - MARGIN)


def _plan_kind(kind: ArchivedKind, upper: datetime, now: datetime) -> None:
    line = ArchiveBlock.objects.filter(IN_LINE, kind=kind.name).aggregate(
        first=Min("first"), last=Max("last")
    )
    earliest = kind.earliest()
    if line["first"] is None:
        spans = [(day_of(earliest), upper)] if earliest is not None else []
    else:
        spans = [(line["last"], upper)]
        if earliest is not None and earliest < line["first"]:
            spans.append((day_of(earliest), line["first"]))  # of a clock that was set back
    # Looked for before the transaction begins: SQLite has one writer at a time.
    cuts = [each for first, last in spans for each in cut(kind, first, last)]
    with transaction.atomic():
        for each in cuts:
            add(kind.name, each, now)


def add(kind: str, each: Cut, now: datetime, **values: Any) -> ArchiveBlock:
    """Numbers grow within their kind. What is empty is written already: there is nothing to write."""
    number = (ArchiveBlock.objects.filter(kind=kind).aggregate(last=Max("number"))["last"] or 0) + 1
    if each.empty:
        values |= {"state": BlockState.VERIFIED, "rows": 0, "bytes": 0, "verified_at": now, "computed": True}
    return ArchiveBlock.objects.create(
        kind=kind, number=number, day=each.first.astimezone(UTC).date(), first=each.first, last=each.last,
        splits=[iso(split) for split in each.splits], planned_at=now, **values,
    )  # fmt: skip


def block_plan(block: ArchiveBlock) -> Plan:
    return {
        "kind": block.kind,
        "number": block.number,
        "day": block.day.isoformat(),
        "first": iso(block.first),
        "last": iso(block.last),
        "splits": block.splits,
        "late_of": block.late_of,
        "replaces": block.replaces,
        "compacts": block.compacts,
        "verified": block.verified_at is not None,
    }


# -- what the archive has whole ------------------------------------------------------------------------------


LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)


def archived_before(kind: str, now: datetime) -> datetime | None:
    """Returns what was received before that is in settled blocks, all of it. None: the archive is off,
    nothing is kept for it."""
    if not is_on() or kind not in KINDS:
        return None
    line = ArchiveBlock.objects.filter(IN_LINE, kind=kind).aggregate(first=Min("first"), last=Max("last"))
    if line["first"] is None:
        return LONG_AGO
    open_from = unsettled_blocks(kind).aggregate(first=Min("first"))["first"]
    before: datetime = line["last"] if open_from is None else min(open_from, line["last"])
    earliest = KINDS[kind].earliest()
    # Before the first block there may be rows of a clock that was set back.
    return LONG_AGO if earliest is not None and earliest < line["first"] else before


def unsettled_blocks(kind: str) -> QuerySet[ArchiveBlock]:
    """Returns those too that were read from the database again or add to others, until these are verified."""
    open_still = ArchiveBlock.objects.filter(kind=kind, settled_at=None)
    return open_still.exclude(late_of__isnull=False, verified_at__isnull=False)
