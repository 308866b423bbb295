"""The bounds in force for a cause: the built-in ones, those of the site, and those of its pools."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from agents.alerts.deciding import Thresholds
from agents.alerts.kinds import Kind
from agents.models import AlertRule


@dataclass(frozen=True, slots=True)
class Rules:
    """Of one kind. `of_pool` holds only pools with a rule of their own; None: not watched."""

    of_site: Thresholds | None
    of_pool: Mapping[int, Thresholds | None]

    def of(self, pools: Iterable[int]) -> Thresholds | None:
        """Of several pools the one that opens first decides. None: nobody watches it."""
        found = [self.of_pool.get(pool, self.of_site) for pool in pools] or [self.of_site]
        return min((each for each in found if each is not None), key=lambda each: each.upper, default=None)


def rules_of(kind: Kind) -> Rules:
    """One query."""
    rows = list(AlertRule.objects.filter(kind=kind.name))
    site = next((row for row in rows if row.pool_id is None), None)
    limits = _with(kind.limits, site) if site else kind.limits
    of_pool = {
        row.pool_id: _with(limits, row) if row.watched else None for row in rows if row.pool_id is not None
    }
    return Rules(None if site and not site.watched else limits, of_pool)


def _with(limits: Thresholds, row: AlertRule) -> Thresholds:
    """`row` over `limits`. One bound alone takes the other one with it where they would cross."""
    upper = limits.upper if row.upper is None else row.upper
    lower = min(limits.lower, upper) if row.lower is None else min(row.lower, upper)
    return replace(
        limits,
        upper=upper,
        lower=lower,
        open_after=_seconds(row.open_after_seconds, limits.open_after),
        close_after=_seconds(row.close_after_seconds, limits.close_after),
    )


def _seconds(chosen: int | None, default: timedelta) -> timedelta:
    return default if chosen is None else timedelta(seconds=chosen)
