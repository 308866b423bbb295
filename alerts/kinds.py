"""Kinds of alerts, what a source observes of one, and the bounds in force."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils.functional import Promise

from alerts.models import AlertRule
from alerts.models.alert import Severity
from alerts.rules import AlertStep, Thresholds

Text = str | Promise
# The subject of the alert that stands for all causes of its kind that got none of their own.
MORE = ""
EVERY_STEP = frozenset({AlertStep.OPENED, AlertStep.REPEATED, AlertStep.CLOSED})


@dataclass(frozen=True, slots=True)
class Observation:
    """Holds what a source found of one cause. `value` in the unit of its kind; None: nobody knows it now.
    `setting`, `server` and `pools` are keys of rows: who is told; none of them: everybody. `facts` is JSON,
    for the texts."""

    subject: str
    value: float | None
    setting: int | None = None
    server: int | None = None
    pools: frozenset[int] = frozenset()
    facts: Mapping[str, Any] = field(default_factory=dict)


# What a kind observes at an instant. The subjects are those of its alerts that are open: what it does not
# tell of them it says with that: their cause has gone. In few bounded queries, never by counting a table; the
# gravest first.
Observe = Callable[[datetime, frozenset[str]], Iterable[Observation]]


@dataclass(frozen=True, slots=True)
class AlertKind:
    """`says(facts, value)` is one sentence on what is wrong and where, `measure(value)` the value with its
    unit, empty where it says nothing, `url(facts)` the page of what it is about; all in the reader's
    language, none with a body or a secret. `notified_steps`: the steps that are told by e-mail and webhook.
    `head` and `advice`: label and what to do of one alert, where they depend on what it is about."""

    name: str
    label: Text
    severity: Severity
    limits: Thresholds
    unit: Text
    says: Callable[[Mapping[str, Any], float], str]
    measure: Callable[[float], str]
    what_to_do: Text
    url: Callable[[Mapping[str, Any]], str]
    observe: Observe
    notified_steps: frozenset[AlertStep] = EVERY_STEP
    head: Callable[[Mapping[str, Any], float], Text] | None = None
    advice: Callable[[Mapping[str, Any]], Text] | None = None


# -- thresholds in force: built in, of the site, of the pools ------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rules:
    """The thresholds of one kind. `of_pool` holds only pools with a rule of their own; None: not watched."""

    of_site: Thresholds | None
    of_pool: Mapping[int, Thresholds | None]

    def of(self, pools: Iterable[int]) -> Thresholds | None:
        """Returns those of the pool that opens first. None: nobody watches it."""
        found = [self.of_pool.get(pool, self.of_site) for pool in pools] or [self.of_site]
        return min((each for each in found if each is not None), key=lambda each: each.upper, default=None)


def rules_of(kind: AlertKind) -> Rules:
    """One query."""
    return rules_from(kind, list(AlertRule.objects.filter(kind=kind.name)))


def rules_from(kind: AlertKind, rows: Sequence[AlertRule]) -> Rules:
    """`rows`: those of this kind."""
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
