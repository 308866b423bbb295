"""Taking the records of a KMA's spool: each is stored exactly once, whatever is sent again, and by whom at
once."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db import transaction

from agents.heartbeat.run_reports import note_late, record_outcomes
from agents.models import Activation, LaunchSetting, Run, Server
from contract.messages import MAX_RECORDS, Record, RecordBatch, RecordReceipt, Refusal, check_version
from contract.wire import ContractError
from failures.hooks import record_kinds
from failures.intake import rows, spools
from failures.intake.kinds.messages import Acknowledgements, Protocols, RecoveredMessages
from failures.intake.kinds.record_kind import BatchContext, Item, KindTable, RunKey, RunTotals, run_key
from failures.intake.kinds.runs import Closings, Interruptions
from failures.intake.rate_limit import Charge
from failures.intake.rows import Refused, keep_conflicts, to_set_aside
from failures.intake.sanitize import BIGGEST, whole
from failures.models import SpoolMark

# In the order of storing: an interruption finds the protocols that are its evidence.
KINDS = (Protocols(), RecoveredMessages(), Interruptions(), Acknowledgements(), Closings())


class ForeignReport(Exception):
    """The batch or a record of it speaks of another server than the token's: refuse it whole."""


class TooManyRecords(Exception):
    """More than MAX_RECORDS: refuse it whole; the KMA sends less at once."""


@dataclass
class _Sorted:
    """Holds what became of records that the mark does not know; `again`: known by their ids; `set_aside`:
    with the code."""

    new: Sequence[Item[Any]] = ()
    refused: Refused = field(default_factory=list)
    again: list[Record] = field(default_factory=list)
    superseded: Sequence[Record] = ()
    set_aside: Refused = field(default_factory=list)


@cache
def all_kinds() -> KindTable:
    return KindTable((*KINDS, *record_kinds()))


def accept_batch(
    server: Server,
    batch: RecordBatch,
    now: datetime,
    *,
    charge: Charge | None = None,
    unknown: Sequence[str] = (),
) -> RecordReceipt:
    """Stores what is new of a batch in one transaction. `unknown`: names of fields around the records that
    were not understood. Raises ForeignReport, TooManyRecords, UnsupportedVersion, TooFast.

    The row of the spool is locked first: of two resends at the same time the second finds everything known.
    Where less of the spool is stored than its KMA was told, nothing is stored: it goes back to what is
    missing.
    """
    _check(server, batch)
    skew = None if batch.sent_at is None else round((batch.sent_at - now).total_seconds(), 3)
    context, kinds = BatchContext(server, batch.spool, now, skew), all_kinds()
    with transaction.atomic(durable=True):
        mark = _locked_mark(server, batch, now)
        if batch.after is not None and mark.stored_up_to < batch.after:
            spools.note_restored(mark, batch.after, now)
            return RecordReceipt(stored_up_to=mark.stored_up_to)
        if charge is not None:
            charge.take(len(batch.records), now)
        fresh = _fresh(batch, mark)
        found = _store(kinds, context, mark, fresh) if fresh else _Sorted()
        again = [*_stale(batch, fresh), *found.again]
        conflicts = keep_conflicts(kinds, context, again)
        ununderstood = [*unknown, *(name for record in fresh for name in kinds.unknown_fields(record))]
        spools.move(mark, [record.number for record in fresh], ununderstood, len(found.set_aside), now)
    return RecordReceipt(
        stored_up_to=mark.stored_up_to,
        new=len(found.new),
        known=len(again),
        refused=tuple(
            Refusal(record.number, reason) for record, reason in [*found.refused, *found.set_aside]
        ),
        known_numbers=_numbers(again),
        conflicts=_numbers(conflicts),
        superseded=_numbers(found.superseded),
    )


def _numbers(of: Iterable[Record]) -> tuple[int, ...]:
    return tuple(sorted(record.number for record in of))


def _check(server: Server, batch: RecordBatch) -> None:
    check_version(batch.version)
    if len(batch.records) > MAX_RECORDS:
        raise TooManyRecords(f"The batch has {len(batch.records)} records; the maximum is {MAX_RECORDS}.")
    named = {batch.server, *(name for record in batch.records if (name := _server_named(record)) is not None)}
    if foreign := sorted(named - {server.name}):
        raise ForeignReport(
            f"The token belongs to server {server.name}, the report to {', '.join(foreign)[:200]}."
        )
    if batch.after is not None and not 0 <= batch.after <= BIGGEST:
        raise ContractError("after", f"must be between 0 and {BIGGEST}")
    if not 0 < batch.first <= BIGGEST:
        raise ContractError("first", f"must be between 1 and {BIGGEST}")
    for index, record in enumerate(batch.records):
        if not 0 < record.number <= BIGGEST:
            raise ContractError(f"records[{index}].number", f"must be between 1 and {BIGGEST}")


def _server_named(record: Record) -> str | None:
    """The server that a record speaks of, looked at before the rest of it is checked."""
    run = record.content.get("run")
    name = run.get("server") if isinstance(run, dict) else None
    return name if isinstance(name, str) else None


def _locked_mark(server: Server, batch: RecordBatch, now: datetime) -> SpoolMark:
    marks = SpoolMark.objects.select_for_update()
    fresh = {"server": server, "updated_at": now, "stored_up_to": batch.first - 1}
    mark, _ = marks.get_or_create(spool=batch.spool, defaults=fresh)
    if mark.server_id != server.pk:
        raise ForeignReport(f"The spool {batch.spool} belongs to another server, the token to {server.name}.")
    return mark


def _fresh(batch: RecordBatch, mark: SpoolMark) -> list[Record]:
    """Records above the mark, in order. Of two with one number the first counts."""
    fresh: dict[int, Record] = {}
    for record in sorted(batch.records, key=lambda record: record.number):
        if record.number > mark.stored_up_to:
            fresh.setdefault(record.number, record)
    return list(fresh.values())


def _stale(batch: RecordBatch, fresh: Sequence[Record]) -> list[Record]:
    """Records below the mark, and those whose number another one of the batch has."""
    taken = {id(record) for record in fresh}
    return [record for record in batch.records if id(record) not in taken]


def _store(kinds: KindTable, context: BatchContext, mark: SpoolMark, fresh: Sequence[Record]) -> _Sorted:
    items, found = _read(kinds, fresh)
    batch = _with_names(context, items, found.refused)
    known = _known(kinds, items, batch)
    found.again += [item.record for item in items if item.record.id in known]
    items = [item for item in items if item.record.id not in known]
    doubtful = [item for item in items if mark.lost_at is None and not batch.is_verified(item.content)]
    foreign = to_set_aside(doubtful, batch) if doubtful else {}
    found.set_aside = [
        (item.record, foreign[item.record.id].value) for item in doubtful if item.record.id in foreign
    ]
    items = [item for item in items if item.record.id not in foreign]
    results = [kind.store(own, batch) for kind, own in kinds.by_kind(items)]
    found.superseded = [record for result in results for record in result.superseded]
    unstored = {pk: reason for result in results for pk, reason in result.unstored.items()}
    # A copy of the spool may have brought one at this instant: then it is known, not refused.
    meanwhile = kinds.stored(unstored)
    found.again += [item.record for item in items if item.record.id in meanwhile]
    found.refused += [
        (item.record, unstored[item.record.id])
        for item in items
        if item.record.id in unstored.keys() - meanwhile
    ]
    rows.keep_refused(batch, found.refused)
    rows.keep_set_aside(batch, found.set_aside)
    found.new = [item for item in items if item.record.id not in unstored]
    _add_to_runs(batch, found.new, found.refused)
    for follow in batch.after_runs:
        follow()
    return found


def _read(kinds: KindTable, fresh: Iterable[Record]) -> tuple[list[Item[Any]], _Sorted]:
    """Reads records; of two with one UUID the first counts."""
    items: dict[UUID, Item[Any]] = {}
    found = _Sorted()
    for record in fresh:
        if record.id in items:
            found.again.append(record)
            continue
        try:
            items[record.id] = kinds.read(record)
        except ContractError as error:
            found.refused.append((record, str(error)))
    return list(items.values()), found


def _with_names(context: BatchContext, items: Sequence[Item[Any]], refused: Refused) -> BatchContext:
    keys = {run_key(item.content) for item in items}
    keys |= {key for record, _ in refused if (key := _raw_run_key(record)) is not None}
    activations = {activation for activation, _ in keys}
    runs = Run.objects.filter(server=context.server, activation__in=activations)
    settings = {item.content.run.setting for item in items}
    return replace(
        context,
        settings=LaunchSetting.objects.in_bulk(settings, field_name="key"),
        activations=dict(Activation.objects.filter(pk__in=activations).values_list("pk", "setting__key")),
        runs={(run.activation_id, run.epoch): run for run in runs},
    )


def _raw_run_key(record: Record) -> RunKey | None:
    """The run that a refused record speaks of, if that much of it can be read."""
    run = record.content.get("run")
    if not isinstance(run, dict):
        return None
    try:
        return UUID(str(run.get("activation"))), whole(int(run.get("epoch", "")), "epoch")
    except (ValueError, TypeError):
        return None


def _known(kinds: KindTable, items: Sequence[Item[Any]], batch: BatchContext) -> set[UUID]:
    """Records that are here under another number."""
    known = kinds.stored([item.record.id for item in items])
    others = [item for item in items if item.record.id not in known]
    return known.union(*(kind.repeated(own, batch) for kind, own in kinds.by_kind(others)))


def _add_to_runs(batch: BatchContext, stored: Sequence[Item[Any]], refused: Refused) -> None:
    """A refused record counts among a run's stored ones: its closing record counts it too, and it will never
    come."""
    totals: dict[RunKey, RunTotals] = defaultdict(RunTotals)
    for item in stored:
        item.kind.add(item.content, totals[run_key(item.content)])
    for record, _ in refused:
        if (key := _raw_run_key(record)) is not None:
            totals[key].stored += 1
    for activation, epoch in sorted(totals):
        # Of activations that are known, but not that run of them: late all the same, where they have ended.
        if activation in batch.activations and (activation, epoch) not in batch.runs:
            astray = totals[activation, epoch]
            note_late(activation, astray.stored, astray.failed, astray.temporary, astray.closing, batch.now)
    # In the order of the rows' keys, so that two intakes never wait for each other in a circle.
    for key, run in sorted(batch.runs.items(), key=lambda pair: pair[1].pk):
        if key in totals:
            record_outcomes(run, **vars(totals[key]), now=batch.now)
