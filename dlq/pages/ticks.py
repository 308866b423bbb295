"""What has to be acknowledged before letters move, as boxes of a form."""

from collections.abc import Iterable
from dataclasses import dataclass

from dlq.preflight import Flight, words


@dataclass(frozen=True, slots=True)
class Tick:
    code: str
    sentence: str
    words: str
    ticked: bool


def ticks_of(flight: Flight, acknowledged: Iterable[str]) -> list[Tick]:
    known = frozenset(acknowledged)
    return [
        Tick(each.code, words.sentence(each), words.tick(each), each.code in known)
        for each in flight.warnings
    ]
