"""Minutes that KMAs report, among the records of their spools: each is a row, once."""

import math
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from contract.histogram import unpacked
from contract.records import MinuteFigures
from contract.wire import ContractError
from failures.intake.kinds.record_kind import BatchContext, Item, RecordKind, StoreResult
from failures.intake.rows import insert_each
from failures.intake.sanitize import whole
from metrics.models import Minute, Scope
from metrics.rules import COUNTS, as_text, believed, is_long, minute_of

# Of one record: a thousand times what a server can do in a year, and sums of any number fit a column.
MOST_COUNT, MOST_BYTES, MOST_SECONDS, MOST_AT_ONCE = 10**11, 10**16, 1e12, 10**6
LONGEST = timedelta(days=366)
_LONGEST_HISTOGRAM = 4000

# (setting or None where it is unknown, server), by their primary keys.
Names = tuple[int | None, int]


class ReportedMinutes(RecordKind[MinuteFigures]):
    contents = (MinuteFigures,)
    rows = Minute.objects.all()

    def check(self, content: MinuteFigures) -> None:
        if not timedelta(0) <= content.until - content.occurred_at <= LONGEST:
            raise ContractError("content.until", f"must be 0 to {LONGEST.days} days after occurred_at")
        for name in COUNTS:
            whole(
                getattr(content, name), f"content.{name}", most=MOST_BYTES if name == "bytes" else MOST_COUNT
            )
        whole(content.concurrency, "content.concurrency", most=MOST_AT_ONCE)
        whole(content.children_bytes, "content.children_bytes", most=MOST_BYTES)
        for name in ("busy_seconds", "spool_seconds"):
            value = getattr(content, name)
            if not (math.isfinite(value) and 0 <= value <= MOST_SECONDS):
                raise ContractError(f"content.{name}", f"must be between 0 and {MOST_SECONDS:g}")
        for name in ("processing", "critical"):
            _histogram(getattr(content, name), f"content.{name}")

    def columns(self, content: MinuteFigures) -> dict[str, Any]:
        lasted = (content.until - content.occurred_at).total_seconds()
        return {
            **{name: getattr(content, name) for name in COUNTS},
            "busy_seconds": content.busy_seconds,
            "spool_seconds": content.spool_seconds,
            "capacity_seconds": content.concurrency * lasted,
            "children_bytes": content.children_bytes,
            "processing": _histogram(content.processing, "content.processing"),
            "critical": _histogram(content.critical, "content.critical"),
            "occurred_at": content.occurred_at,
            "until": content.until,
        }

    def store(self, items: Sequence[Item[MinuteFigures]], batch: BatchContext) -> StoreResult:
        named = {item.record.id: _names(item.content, batch) for item in items}
        scopes = scopes_of(set(named.values()))
        rows = []
        for item in items:
            row, content = self.row(item, batch), item.content
            row.scope_id = scopes[named[item.record.id]]
            row.began_at, row.ended_at = believed(
                content.occurred_at, content.until, skew=batch.skew, received_at=batch.now
            )
            row.span, row.long = minute_of(row.began_at), is_long(row.began_at, row.ended_at)
            rows.append(row)
        return StoreResult(insert_each(rows))


def _names(content: MinuteFigures, batch: BatchContext) -> Names:
    setting = batch.settings.get(content.run.setting)
    return setting.pk if setting else None, batch.server.pk


def _histogram(text: str, path: str) -> str:
    """Returns it as we write it. Raises ContractError."""
    try:
        found = unpacked(text) if len(text) <= _LONGEST_HISTOGRAM else None
    except ValueError:
        found = None
    if found is None or any(number > MOST_COUNT for number in found.values()):
        raise ContractError(path, "is no histogram")
    return as_text(found)


def key_for(setting: int | None, server: int | None) -> str:
    """Returns the key of a scope: of the installation where both are None."""
    return f"{'' if setting is None else f's{setting}'}{'' if server is None else f'h{server}'}" or "*"


def scopes_of(names: Collection[tuple[int | None, int | None]]) -> dict[tuple[int | None, int | None], int]:
    """Returns their primary keys; makes those that are missing. In the order of their keys, so that no two
    writers wait for each other in a circle."""
    keys = {key_for(*each): each for each in sorted(names, key=lambda each: key_for(*each))}
    found = dict(Scope.objects.filter(key__among=keys).values_list("key", "pk"))
    if missing := [key for key in keys if key not in found]:
        made = [Scope(key=key, setting_id=keys[key][0], server_id=keys[key][1]) for key in missing]
        Scope.objects.bulk_create(made, ignore_conflicts=True)
        found = dict(Scope.objects.filter(key__among=keys).values_list("key", "pk"))
    return {each: found[key] for key, each in keys.items()}
