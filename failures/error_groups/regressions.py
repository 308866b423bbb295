"""Known errors that came again after their fix: only what failed with the fixed version, a newer or an
unknown one.

`FingerprintVersion` keeps the latest failure of each version, so the answer depends on no order of arrival.
It is stored in `KnownError.returned_at` by two writers: the fold, which only moves it forward, and what
people do, which computes it anew. Both hold the lock of the `FoldMark` until their commit: neither misses
what the other one wrote. A process that dies before that commit has changed nothing; the failures are still
there as deltas.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from failures.error_groups.increments import BELIEVED
from failures.error_groups.queries import Pair, scope_of
from failures.error_groups.rules import is_older, version_key
from failures.models import FailureDelta, FailureGroup, Fingerprint, FingerprintVersion, KnownError

MOST_READ = 5000
MOST_FORGOTTEN = 5000
MOST_NAMED = 5


def note_versions(sums: Sequence[FailureDelta]) -> None:
    """One of `sums` for each fingerprint, setting and version, in the order of their keys."""
    rows = [
        FingerprintVersion(
            fingerprint=each.fingerprint,
            setting_key=each.setting_key,
            agent_version=each.agent_version,
            last_at=each.last_at,
        )
        for each in sums
    ]
    FingerprintVersion.objects.bulk_create(rows, ignore_conflicts=True)
    for row in rows:
        same = FingerprintVersion.objects.filter(
            fingerprint=row.fingerprint, setting_key=row.setting_key, agent_version=row.agent_version
        )
        same.filter(last_at__lt=row.last_at).update(last_at=row.last_at)


def note_returns(sums: Sequence[FailureDelta], parts: Mapping[Pair, str]) -> None:
    """Moves `returned_at` of known errors forward. `parts`: what people split off, by fingerprint and
    setting."""
    owners = {(each.fingerprint, each.setting_key) for each in sums}
    of = {pair: parts.get(pair, pair[0]) for pair in owners}
    merged = Fingerprint.objects.filter(pk__in=set(of.values()), merged_into__isnull=False)
    heads = {str(pk): str(head) for pk, head in merged.values_list("pk", "merged_into")}
    head_of = {pair: heads.get(owner, owner) for pair, owner in of.items()}
    fixed = KnownError.objects.filter(pk__in=set(head_of.values()), fixed_at__isnull=False).in_bulk()
    came: dict[str, datetime] = {}
    for each in sums:
        entry = fixed.get(head_of[each.fingerprint, each.setting_key])
        if entry is not None and is_return(entry, each.agent_version, each.last_at):
            came[entry.pk] = max(each.last_at, came.get(entry.pk, each.last_at))
    for pk in sorted(came):
        entry = fixed[pk]
        same = KnownError.objects.filter(pk=pk, fixed_at=entry.fixed_at, fixed_in=entry.fixed_in)
        same.filter(Q(returned_at=None) | Q(returned_at__lt=came[pk])).update(returned_at=came[pk])


def refresh_return(head: str, members: Collection[str]) -> None:
    """Computes it anew for the known error of `head`, after a person changed what is fixed or what belongs
    together. In a transaction that holds the fold. `members`: it and those merged into it."""
    entry = KnownError.objects.filter(pk=head).first()
    if entry is None:
        return
    rows = _since(members, entry.fixed_at) if entry.fixed_at else ()
    returned_at = max((at for _, version, at in rows if is_return(entry, version, at)), default=None)
    KnownError.objects.filter(pk=head).update(returned_at=returned_at)


def is_return(entry: KnownError, version: str, at: datetime) -> bool:
    """Returns whether a failure of that version of the agent means that the fix did not hold. One of an
    unknown version does: a fault that came back and stays hidden costs more than an alert too many."""
    return entry.fixed_at is not None and at > entry.fixed_at and not is_older(version, entry.fixed_in)


@dataclass(frozen=True, slots=True)
class OlderVersion:
    """A version without the fix that still failed after it, and the servers where it did."""

    version: str
    servers: tuple[str, ...] = ()


def older_since(entry: KnownError, members: Collection[str]) -> list[OlderVersion]:
    """Versions older than the fixed one with which it still came since, the newest first, at most
    MOST_NAMED. Where is not known of what retention deleted, or of a version that was followed by another
    one within an activation."""
    if entry.fixed_at is None or not entry.fixed_in:
        return []
    found: dict[str, set[str]] = {
        version: set()
        for _, version, _ in _since(members, entry.fixed_at)
        if is_older(version, entry.fixed_in)
    }
    if found:
        for version, server in _servers_since(members, entry.fixed_at):
            if version in found:
                found[version].add(server)
    newest = sorted(found, key=lambda version: (version_key(version), version), reverse=True)[:MOST_NAMED]
    return [OlderVersion(version, tuple(sorted(found[version])[:MOST_NAMED])) for version in newest]


def _servers_since(members: Collection[str], at: datetime) -> Iterator[tuple[str, str]]:
    """(version, server) of what came after `at`."""
    scope = scope_of(members)
    rows = FailureGroup.objects.filter(**scope.where, last_at__gt=at).order_by("-last_at")
    found = rows.values_list("fingerprint", "setting_key", "agent_version", "server_name")[:MOST_READ]
    return ((version, server) for key, setting, version, server in found if scope.owner(key, setting))


def settings_of_returns(entries: Iterable[KnownError], since: datetime) -> Mapping[str, Collection[str]]:
    """Returns by known error keys of settings in which it returned, in the time from `since` on. Three
    questions for all."""
    by_pk = {entry.pk: entry for entry in entries}
    merged = Fingerprint.objects.filter(merged_into__in=list(by_pk), part_of=None).values_list(
        "pk", "merged_into"
    )
    head_of = {str(pk): str(head) for pk, head in merged} | {pk: pk for pk in by_pk}
    scope = scope_of(head_of)
    rows = FingerprintVersion.objects.filter(**scope.where, last_at__gte=since)
    found: dict[str, set[str]] = defaultdict(set)
    for fingerprint, key, version, at in rows.values_list(
        "fingerprint", "setting_key", "agent_version", "last_at"
    ):
        owner = scope.owner(fingerprint, key)
        if owner is not None and is_return(by_pk[head_of[owner]], version, at):
            found[head_of[owner]].add(key)
    return found


def forget_versions(now: datetime) -> int:
    """Deletes those that did not come for as long as trends go back, at most MOST_FORGOTTEN. Answers how
    many."""
    old = FingerprintVersion.objects.filter(last_at__lt=now - BELIEVED).order_by("last_at").values("pk")
    return FingerprintVersion.objects.filter(
        pk__in=list(old.values_list("pk", flat=True)[:MOST_FORGOTTEN])
    ).delete()[0]


def _since(members: Collection[str], at: datetime) -> list[tuple[str, str, datetime]]:
    """(setting, version, last) of what came after `at`, the latest first."""
    scope = scope_of(members)
    rows = FingerprintVersion.objects.filter(**scope.where, last_at__gt=at).order_by("-last_at")
    found = rows.values_list("fingerprint", "setting_key", "agent_version", "last_at")[:MOST_READ]
    return [
        (key, version, last) for fingerprint, key, version, last in found if scope.owner(fingerprint, key)
    ]
