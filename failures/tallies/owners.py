"""Whose a count is: of the fingerprint that it was counted under, or of that part of it that a person split
off."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.db.models import Q

from failures.models import Fingerprint

# (fingerprint, key of a setting)
Pair = tuple[str, str]


def owners_of(fingerprints: Collection[str]) -> dict[Pair, str]:
    """By what is split off of these: the part. One query."""
    rows = Fingerprint.objects.filter(part_of__in=set(fingerprints), merged_into=None)
    return {
        (str(whole), setting): part
        for part, whole, setting in rows.values_list("pk", "part_of", "part_setting")
    }


@dataclass(frozen=True, slots=True)
class Scope:
    """What is counted for some fingerprints and parts: rows of `counted_as`, each for its `owner`, where that
    is one of `wanted`."""

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
        """For `filter`: more than what is wanted may be found."""
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
