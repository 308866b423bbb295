"""A trip as it went: each time the setting went off, who had given it up before and what was done then."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.models import BreakerTrip, Interruption
from agents.pages.trip_words import Done, effects

Told = tuple[Interruption, str]


@dataclass(frozen=True, slots=True)
class Chapter:
    """`at`: None where nothing is left that tells when it went off again."""

    given_up: list[Told]
    at: datetime | None
    effects: list[Done]


def trip_story(trip: BreakerTrip, told: Sequence[Told], user: Any) -> list[Chapter]:
    """`told`: interruptions, oldest first, with their causes. The first chapter is the trip itself; each one
    after it is a message that was tried first and failed, which belongs to an activation of its own. Where
    the oldest interruptions are missing, the newest chapters keep theirs."""
    own = [(each, why) for each, why in told if each.trip_id == trip.pk]
    activations = list(dict.fromkeys(each.activation_uuid for each, _ in own))
    done = _batches(effects(user, trip), trip.reopened + 1)
    skipped = len(done) - len(activations)
    found: list[list[Told]] = [[] for _ in done]
    for each, why in own:
        found[max(0, skipped + activations.index(each.activation_uuid))].append((each, why))
    return [
        Chapter(given_up, trip.at if place == 0 else _last(given_up), batch)
        for place, (given_up, batch) in enumerate(zip(found, done, strict=True))
    ]


def _batches(done: Sequence[Done], count: int) -> list[list[Done]]:
    """What was done is kept in one row after the other; the setting itself is the first of each time."""
    batches: list[list[Done]] = [[] for _ in range(count)]
    place = -1
    for each in done:
        place += each.first
        batches[min(max(place, 0), count - 1)].append(each)
    return batches


def _last(given_up: Sequence[Told]) -> datetime | None:
    return max((each.received_at for each, _ in given_up), default=None)
