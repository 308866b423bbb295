"""Benches: the product beside a bare reference on the same work. `python -m bench NAME`; goals are in the issues."""

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
