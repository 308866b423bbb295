"""Goals of settings: "99 % of the messages handled within 5 minutes of their sending", what is left of their
budget, and how fast it burns.

The terms and the figures are those of the Google SRE Workbook, chapter 5, "Alerting on SLOs", section
"Multiwindow, Multi-Burn-Rate Alerts" (https://sre.google/workbook/alerting-on-slos/). The budget is the part
of messages that may be late in PERIOD. The burn rate is late / all / (1 - goal): at 1 the budget lasts just
as long as the period. It is alarming where it is at or above a factor over a long window, and over a twelfth
of that too, so that an alert ends soon after the cause: 14.4 over an hour (2 % of the budget), 6 over six
hours (5 %), 1 over three days (10 %).

A goal below 93 % cannot burn 14.4 times as fast: there the factor is that of 90 % late messages.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.models import LaunchSetting
from contract.histogram import within
from metrics.queries import scope_of, totals

PERIOD = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class BurnWindow:
    long: timedelta
    short: timedelta
    factor: float


FAST = (
    BurnWindow(timedelta(hours=1), timedelta(minutes=5), 14.4),
    BurnWindow(timedelta(hours=6), timedelta(minutes=30), 6.0),
)
SLOW = (BurnWindow(timedelta(days=3), timedelta(hours=6), 1.0),)
# Of few messages one that is late is chance, not a rate.
LEAST_LATE = 5.0
# What a goal so low that it never burns at the factor alarms at.
MOST_LATE = 0.9


@dataclass(frozen=True, slots=True)
class Handled:
    """Messages of a window with a time of sending; `late` is a part of a message where a bucket of the
    histogram is cut."""

    total: int = 0
    late: float = 0.0


def handled(critical: Mapping[int, int], seconds: float) -> Handled:
    total = sum(critical.values())
    return Handled(total, max(0.0, total - within(critical, seconds)))


def burn_rate(of: Handled, percent: float) -> float:
    """`percent`: that of the goal."""
    return of.late / of.total / (1 - percent / 100) if of.total else 0.0


def budget_left(of: Handled, percent: float) -> float | None:
    """Returns the part of the budget that is left, 1 at most; below 0 the goal is missed. None: there were no
    messages."""
    return 1.0 - burn_rate(of, percent) if of.total else None


def burning(
    windows: Sequence[BurnWindow], found: Mapping[timedelta, Handled], percent: float
) -> tuple[float, BurnWindow]:
    """Returns the highest burn rate as a multiple of the factor of its window: at 1 it is alarming. And the
    window to tell of: the shortest that is alarming, else the one that burns most."""
    rates = [(_burning(window, found, percent), window) for window in windows]
    highest, of_highest = max(rates, key=lambda pair: pair[0])
    return highest, next((window for rate, window in rates if rate >= 1.0), of_highest)


def _burning(window: BurnWindow, found: Mapping[timedelta, Handled], percent: float) -> float:
    long, short = found[window.long], found[window.short]
    if long.late < LEAST_LATE:
        return 0.0
    factor = min(window.factor, MOST_LATE / (1 - percent / 100))
    return min(burn_rate(long, percent), burn_rate(short, percent)) / factor


def settings_with_goals() -> Collection[LaunchSetting]:
    rows = LaunchSetting.objects.filter(goal_seconds__gt=0.0, destination__isnull=False)
    return list(rows.only("key", "pool", "goal_seconds", "goal_percent", "enabled"))


def handled_within(
    settings: Collection[LaunchSetting], lengths: Collection[timedelta], now: datetime
) -> dict[int, dict[timedelta, Handled]]:
    """Returns by setting and by length, of the time up to now. One question for each length."""
    found: dict[int, dict[timedelta, Handled]] = {each.pk: {} for each in settings}
    scopes = {scope_of(each.pk): each for each in settings}
    for length in lengths:
        for scope, figures in totals(list(scopes), now - length, now, now).items():
            setting = scopes[scope]
            found[setting.pk][length] = handled(figures.critical, setting.goal_seconds)
    return found
