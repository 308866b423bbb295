"""Benches: the product beside a bare reference on the same work. `./ma bench NAME`; figures in
docs/benchmarks.md."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(ABC):
    """One line of a bench: `product` beside `reference`, and the `goal`."""

    name: str
    product: float
    reference: float
    goal: float
    peak_memory_mb: float = 0.0
    runs: list[dict[str, float]] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return self.product / self.reference if self.reference else 0.0

    @property
    @abstractmethod
    def ok(self) -> bool: ...

    @abstractmethod
    def line(self) -> str:
        """For people: name · product · reference · ratio · goal · verdict."""

    @property
    def verdict(self) -> str:
        return "ok" if self.ok else "short"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": round(self.ratio, 3), "ok": self.ok}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure(Line):
    """`product` and `reference` in `unit`; short of the goal when the ratio is below it."""

    unit: str

    @property
    def ok(self) -> bool:
        return self.ratio >= self.goal

    def line(self) -> str:
        figures = f"{self.product:,.0f} {self.unit} · {self.reference:,.0f} {self.unit} · {self.ratio:.2f}"
        return f"{self.name} · {figures} · {self.goal:.2f} · {self.verdict}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay(Line):
    """Less is better: `product` is the 95th percentile of what was measured, `goal` the bound below which it
    must stay, `reference` what it is set beside. All in seconds."""

    @property
    def ok(self) -> bool:
        return self.product < self.goal

    def line(self) -> str:
        figures = f"{self.product:.2f} s · {self.reference:.2f} s · {self.ratio:.2f}"
        return f"{self.name} · {figures} · {self.goal:.2f} s · {self.verdict}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound(Line):
    """`product` in `unit` must reach the absolute `goal`, or with `at_most` stay below it. `reference` is
    what it is set beside (0: nothing)."""

    unit: str
    at_most: bool = False

    @property
    def ok(self) -> bool:
        return self.product < self.goal if self.at_most else self.product >= self.goal

    def line(self) -> str:
        figures = f"{self.product:,.0f} {self.unit} · {self.reference:,.0f} {self.unit} · {self.ratio:.2f}"
        sign = "<" if self.at_most else "≥"
        return f"{self.name} · {figures} · {sign} {self.goal:,.0f} {self.unit} · {self.verdict}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Most(Line):
    """`product` and `reference` in `unit`; short of the goal when the ratio is above it (infinite: no
    goal)."""

    unit: str

    @property
    def ok(self) -> bool:
        return self.ratio <= self.goal

    def line(self) -> str:
        figures = f"{self.product:,.1f} {self.unit} · {self.reference:,.1f} {self.unit} · {self.ratio:.2f}"
        return f"{self.name} · {figures} · ≤ {self.goal:.2f} · {self.verdict}"


def percentile_95(figures: Sequence[float]) -> float:
    """The smallest figure that 95 of 100 do not exceed."""
    ordered = sorted(figures)
    return ordered[-(-len(ordered) * 95 // 100) - 1]
