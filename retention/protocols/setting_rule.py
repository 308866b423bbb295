"""Applies the rule to one setting, or to what is of none. What it learns on the way it keeps nowhere: whoever
goes on after a kill asks the rule again and finds what is left."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.models import Activation, LaunchSetting
from console.database.statements import row_place
from failures.models import FailureProtocol, RecoveredMessage
from failures.protocols.messages import left_of
from insights.archive.planning import archived_before
from retention.batches import Chunks, TimeIsUp
from retention.models import RetentionFigure
from retention.protocols import holds, row_locations
from retention.protocols.holds import Candidate
from retention.protocols.queries import fact_of, past, ranges_of, ranges_of_nobody, up_to
from retention.rules import Place, Range, Rule

# Protocols in the order in which retention looks at them, some at a time, each look by an index.


AT_ONCE = 5000
READ = (
    "pk", "activation_id", "occurred_at", "received_at", "setting_key", "message_key", "message_key_weak",
    "last_attempt", "temporary", "lies",
)  # fmt: skip
Row = tuple[UUID, UUID | None, datetime, datetime, str, str, bool, bool, bool, str | int]


def by_time(rows: QuerySet[FailureProtocol], of: Range) -> Iterator[list[Candidate]]:
    """Those of `rows` that the range covers; the oldest first, each looked at once. A part may be empty.

    A protocol is as old as the later of both clocks says: a server whose clock is years behind loses
    nothing."""
    assert of.before is not None
    for picked in _walk(rows.filter(occurred_at__lt=of.before)):
        yield _covered(of, picked)


def of_activation(activation: UUID) -> Iterator[list[Candidate]]:
    """All of one; the oldest first, each looked at once."""
    return _walk(FailureProtocol.objects.filter(activation_uuid=activation))


def _walk(rows: QuerySet[FailureProtocol]) -> Iterator[list[Candidate]]:
    ordered = rows.annotate(lies=row_place(FailureProtocol)).order_by("occurred_at", "pk")
    after: tuple[datetime, UUID] | None = None
    while True:
        following = ordered.filter(_past(*after), occurred_at__gte=after[0]) if after else ordered
        found = list(following.values_list(*READ)[:AT_ONCE])
        if not found:
            return
        after = (found[-1][2], found[-1][0])
        yield [_picked(row) for row in found]


def _past(at: datetime, pk: UUID) -> Q:
    return Q(occurred_at__gt=at) | Q(pk__gt=pk)


def _picked(row: Row) -> Candidate:
    (
        pk,
        activation,
        occurred_at,
        received_at,
        setting_key,
        message_key,
        weak,
        last_attempt,
        temporary,
        lies,
    ) = row
    at = max(occurred_at, received_at)
    return Candidate(
        pk, activation, at, setting_key, message_key, weak, last_attempt, temporary, received_at, str(lies)
    )


def without(ranges: Sequence[Range], picked: list[Candidate]) -> list[Candidate]:
    """Those that none of these ranges covers."""
    return [each for each, covered in _each_covered(ranges, picked) if not covered]


def _covered(of: Range, picked: Sequence[Candidate]) -> list[Candidate]:
    return [each for each, covered in _each_covered([of], picked) if covered]


def _each_covered(ranges: Sequence[Range], picked: Sequence[Candidate]) -> list[tuple[Candidate, bool]]:
    if not ranges:
        return [(each, False) for each in picked]
    activations = Activation.objects.in_bulk({each.activation_id for each in picked if each.activation_id})
    facts = {pk: fact_of(activation) for pk, activation in activations.items()}

    def covered(each: Candidate) -> bool:
        fact = facts.get(each.activation_id) if each.activation_id else None
        return any(of.covers(fact, each.at) for of in ranges)

    return [(each, covered(each)) for each in picked]


# -- passes --------------------------------------------------------------------------------------------------


PROTOCOLS, RECOVERED = "protocols", "recovered"
ACTIVATIONS_AT_ONCE = 200


class RuleChanged(Exception):
    """Another activation has finished, or one turned from well into error: what goes is to be asked anew."""


def apply_to_setting(setting: LaunchSetting, now: datetime, chunks: Chunks) -> None:
    """Raises TimeIsUp."""
    while True:
        try:
            return _apply_once(setting, now, chunks)
        except RuleChanged:
            continue


def _apply_once(setting: LaunchSetting, now: datetime, chunks: Chunks) -> None:
    ranges = ranges_of(setting, now)
    _forget_kept(chunks, setting.key)
    for place, each in enumerate(ranges):
        _Pass(each, setting.key, chunks, now, lambda: ranges_of(setting, now) == ranges, ranges[:place]).over(
            setting
        )


def apply_to_nobodys(now: datetime, chunks: Chunks) -> None:
    """What is of activations that the MA does not know. Raises TimeIsUp."""
    _forget_kept(chunks, "")
    for each in ranges_of_nobody(now):
        _Pass(each, "", chunks, now, lambda: True).over_nobodys()


def _forget_kept(chunks: Chunks, key: str) -> None:
    """It is counted from the beginning, also where a step before this one began."""
    RetentionFigure.objects.filter(run=chunks.claim.run, setting_key=key, what=PROTOCOLS).update(kept_for={})


class _Pass:
    """One range once over the rows. `still`: whether the rule says the same. `earlier`: ranges that went over
    the rows before, so what is kept of them is counted already."""

    def __init__(
        self, of: Range, key: str, chunks: Chunks, now: datetime, still: Callable[[], bool],
        earlier: Sequence[Range] = (),
    ) -> None:  # fmt: skip
        self.of, self.key, self.chunks, self.now, self.still = of, key, chunks, now, still
        self.earlier = earlier

    def over(self, setting: LaunchSetting) -> None:
        uncleared = Activation.objects.filter(setting=setting, cleared=False, ended_at__isnull=False)
        if self.of.rule is Rule.WELL:
            self._activations(up_to(uncleared, self.of), self._whole)
            return
        for picked in by_time(FailureProtocol.objects.filter(setting=setting), self.of):
            self._remove(picked)
        ended_before = uncleared.filter(ended_at__lt=self.of.before)
        self._activations(up_to(ended_before, self.of), self._without_protocols)
        if self.of.rule is Rule.SILENT:
            for pk in Activation.objects.filter(setting=setting, ended_at=None).values_list("pk", flat=True):
                self._recovered(
                    RecoveredMessage.objects.filter(activation_uuid=pk, occurred_at__lt=self.of.before)
                )

    def over_nobodys(self) -> None:
        for picked in by_time(FailureProtocol.objects.filter(activation=None), self.of):
            self._remove(picked)
        known = Activation.objects.filter(pk=OuterRef("activation_uuid"))
        old = RecoveredMessage.objects.filter(~Exists(known), occurred_at__lt=self.of.before)
        self._recovered(old.order_by("occurred_at"))

    def _whole(self, activation: UUID) -> None:
        for picked in of_activation(activation):
            self._remove(picked)
        self._recovered(RecoveredMessage.objects.filter(activation_uuid=activation))

    def _without_protocols(self, activation: UUID) -> None:
        """Deletes what recovered in it only with the last of its protocols, which it explains."""
        if not FailureProtocol.objects.filter(activation_uuid=activation).exists():
            self._recovered(RecoveredMessage.objects.filter(activation_uuid=activation))

    def _activations(self, rows: QuerySet[Activation], clear: Callable[[UUID], None]) -> None:
        """`clear` of each of which there is something left."""
        after: Place | None = None
        while True:
            following = rows.filter(past(after)) if after else rows
            some = list(following.order_by("number", "started_at")[:ACTIVATIONS_AT_ONCE])
            if not some:
                return
            after = (some[-1].number, some[-1].started_at)
            for pk in _holding(some):
                clear(pk)
            note_cleared(some, _holding(some))

    def _remove(self, picked: Sequence[Candidate]) -> None:
        rest = list(picked)
        while rest:
            self._look()
            some, rest = rest[: self.chunks.size], rest[self.chunks.size :]
            kept = holds.held_back(some, self.now)
            going = [each for each in some if each.id not in kept]
            counted = without(self.earlier, [each for each in some if each.id in kept])
            self.chunks.delete(
                PROTOCOLS, partial(_delete, going), setting_key=self.key, of=self.of,
                kept=Counter(kept[each.id] for each in counted),
            )  # fmt: skip

    def _recovered(self, rows: QuerySet[RecoveredMessage]) -> None:
        if (safe := archived_before("recovered", self.now)) is not None:
            rows = rows.filter(received_at__lt=safe)
        while True:
            self._look()
            ids = list(rows.values_list("pk", flat=True)[: self.chunks.size])
            if not ids:
                return
            self.chunks.delete(RECOVERED, partial(_delete_recovered, ids), setting_key=self.key, of=self.of)

    def _look(self) -> None:
        if self.chunks.over:
            raise TimeIsUp
        if not self.still():
            raise RuleChanged


def note_cleared(activations: Iterable[Activation], holding: Container[UUID]) -> None:
    """Nothing is left of these, but of those that are `holding`. Late records that came since these rows were
    read are known by their number, and then it is not noted."""
    by_late: dict[int, list[UUID]] = {}
    for each in activations:
        if each.pk not in holding:
            by_late.setdefault(each.late_records, []).append(each.pk)
    for late, pks in by_late.items():
        Activation.objects.filter(pk__in=pks, late_records=late).update(cleared=True)


def _delete(picked: Sequence[Candidate]) -> int:
    _keep_the_truth(picked)
    return row_locations.delete_these({each.place: each.id for each in picked})


def _delete_recovered(ids: Sequence[UUID]) -> int:
    return RecoveredMessage.objects.filter(pk__in=ids).delete()[0]


def _keep_the_truth(picked: Sequence[Candidate]) -> None:
    """Writes down, before a protocol goes, that its message was not handled well: whether an open activation
    finishes well is asked of its protocols. The lock of its end is taken by this UPDATE, so it sees one or
    the other."""
    touched = {each.activation_id for each in picked if each.activation_id and not each.temporary}
    open_still = Activation.objects.filter(pk__in=touched, ended_at=None).exclude(well=False)
    for pk in open_still.values_list("pk", flat=True):
        ids = [each.id for each in picked if each.activation_id == pk]
        if left_of(pk, FailureProtocol.objects.filter(pk__in=ids, temporary=False).order_by()):
            Activation.objects.filter(pk=pk, ended_at=None).update(well=False)


def _holding(activations: Iterable[Activation]) -> set[UUID]:
    """Those of which there are records."""
    protocols = FailureProtocol.objects.filter(activation_uuid=OuterRef("pk"))
    recovered = RecoveredMessage.objects.filter(activation_uuid=OuterRef("pk"))
    rows = Activation.objects.filter(
        Exists(protocols) | Exists(recovered), pk__in=[each.pk for each in activations]
    )
    return set(rows.order_by().values_list("pk", flat=True))
