"""Counts as pages show them: the folded rows and the deltas that are still to fold, read in one statement."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, Sum

from failures.models import FailureDelta, FailureGroup, Fingerprint, FingerprintHour
from failures.tallies.owners import Pair, scope_of

# Of an activation or a fingerprint: more kinds on more servers than people can read.
MOST_GROUPS = 5000
HOUR = timedelta(hours=1)
_FIELDS = (
    "activation_uuid", "setting_key", "server_name", "fingerprint", "exception_type", "place", "headline",
    "agent_version", "temporary", "count", "first_at", "last_at", "latest",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Alike:
    """Failures of one fingerprint on one server in one activation; `latest` may have been deleted."""

    activation_uuid: UUID
    setting_key: str
    server_name: str
    fingerprint: str
    exception_type: str
    place: str
    headline: str
    agent_version: str
    temporary: bool
    count: int
    first_at: datetime
    last_at: datetime
    latest: UUID


def of_activation(activation: UUID) -> list[Alike]:
    """One for each server and fingerprint, at most MOST_GROUPS, the largest first."""
    return _together(activation_uuid=activation)


def of_fingerprints(fingerprints: Collection[str], since: datetime) -> list[Alike]:
    """One for each activation, server and fingerprint whose last failure is not older, at most MOST_GROUPS of
    the newest; the latest first."""
    scope = scope_of(fingerprints)
    together = _together(**scope.where, last_at__gte=since)
    found = [alike for alike in together if scope.owner(alike.fingerprint, alike.setting_key)]
    return sorted(found, key=lambda alike: alike.last_at, reverse=True)


def of_server(server: str, since: datetime) -> list[Alike]:
    """One for each activation and fingerprint whose last failure there is not older, at most MOST_GROUPS of
    the newest and what came since; the largest first."""
    return _together(server_name=server, last_at__gte=since)


def elsewhere_of(pairs: Collection[Pair], server: str, since: datetime) -> dict[Pair, dict[str, int]]:
    """By fingerprint and setting: how many on which other servers, in groups whose last failure is not
    older."""
    narrowed = {
        "fingerprint__in": {fingerprint for fingerprint, _ in pairs},
        "setting_key__in": {setting for _, setting in pairs},
        "last_at__gte": since,
    }
    parts = (
        rows.filter(**narrowed)
        .exclude(server_name=server)
        .order_by()
        .values_list("fingerprint", "setting_key", "server_name")
        .annotate(sum=Sum("count"))
        for rows in (FailureGroup.objects.all(), FailureDelta.objects.all())
    )
    found: dict[Pair, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    folded, fresh = parts
    for fingerprint, setting, name, count in folded.union(fresh, all=True):
        found[fingerprint, setting][name] += count
    return found


def _together(**narrowed: Any) -> list[Alike]:
    """In one statement: a fold between two would count what it moved twice, or not at all."""
    newest = FailureGroup.objects.filter(**narrowed).order_by("-last_at").values("pk")[:MOST_GROUPS]
    folded = FailureGroup.objects.filter(pk__in=newest).order_by()
    fresh = FailureDelta.objects.filter(**narrowed).order_by()
    return added(
        Alike(*row) for row in folded.values_list(*_FIELDS).union(fresh.values_list(*_FIELDS), all=True)
    )


def added(parts: Iterable[Alike]) -> list[Alike]:
    """Parts of the same activation, server and fingerprint as one; the largest first."""
    sums: dict[tuple[UUID, str, str], Alike] = {}
    for part in parts:
        key = (part.activation_uuid, part.server_name, part.fingerprint)
        sums[key] = _sum(sums[key], part) if key in sums else part
    return sorted(sums.values(), key=lambda alike: (-alike.count, alike.server_name, alike.fingerprint))


def _sum(one: Alike, other: Alike) -> Alike:
    later = max(one, other, key=lambda alike: alike.last_at)
    return replace(
        later,
        count=one.count + other.count,
        first_at=min(one.first_at, other.first_at),
        temporary=one.temporary and other.temporary,
    )


@dataclass(frozen=True, slots=True)
class Total:
    """Of a fingerprint by itself, over everything."""

    count: int
    first_at: datetime
    last_at: datetime


def totals_of(fingerprints: Collection[str]) -> dict[str, Total]:
    """By fingerprint; those that never came are left out. Of one of which parts were split off: without what
    is counted for these."""
    scope = scope_of(fingerprints)
    kinds = Fingerprint.objects.filter(Q(pk__in=scope.wanted) | Q(part_of__in=scope.wanted, merged_into=None))
    folded = kinds.order_by().values_list("fingerprint", "part_setting", "count", "first_at", "last_at")
    fresh = FailureDelta.objects.filter(**scope.where).order_by()
    wholes = {part: whole for (whole, _setting), part in scope.owners.items()}
    totals, in_parts = dict[str, Total](), defaultdict[str, int](int)
    rows = folded.union(
        fresh.values_list("fingerprint", "setting_key", "count", "first_at", "last_at"), all=True
    )
    for fingerprint, setting, count, first_at, last_at in rows:
        in_parts[wholes.get(fingerprint, "")] += count
        if (owner := scope.owner(fingerprint, setting)) is not None:
            so_far = totals.get(owner, Total(0, first_at, last_at))
            totals[owner] = Total(
                so_far.count + count, min(so_far.first_at, first_at), max(so_far.last_at, last_at)
            )
    return {each: replace(total, count=total.count - in_parts[each]) for each, total in totals.items()}


def hours_of(fingerprints: Collection[str], since: datetime, now: datetime) -> Mapping[str, list[int]]:
    """By fingerprint: how many in each whole hour from that of `since` to that of `now`."""
    first = since.replace(minute=0, second=0, microsecond=0)
    width = int((now - first) / HOUR) + 1
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * width)
    scope = scope_of(fingerprints)
    for fingerprint, setting, hour, count in _hours(**scope.where, hour__gte=first):
        owner = scope.owner(fingerprint, setting)
        if owner is None:
            continue
        index = int((hour - first) / HOUR)
        if 0 <= index < width:
            counts[owner][index] += count
    return counts


def settings_of(fingerprints: Collection[str], since: datetime) -> dict[str, int]:
    """By setting: how many since the hour of `since`, the most first."""
    first = since.replace(minute=0, second=0, microsecond=0)
    counts: dict[str, int] = defaultdict(int)
    scope = scope_of(fingerprints)
    for fingerprint, setting, _hour, count in _hours(**scope.where, hour__gte=first):
        if scope.owner(fingerprint, setting):
            counts[setting] += count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _hours(**narrowed: Any) -> Iterable[tuple[str, str, datetime, int]]:
    fields = ("fingerprint", "setting_key", "hour", "count")
    folded = FingerprintHour.objects.filter(**narrowed).order_by().values_list(*fields)
    fresh = FailureDelta.objects.filter(**narrowed).order_by().values_list(*fields)
    return folded.union(fresh, all=True)
