"""Which settings, and so which pools, kinds of failures concern."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Sum

from agents.alerts.kinds import Observation
from agents.models import LaunchSetting
from failures.models import Fingerprint, FingerprintHour

# Of one alert; the page of the fingerprint has them all.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Known:
    """What is needed of a setting that is there."""

    pk: int
    pool: int
    created_at: datetime


Settings = Mapping[str, Known]


def counts_of(fingerprints: Collection[str], since: datetime | None = None) -> dict[str, dict[str, float]]:
    """By fingerprint: how often it, and what is merged into it, came in which setting, in hours from `since`
    on; a part that was split off is of its setting. Three queries."""
    merged = Fingerprint.objects.filter(merged_into__in=fingerprints).values_list("pk", "merged_into")
    head_of = {pk: str(head) for pk, head in merged} | {each: each for each in fingerprints}
    rows = FingerprintHour.objects.filter(fingerprint__in=list(head_of))
    if since is not None:
        rows = rows.filter(hour__gte=since)
    found: dict[str, dict[str, float]] = {each: defaultdict(float) for each in fingerprints}
    for fingerprint, key, count in (
        rows.order_by().values_list("fingerprint", "setting_key").annotate(n=Sum("count"))
    ):
        found[head_of[fingerprint]][key] += count
    parts = Fingerprint.objects.filter(pk__in=fingerprints, part_of__isnull=False).values_list(
        "pk", "part_setting"
    )
    for part, key in parts:
        found[part][key] += 1.0
    return found


def most_first(counts: Mapping[str, float]) -> list[str]:
    return sorted(counts, key=lambda key: (-counts[key], key))


def settings_of(keys: Collection[str]) -> Settings:
    """Those that are there; a failure may name one that is not. One query."""
    rows = LaunchSetting.objects.filter(key__in=keys).values_list("key", "pk", "pool_id", "created_at")
    return {key: Known(pk, pool, created_at) for key, pk, pool, created_at in rows}


def observation(
    row: Fingerprint, value: float, counts: Mapping[str, float], settings: Settings, **facts: Any
) -> Observation:
    """Of one fingerprint. It is told to the pools of all its settings, to everybody where none is known. Of
    what failed type and place are told, never a text: that may quote a message."""
    keys = most_first(counts)
    known = [settings[key] for key in keys if key in settings]
    told = {
        "fingerprint": row.pk,
        "type": row.exception_type,
        "place": row.place,
        "settings": keys[:MOST_NAMED],
        "others": max(0, len(keys) - MOST_NAMED),
    }
    return Observation(
        row.pk,
        value,
        setting=known[0].pk if len(keys) == 1 and known else None,
        pools=frozenset(each.pool for each in known),
        facts={**told, **facts},
    )
