"""What fails on one server, across all settings, and whether it fails on others too."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F, Sum

from agents.models import Run
from failures.odd_server import alone
from failures.tallies.owners import Pair
from failures.tallies.reading import MOST_GROUPS, Alike, elsewhere_of, of_server

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
    """Of activations in which it failed there since then, with all that they counted there. At most three
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
