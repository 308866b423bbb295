"""Describes what a chart is made of: curves at the places of an axis, and marks of what happened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from console.ui.charts.scales import COUNT, Axis, Unit


class Kind(StrEnum):
    """Bars of one chart are stacked, in their order."""

    LINE = "line"
    AREA = "area"
    BARS = "bars"


class Shape(StrEnum):
    """Of a mark, as a path around its middle."""

    DOWN = "M-6-5H6L0 6Z"
    UP = "M-6 5H6L0-6Z"
    SQUARE = "M-5-5H5V5H-5Z"
    DIAMOND = "M0-7L6 0L0 7L-6 0Z"
    RING = "M0-6A6 6 0 1 0 0 6A6 6 0 1 0 0-6M0-3A3 3 0 1 1 0 3A3 3 0 1 1 0-3Z"
    ALARM = "M-2-7H2L1 2H-1ZM-2 4H2V7H-2Z"
    BAR = "M-7-2H7V2H-7Z"
    CROSS = "M-6-3L-3-6L0-3L3-6L6-3L3 0L6 3L3 6L0 3L-3 6L-6 3L-3 0Z"


@dataclass(frozen=True, slots=True)
class Curve:
    """`values`: one for each place of the axis, None where nobody knows it. `tone` is a colour of the theme:
    ok · bad · warn · info · off · third · fourth. `urls`: what a bar leads to."""

    name: str
    values: Sequence[float | None]
    kind: Kind = Kind.LINE
    tone: str = "info"
    urls: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened. `text` says what, in a few words, `about` of what, hostile texts."""

    at: datetime
    shape: Shape
    tone: str
    text: str
    about: str = ""
    url: str = ""

    @property
    def words(self) -> str:
        return f"{self.text}: {self.about}" if self.about else self.text


@dataclass(frozen=True, slots=True)
class Chart:
    """`name`: its id on the page. `notes`: what is said of each place beside its values, as a link tells it.
    `marked_elsewhere`: another chart of the page has the same marks as links and as a list."""

    name: str
    title: str
    axis: Axis
    curves: Sequence[Curve]
    unit: Unit = COUNT
    marks: Sequence[Mark] = ()
    notes: Sequence[str] = ()
    marked_elsewhere: bool = False
