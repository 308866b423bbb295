"""Places in the list of protocols, as texts of an address."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

LOWEST, HIGHEST = UUID(int=0), UUID(int=2**128 - 1)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Between two protocols: what is older lies below. The key orders what happened at one instant."""

    at: datetime
    key: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.key}"


def place_in(text: str) -> Place | None:
    """What `str` wrote. None for anything else: the list begins at its end."""
    instant, _separator, key = text.rpartition("_")
    try:
        at, known = datetime.fromisoformat(instant), UUID(key)
    except ValueError:
        return None
    return Place(at, known) if at.tzinfo else None
