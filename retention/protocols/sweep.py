"""Describes what is so old that nobody keeps it, of the activations of all settings whose last one finished
well: in the order of time, so that rows that came together go together, whichever setting they are of.

What it leaves, each setting is asked for by itself (`setting_rule`). Nothing is kept in memory but the place
of the last activation, which the run has too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from django.db.models import Q

from agents.models import Activation
from failures.models import RecoveredMessage
from insights.archive.planning import archived_before
from retention.batches import Chunks, TimeIsUp
from retention.protocols import holds, row_locations
from retention.protocols.queries import fact_of, well_ranges
from retention.protocols.row_locations import Found
from retention.protocols.setting_rule import PROTOCOLS, RECOVERED, note_cleared
from retention.run_ledger import Counted

ACTIVATIONS_AT_ONCE = 2000
# So many rows should be looked at together, that their pages are still at hand when they go; and so many at
# most.
WANTED, LOOKED_AT, MOST_LOOKED_AT = 20_000, 40_000, 160_000
FIRST_GROUP, MOST_GROUP = 10, 500
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def sweep(now: datetime, chunks: Chunks) -> None:
    """Raises TimeIsUp."""
    _Sweep(now, chunks).over_all()


class _Sweep:
    def __init__(self, now: datetime, chunks: Chunks) -> None:
        self.now, self.chunks, self.group_size = now, chunks, FIRST_GROUP

    def over_all(self) -> None:
        claim = self.chunks.claim
        after: tuple[datetime, UUID] | None = None
        while some := self._following(after):
            rest = some
            while rest:
                group, rest = rest[: self.group_size], rest[self.group_size :]
                self._group(group)
                after = group[-1].started_at, group[-1].pk
                claim.move(claim.run.part, (after[0] - EPOCH) // MICROSECOND)

    def _following(self, after: tuple[datetime, UUID] | None) -> list[Activation]:
        """Returns them in the order of their starts. What began when somebody may keep its protocols is left
        to its setting."""
        quiet = holds.held_before(self.now)
        if quiet is None:
            return []
        ranges = well_ranges()
        rows = Activation.objects.filter(
            setting__in=list(ranges), cleared=False, ended_at__isnull=False, started_at__lt=quiet,
            started_at__gte=after[0] if after else EPOCH + self.chunks.claim.run.position * MICROSECOND,
        )  # fmt: skip
        if after is not None:
            rows = rows.filter(Q(started_at__gt=after[0]) | Q(pk__gt=after[1]))
        return list(rows.order_by("started_at", "pk")[:ACTIVATIONS_AT_ONCE])

    def _group(self, group: Sequence[Activation]) -> None:
        by_pk = {each.pk: each for each in group}
        looked_at, most = 0, LOOKED_AT
        while by_pk and (quiet := self._quiet()) is not None:
            found = row_locations.find(by_pk, quiet, most)
            deleted = self._delete(found, by_pk)
            looked_at += sum(found.going.values())
            left = found.left(deleted)
            if not found.cut:
                self._clear([each for pk, each in by_pk.items() if pk not in left])
                break
            if sum(deleted.values()) * 2 < most:
                # What stays of these would be looked at again and again.
                by_pk = {pk: each for pk, each in by_pk.items() if pk not in left}
            most = min(most * 2, MOST_LOOKED_AT)
        fitting = len(group) * WANTED // max(looked_at, 1)
        self.group_size = max(1, min(fitting, 2 * len(group), MOST_GROUP))

    def _delete(self, found: Found, by_pk: Mapping[UUID, Activation]) -> Counter[UUID]:
        deleted: Counter[UUID] = Counter()
        rest = found.places
        while rest:
            quiet, going = self._quiet(), self._going(by_pk)
            if quiet is None or not going:
                break
            some, rest = rest[: self.chunks.size], rest[self.chunks.size :]
            deleted += self.chunks.delete_of_many(
                PROTOCOLS, partial(row_locations.delete, some, going.keys(), quiet), going
            )
        return deleted

    def _clear(self, activations: Sequence[Activation]) -> None:
        """Deletes those of which no protocol is left."""
        holding = _recovered_in(each.pk for each in activations)
        if holding:
            self._recovered({each.pk: each for each in activations if each.pk in holding})
            holding = _recovered_in(holding)
        note_cleared(activations, holding)

    def _recovered(self, by_pk: Mapping[UUID, Activation]) -> None:
        safe = archived_before("recovered", self.now)
        while going := self._going(by_pk):
            self._look()
            rows = RecoveredMessage.objects.filter(activation_uuid__in=list(going)).order_by()
            if safe is not None:
                rows = rows.filter(received_at__lt=safe)
            ids = list(rows.values_list("pk", flat=True)[: self.chunks.size])
            if not ids:
                break
            self.chunks.delete_of_many(RECOVERED, partial(_delete_recovered, ids), going)

    def _look(self) -> None:
        if self.chunks.over:
            raise TimeIsUp

    def _quiet(self) -> datetime | None:
        self._look()
        return holds.held_before(self.now)

    def _going(self, by_pk: Mapping[UUID, Activation]) -> dict[UUID, Counted]:
        """Those that the rule lets go, as it is now."""
        ranges = well_ranges({each.setting_id for each in by_pk.values()})
        return {
            pk: ranges[each.setting_id]
            for pk, each in by_pk.items()
            if each.setting_id in ranges and ranges[each.setting_id][1].covers(fact_of(each), self.now)
        }


def _recovered_in(activations: Iterable[UUID]) -> set[UUID]:
    rows = RecoveredMessage.objects.filter(activation_uuid__in=list(activations)).order_by()
    return set(rows.values_list("activation_uuid", flat=True).distinct())


def _delete_recovered(ids: Sequence[UUID]) -> Counter[UUID]:
    rows = RecoveredMessage.objects.filter(pk__in=ids).order_by()
    counts = Counter(rows.values_list("activation_uuid", flat=True))
    rows.delete()
    return counts
