"""Describes what every kind of record answers, and what it is given for it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from agents.models import LaunchSetting, Run, Server
from contract import wire
from contract.messages import Record
from contract.records import KIND_OF, Closing, Content, MessageIdentity
from contract.wire import ContractError
from failures.intake.sanitize import fit, whole

C = TypeVar("C", bound=Content)
RunKey = tuple[UUID, int]


def run_key(content: Content) -> RunKey:
    return content.run.activation, content.run.epoch


def check_message(message: MessageIdentity) -> None:
    """Raises ContractError."""
    for name in ("delivery_count", "attempt", "body_size"):
        whole(getattr(message, name), f"content.message.{name}")
    if message.dead_letter_id is not None:
        whole(message.dead_letter_id, "content.message.dead_letter_id")


@dataclass(frozen=True, slots=True)
class Item(Generic[C]):
    """A record that is as agreed."""

    record: Record
    kind: "RecordKind[C]"
    content: C


@dataclass(frozen=True, slots=True)
class BatchContext:
    """A batch, and what of the records' names the MA knows, looked up once. `activations`: {id: key of its
    setting}. `skew`: seconds by which the KMA's clock was ahead of ours when it sent the batch."""

    server: Server
    spool: UUID
    now: datetime
    skew: float | None = None
    settings: Mapping[str, LaunchSetting] = field(default_factory=dict)
    activations: Mapping[UUID, str] = field(default_factory=dict)
    runs: Mapping[RunKey, Run] = field(default_factory=dict)
    # Called in this order once the runs are counted, and so locked: locks of higher apps come after theirs.
    after_runs: list[Callable[[], object]] = field(default_factory=list)

    def is_of_setting(self, content: Content) -> bool:
        """Says no where the run is of another setting than the record says."""
        return self.activations.get(content.run.activation) == content.run.setting

    def is_verified(self, content: Content) -> bool:
        """See `failures.intake.rows`."""
        return self.is_of_setting(content) and run_key(content) in self.runs


@dataclass
class RunTotals:
    """Holds what a batch adds to a run. `stored`: records of every kind but the closing one."""

    failed: int = 0
    temporary: int = 0
    recovered: int = 0
    stored: int = 0
    closing: Closing | None = None


@dataclass(frozen=True, slots=True)
class StoreResult:
    """`unstored`: the records that the database did not take, with the reason; `superseded`: those that are
    stored and have no effect."""

    unstored: Mapping[UUID, str] = field(default_factory=dict)
    superseded: Sequence[Record] = ()


class RecordKind(Generic[C]):
    """One instance serves all batches. What it does not override holds for most kinds."""

    contents: tuple[type[C], ...]
    # Rows whose key is the id of the record; None: it has no row of its own.
    rows: QuerySet[Any] | None = None
    # Set aside where it comes from a server that never ran its setting.
    needs_own_run = False

    def check(self, content: C) -> None:
        """Raises ContractError for what cannot be stored."""

    def columns(self, content: C) -> dict[str, Any]:
        """Returns what the row says of what its KMA said: the same record has the same, whenever it comes."""
        return {}

    def row(self, item: Item[C], batch: BatchContext) -> Any:
        """Returns a new one, not saved."""
        assert self.rows is not None
        return self.rows.model(
            id=item.record.id,
            received_at=batch.now,
            verified=batch.is_verified(item.content),
            **self.columns(item.content),
        )

    def repeated(self, items: Sequence[Item[C]], batch: BatchContext) -> set[UUID]:
        """Returns the ids of records that are known, though no row has their id."""
        return set()

    def stored_otherwise(
        self, items: Sequence[Item[C]], batch: BatchContext
    ) -> Iterator[tuple[Record, UUID]]:
        """Yields records without a row of their own in whose place something else is stored, and its id."""
        yield from ()

    def store(self, items: Sequence[Item[C]], batch: BatchContext) -> StoreResult:
        """Called inside the intake's transaction: what it raises rolls the whole batch back."""
        return StoreResult()

    def add(self, content: C, totals: RunTotals) -> None:
        totals.stored += 1


class KindTable:
    """All kinds, in their order of storing."""

    def __init__(self, kinds: Iterable[RecordKind[Any]]) -> None:
        self._kinds = tuple(kinds)
        self._by_name = {KIND_OF[form]: (kind, form) for kind in self._kinds for form in kind.contents}

    def read(self, record: Record) -> Item[Any]:
        """Checks the content against its kind and against what columns take. Raises ContractError."""
        if record.kind not in self._by_name:
            raise ContractError("kind", f"{fit(record.kind, 60)!r} is unknown")
        kind, form = self._by_name[record.kind]
        content = wire.load(form, record.content, "content")
        whole(content.run.epoch, "content.run.epoch")
        kind.check(content)
        return Item(record, kind, content)

    def unknown_fields(self, record: Record) -> Iterator[str]:
        """Names of fields that are ignored, with their kind."""
        if record.kind in self._by_name:
            _, form = self._by_name[record.kind]
            yield from wire.unknown(form, record.content, record.kind)

    def by_kind(self, items: Iterable[Item[Any]]) -> Iterator[tuple[RecordKind[Any], list[Item[Any]]]]:
        items = list(items)
        for kind in self._kinds:
            if own := [item for item in items if item.kind is kind]:
                yield kind, own

    def stored(self, ids: Collection[UUID]) -> set[UUID]:
        """Returns the ids that rows of any kind have: a spool was copied, or a UUID was used twice."""
        if not ids:
            return set()
        known, *others = (
            kind.rows.filter(pk__among=list(ids)).order_by().values_list("pk", flat=True)
            for kind in self._kinds
            if kind.rows is not None
        )
        return {*known.union(*others, all=True)}

    def stored_rows(self, ids: Collection[UUID]) -> dict[UUID, tuple[RecordKind[Any], Any]]:
        return {
            pk: (kind, row)
            for kind in self._kinds
            if kind.rows is not None
            for pk, row in kind.rows.in_bulk(ids).items()
        }
