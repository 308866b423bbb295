"""A kind of alert whose values a test chooses, and looks at them in steps."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from agents.models import Pool
from alerts.evaluation import evaluate_kind
from alerts.kinds import AlertKind, Observation
from alerts.models import Severity
from alerts.rules import Thresholds
from alerts.sources import KINDS

LIMITS = Thresholds(80.0, 60.0, open_after=timedelta(minutes=2), close_after=timedelta(minutes=3))


@dataclass
class Heat:
    """`values` by subject; None as a value: nobody knows it. `pools` of each observation."""

    kind: AlertKind
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
    """It is the kind `heat` while it lasts."""
    made: list[Heat] = []
    kind = AlertKind(
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
    KINDS[kind.name] = kind
    try:
        yield made[0]
    finally:
        del KINDS[kind.name]
