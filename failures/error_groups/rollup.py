"""Deltas into counts: one runner at a time, each step in one transaction.

Killed before the commit, the deltas are all there and nothing was counted; after it they are gone and
counted. Who does not get the mark's lock leaves it to who has it.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db import models, transaction
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Greatest, Least

from failures.error_groups.increments import BELIEVED
from failures.error_groups.queries import owners_of
from failures.error_groups.regressions import note_returns, note_versions
from failures.models import FailureDelta, FailureGroup, Fingerprint, FingerprintHour, FoldMark

AT_ONCE = 2000
MOST_STEPS = 50
MOST_FORGOTTEN = 5000

Key = TypeVar("Key", bound=Hashable)
Sums = dict[Key, FailureDelta]


def fold_all(now: datetime) -> int:
    """Folds what is there, in bounded steps. Answers how many deltas."""
    total = 0
    for _step in range(MOST_STEPS):
        folded = fold(now)
        total += folded
        if folded < AT_ONCE:
            break
    return total


def fold(now: datetime) -> int:
    """One step. Answers how many deltas it folded: 0 also where another runner is at it."""
    FoldMark.objects.get_or_create(pk=1)
    with transaction.atomic():
        if FoldMark.objects.select_for_update(skip_locked=True).filter(pk=1).first() is None:
            return 0
        deltas = list(FailureDelta.objects.order_by("pk")[:AT_ONCE])
        if deltas:
            _count(deltas)
            FailureDelta.objects.filter(pk__in=[delta.pk for delta in deltas]).delete()
        FoldMark.objects.filter(pk=1).update(folded_at=now)
    return len(deltas)


def hold() -> None:
    """Holds the lock in a transaction that deletes counts: nobody folds until its end. What a fold adds to a
    row that goes at that instant would be counted nowhere."""
    FoldMark.objects.get_or_create(pk=1)
    FoldMark.objects.select_for_update().get(pk=1)


def forget_hours(now: datetime) -> int:
    """Deletes hours that are older than trends go back, at most MOST_FORGOTTEN. Answers how many."""
    old = (
        FingerprintHour.objects.filter(hour__lt=now - BELIEVED).order_by("hour").values("pk")[:MOST_FORGOTTEN]
    )
    return FingerprintHour.objects.filter(pk__in=list(old.values_list("pk", flat=True))).delete()[0]


def _count(deltas: Sequence[FailureDelta]) -> None:
    groups = _summed(deltas, lambda delta: (delta.activation_uuid, delta.server_name, delta.fingerprint))
    _put(
        FailureGroup,
        [
            ({"activation_uuid": k[0], "server_name": k[1], "fingerprint": k[2]}, delta)
            for k, delta in groups.items()
        ],
        lambda delta: {"setting_key": delta.setting_key, "temporary": delta.temporary, **_what(delta)},
    )
    hours = _summed(deltas, lambda delta: (delta.fingerprint, delta.setting_key, delta.hour))
    rows = [FingerprintHour(fingerprint=k[0], setting_key=k[1], hour=k[2]) for k in hours]
    FingerprintHour.objects.bulk_create(rows, ignore_conflicts=True)
    for (fingerprint, setting, hour), delta in hours.items():
        of_hour = FingerprintHour.objects.filter(fingerprint=fingerprint, setting_key=setting, hour=hour)
        of_hour.update(count=F("count") + delta.count)
    kinds = _summed(deltas, lambda delta: delta.fingerprint)
    _put(
        Fingerprint,
        [({"fingerprint": fingerprint}, delta) for fingerprint, delta in kinds.items()],
        lambda delta: {"recent_at": delta.last_at, "received_at": delta.received_at, **_what(delta)},
    )
    parts = owners_of(kinds)
    of_parts = _summed(
        [delta for delta in deltas if (delta.fingerprint, delta.setting_key) in parts],
        lambda delta: parts[delta.fingerprint, delta.setting_key],
    )
    _put(
        Fingerprint,
        [({"fingerprint": part}, delta) for part, delta in of_parts.items()],
        lambda delta: {"recent_at": delta.last_at, "received_at": delta.received_at, **_what(delta)},
    )
    for fingerprint, delta in (kinds | of_parts).items():
        shown = Q(fingerprint=fingerprint) | Q(merged__fingerprint=fingerprint)
        heads = Fingerprint.objects.filter(shown).values_list("pk", flat=True)
        Fingerprint.objects.filter(pk__in=list(heads), recent_at__lt=delta.last_at).update(
            recent_at=delta.last_at
        )
    versions = _summed(deltas, lambda delta: (delta.fingerprint, delta.setting_key, delta.agent_version))
    note_versions(list(versions.values()))
    note_returns(list(versions.values()), parts)


def _what(delta: FailureDelta) -> dict[str, Any]:
    return {"exception_type": delta.exception_type, "place": delta.place, "headline": delta.headline}


def _summed(deltas: Iterable[FailureDelta], key: Callable[[FailureDelta], Key]) -> Sums[Key]:
    """Returns them in the order of the keys, so that no two writers wait for each other in a circle."""
    sums: Sums[Key] = {}
    for delta in deltas:
        found = sums.get(key(delta))
        if found is None:
            sums[key(delta)] = _copy(delta)
            continue
        found.count += delta.count
        found.temporary = found.temporary and delta.temporary
        found.first_at = min(found.first_at, delta.first_at)
        found.received_at = min(found.received_at, delta.received_at)
        if delta.last_at >= found.last_at:
            found.last_at, found.latest = delta.last_at, delta.latest
            found.headline, found.agent_version = delta.headline, delta.agent_version
    return {each: sums[each] for each in sorted(sums, key=str)}


def _copy(delta: FailureDelta) -> FailureDelta:
    fields = [field.attname for field in FailureDelta._meta.concrete_fields if not field.primary_key]
    return FailureDelta(**{name: getattr(delta, name) for name in fields})


def _put(
    table: type[FailureGroup] | type[Fingerprint],
    counted: Sequence[tuple[dict[str, Any], FailureDelta]],
    facts: Callable[[FailureDelta], dict[str, Any]],
) -> None:
    """Rows that are not there are made with nothing counted; then every row is added to."""
    rows: models.Manager[Any] = table._default_manager
    ends = ("first_at", "last_at", "latest")
    made = [
        table(**key, **facts(delta), **{name: getattr(delta, name) for name in ends})
        for key, delta in counted
    ]
    rows.bulk_create(made, ignore_conflicts=True)
    for key, delta in counted:
        newer = Q(last_at__lte=delta.last_at)
        latest = {"latest": delta.latest, "headline": delta.headline}
        if table is FailureGroup:
            latest["agent_version"] = delta.agent_version
        # One that was not temporary makes its group one that failed, whichever came first.
        failed = {"temporary": False} if table is FailureGroup and not delta.temporary else {}
        rows.filter(**key).update(
            count=F("count") + delta.count,
            first_at=Least(F("first_at"), Value(delta.first_at)),
            last_at=Greatest(F("last_at"), Value(delta.last_at)),
            **failed,
            **{name: Case(When(newer, then=Value(value)), default=F(name)) for name, value in latest.items()},
        )
