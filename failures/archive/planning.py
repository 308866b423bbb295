"""Plans what a run of the pipeline archives, as rows, before anything is read: whoever is killed goes on with
the same blocks."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Min, Q

from agents.models import LaunchSetting
from failures.archive import compaction, is_on, jdbc, settling
from failures.archive.anew import asked
from failures.archive.cutting import Cut, cut, day_of
from failures.archive.kinds import ArchivedKind, iso, kinds
from failures.models.archive import IN_LINE, ArchiveBlock, BlockState

# What is committed so long after it was received is planned late (`settling`).
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
    for kind in kinds().values():
        _plan_kind(kind, upper, now)
        settling.settle(kind, now)
        compaction.plan_kind(kind.name, now)
    blocks = ArchiveBlock.objects.order_by("kind", "number")
    requests = asked()
    return {
        "archive": settings.MA_ARCHIVE_URL,
        "source": source(),
        "blocks": [told(each) for each in blocks.filter(state=BlockState.PLANNED, erases=False)],
        "verify": [told(each) for each in blocks.filter(Q(state=BlockState.WRITTEN) | Q(check_asked=True))],
        "new_blocks": new_blocks(anew=bool(requests)),
        "anew": bool(requests),
        "anew_requests": requests,
    }


def source() -> Plan:
    """What the pipeline has to know of this database; the secrets are in the environment that `environment`
    gives."""
    masks = LaunchSetting.objects.order_by().values_list("key", "masked_properties")
    return {
        "kind": connection.vendor,
        "url_env": URL,
        "user_env": USER,
        "password_env": PASSWORD,
        "statements": {kind.name: kind.statement() for kind in kinds().values()},
        "masks": {
            key: [str(name) for name in names] if isinstance(names, list) else [] for key, names in masks
        },
    }


def environment() -> Mapping[str, str]:
    known = connection.settings_dict
    if connection.vendor == "sqlite":
        # Read only: a database that is away is told of instead of made anew.
        return {URL: f"jdbc:sqlite:{known['NAME']}?open_mode=1&busy_timeout=20000", USER: "", PASSWORD: ""}
    return {
        URL: jdbc.postgresql_url(known),
        USER: str(known["USER"]),
        PASSWORD: str(known["PASSWORD"]),
    }


def new_blocks(*, anew: bool = False) -> dict[str, list[int]]:
    """{kind: numbers} that no job has seen, also those that are only planned yet. `anew`: all there are."""
    found: dict[str, list[int]] = {kind: [] for kind in kinds()}
    rows = ArchiveBlock.objects.exclude(state=BlockState.REPLACED)
    rows = rows.exclude(rows=0) if anew else rows.filter(computed=False)
    rows = rows.exclude(state=BlockState.PLANNED, erases=True)
    for kind, number in rows.order_by("kind", "number").values_list("kind", "number"):
        found.setdefault(kind, []).append(number)
    return found


def foreseen(now: datetime) -> dict[str, int]:
    """Rows by kind that a run would archive; nothing is planned by asking."""
    found = {}
    for name, kind in kinds().items():
        edge = ArchiveBlock.objects.filter(IN_LINE, kind=name).aggregate(last=Max("last"))["last"]
        first = edge or kind.earliest()
        upper = _upper(now)
        found[name] = kind.count(first, upper) if first is not None and first < upper else 0
    return found


def _upper(now: datetime) -> datetime:
    """Up to which everything that was received is committed, as far as the database tells."""
    upper = now - LAG
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            oldest = cursor.fetchone()[0]
        if oldest is not None:
            upper = min(upper, oldest - MARGIN)
    return upper


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


def told(block: ArchiveBlock) -> Plan:
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
