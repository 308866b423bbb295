"""Benches: the product beside a bare reference on the same work. `python -m bench NAME`; goals are in the issues."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of a bench. `product` and `reference` in `unit`; short of the goal when the ratio is below it."""

    name: str
    product: float
    reference: float
    goal: float
    unit: str
    peak_memory_mb: float = 0.0
    runs: list[dict[str, float]] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return self.product / self.reference if self.reference else 0.0

    @property
    def ok(self) -> bool:
        return self.ratio >= self.goal

    def line(self) -> str:
        verdict = "ok" if self.ok else "short"
        figures = f"{self.product:,.0f} {self.unit} · {self.reference:,.0f} {self.unit} · {self.ratio:.2f}"
        return f"{self.name} · {figures} · {self.goal:.2f} · {verdict}"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": round(self.ratio, 3), "ok": self.ok}


@dataclass(frozen=True, slots=True)
class Delay:
    """One line of a bench where less is better: `product` is the 95th percentile of what was measured, `goal` the
    bound below which it must stay, `reference` what it is set beside. All in seconds."""

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
    def ok(self) -> bool:
        return self.product < self.goal

    def line(self) -> str:
        figures = f"{self.product:.2f} s · {self.reference:.2f} s · {self.ratio:.2f}"
        return f"{self.name} · {figures} · {self.goal:.2f} s · {'ok' if self.ok else 'short'}"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": round(self.ratio, 3), "ok": self.ok}


def percentile_95(figures: Sequence[float]) -> float:
    """The smallest figure that 95 of 100 do not exceed."""
    ordered = sorted(figures)
    return ordered[-(-len(ordered) * 95 // 100) - 1]
