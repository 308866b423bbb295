"""A kind of alert whose values a test chooses, and looks at them in steps."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from agents.alerts import kinds
from agents.alerts.deciding import Thresholds
from agents.alerts.evaluating import evaluate_kind
from agents.alerts.kinds import Kind, Observation
from agents.models import Pool, Severity

LIMITS = Thresholds(80.0, 60.0, open_after=timedelta(minutes=2), close_after=timedelta(minutes=3))


@dataclass
class Heat:
    """`values` by subject; None as a value: nobody knows it. `pools` of each observation."""

    kind: Kind
    values: dict[str, float | None] = field(default_factory=dict)
    pools: frozenset[int] = frozenset()
    facts: dict[str, Any] = field(default_factory=dict)

    def look(self, now: datetime) -> int:
        return evaluate_kind(self.kind, now)

    def observe(self, now: datetime, live: frozenset[str]) -> Iterator[Observation]:
        for subject, value in self.values.items():
            yield Observation(subject, value, pools=self.pools, facts={"name": subject, **self.facts})


@contextmanager
def heat(pool: Pool | None = None, limits: Thresholds = LIMITS, **options: Any) -> Iterator[Heat]:
    """Registered as the kind `heat` while it lasts."""
    made: list[Heat] = []
    kind = Kind(
        name="heat",
        label="Heat",
        severity=Severity.BAD,
        limits=limits,
        unit="degrees",
        says=lambda facts, value: f"{facts['name']} is {value:g} degrees hot",
        measure=lambda value: f"{value:g}°",
        what_to_do="Open a window.",
        url=lambda facts: "/servers/",
        observe=lambda now, live: made[0].observe(now, live),
        **options,
    )
    made.append(Heat(kind, pools=frozenset([pool.pk]) if pool else frozenset()))
    before = dict(kinds._kinds)
    kinds.register(kind)
    try:
        yield made[0]
    finally:
        kinds._kinds.clear()
        kinds._kinds.update(before)
