"""Counts as pages show them: the folded rows and the deltas that are still to fold, read in one statement."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import F, Q, Sum

from agents.models import Run
from console.ui.page import link_to
from failures.error_groups.rules import alone
from failures.models import FailureDelta, FailureGroup, Fingerprint, FingerprintHour

# -- owner of a count: its fingerprint, or the part that a person split off ----------------------------------


# (fingerprint, key of a setting)
Pair = tuple[str, str]


def owners_of(fingerprints: Collection[str]) -> dict[Pair, str]:
    """Returns the part by what is split off of these. One query."""
    rows = Fingerprint.objects.filter(part_of__in=set(fingerprints), merged_into=None)
    return {
        (str(whole), setting): part
        for part, whole, setting in rows.values_list("pk", "part_of", "part_setting")
    }


@dataclass(frozen=True, slots=True)
class Scope:
    """Holds what is counted for some fingerprints and parts: rows of `counted_as`, each for its `owner`,
    where that is one of `wanted`."""

    wanted: frozenset[str]
    counted_as: frozenset[str]
    owners: Mapping[Pair, str] = field(default_factory=dict)
    settings: frozenset[str] | None = None

    def owner(self, fingerprint: str, setting: str) -> str | None:
        """None: of none of these."""
        owner = self.owners.get((fingerprint, setting), fingerprint)
        return owner if owner in self.wanted else None

    @property
    def where(self) -> dict[str, object]:
        """Returns conditions for `filter`: more than what is wanted may be found."""
        only = {} if self.settings is None else {"setting_key__in": self.settings}
        return {"fingerprint__in": self.counted_as, **only}


def scope_of(fingerprints: Collection[str]) -> Scope:
    """One query. `settings` is known where all of them are parts."""
    wanted = frozenset(fingerprints)
    related = Fingerprint.objects.filter(Q(pk__in=wanted) | Q(part_of__in=wanted), part_of__isnull=False)
    rows = list(related.filter(merged_into=None).values_list("pk", "part_of", "part_setting"))
    parts = {part: (str(whole), setting) for part, whole, setting in rows}
    mine = {part: pair for part, pair in parts.items() if part in wanted}
    return Scope(
        wanted=wanted,
        counted_as=(wanted - mine.keys()) | {whole for whole, _ in mine.values()},
        owners={pair: part for part, pair in parts.items()},
        settings=frozenset(setting for _, setting in mine.values())
        if wanted and wanted == mine.keys()
        else None,
    )


# -- queries -------------------------------------------------------------------------------------------------


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


def counts_of_activation(activation: UUID) -> list[Alike]:
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
    """Returns by fingerprint and setting how many on which other servers, in groups whose last failure is not
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
    """Counts in one statement: a fold between two would count what it moved twice, or not at all."""
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
    """The total of a fingerprint by itself, over everything."""

    count: int
    first_at: datetime
    last_at: datetime


def totals_of(fingerprints: Collection[str]) -> dict[str, Total]:
    """Returns them by fingerprint; those that never came are left out. What is counted for parts that were
    split off is not in them."""
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
    """Returns by fingerprint how many in each whole hour from that of `since` to that of `now`."""
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


def settings_of_groups(fingerprints: Collection[str], since: datetime) -> dict[str, int]:
    """Returns by setting how many since the hour of `since`, the most first."""
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


# -- what fails on one server, across all settings, and whether it fails on others too -----------------------


# Attempts of other servers are counted in so many of the latest activations.
MOST_ACTIVATIONS = 200


@dataclass(frozen=True, slots=True)
class Here:
    """Failures of one kind in one setting on the server; `latest`: the newest of them. `elsewhere`: the same
    kind in that setting by server, without this one. `alone`: other servers made enough attempts in the same
    activations, and none of them failed so."""

    latest: Alike
    count: int
    first_at: datetime
    activations: int
    elsewhere: dict[str, int]
    alone: bool

    @property
    def pair(self) -> Pair:
        return self.latest.fingerprint, self.latest.setting_key

    @property
    def elsewhere_count(self) -> int:
        return sum(self.elsewhere.values())


@dataclass(frozen=True, slots=True)
class OnServer:
    """`kinds`: the settings with the most failures first. `left_out`: how many kinds are not among them.
    `cut`: there is more than was looked at."""

    kinds: list[Here]
    left_out: int
    cut: bool


def failures_on(server: str, since: datetime, most: int) -> OnServer:
    """Counts activations in which it failed there since then, with all that they counted there. At most three
    queries, each bounded."""
    found = of_server(server, since)
    together: dict[Pair, list[Alike]] = defaultdict(list)
    of_settings: dict[str, int] = defaultdict(int)
    for alike in found:
        together[alike.fingerprint, alike.setting_key].append(alike)
        of_settings[alike.setting_key] += alike.count
    counts = {pair: sum(alike.count for alike in alikes) for pair, alikes in together.items()}
    order = sorted(counts, key=lambda pair: (-of_settings[pair[1]], pair[1], -counts[pair], pair[0]))[:most]
    elsewhere = elsewhere_of(order, server, since) if order else {}
    tried = _tried_elsewhere([alike for pair in order for alike in together[pair]], server)
    kinds = [_here(together[pair], elsewhere.get(pair, {}), tried) for pair in order]
    return OnServer(kinds, len(together) - len(kinds), len(found) >= MOST_GROUPS)


def _here(alikes: Sequence[Alike], elsewhere: dict[str, int], tried: dict[str, int]) -> Here:
    latest = max(alikes, key=lambda alike: alike.last_at)
    count = sum(alike.count for alike in alikes)
    odd = alone(count, sum(elsewhere.values()), tried.get(latest.setting_key, 0))
    first_at = min(alike.first_at for alike in alikes)
    return Here(latest, count, first_at, len(alikes), elsewhere, odd)


def _tried_elsewhere(alikes: Collection[Alike], server: str) -> dict[str, int]:
    """Attempts of other servers by setting, in the latest of these activations."""
    latest: dict[UUID, datetime] = {}
    for alike in alikes:
        latest[alike.activation_uuid] = max(alike.last_at, latest.get(alike.activation_uuid, alike.last_at))
    shown = sorted(latest, key=lambda activation: latest[activation], reverse=True)[:MOST_ACTIVATIONS]
    runs = Run.objects.filter(activation__in=shown).exclude(server__name=server).order_by()
    made = runs.values_list("activation__setting__key").annotate(made=Sum(F("handled") + F("failed")))
    return dict(made)


def fingerprint_url(fingerprint: str) -> str:
    """Puts it in the query: a KMA may send any text as a fingerprint."""
    return link_to("fingerprint", fingerprint, "of")
