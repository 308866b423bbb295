"""Goals of settings: what is late, the budget, and when it burns too fast."""

from datetime import timedelta

import pytest

from contract.histogram import bucket
from metrics.goals import FAST, SLOW, Handled, budget_left, burn_rate, burning, handled

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
ALL = {window for each in (*FAST, *SLOW) for window in (each.long, each.short)}


def found(late: float = 0.0, total: int = 1000, **windows: float) -> dict[timedelta, Handled]:
    """The part that is late in every window, but in those named by their minutes, as m5."""
    parts = {timedelta(minutes=int(name[1:])): part for name, part in windows.items()}
    return {window: Handled(total, total * parts.get(window, late)) for window in ALL}


def test_late_is_what_took_longer_than_the_goal() -> None:
    critical = {bucket(1.0): 90, bucket(100.0): 6, bucket(1000.0): 4}
    assert handled(critical, 300.0) == Handled(100, 4.0)
    assert handled(critical, 50.0) == Handled(100, 10.0)
    assert handled({}, 300.0) == Handled()


def test_the_rate_is_what_is_late_beside_what_may_be() -> None:
    assert burn_rate(Handled(1000, 10.0), 99.0) == pytest.approx(1.0)
    assert burn_rate(Handled(1000, 144.0), 99.0) == pytest.approx(14.4)
    assert burn_rate(Handled(1000, 144.0), 99.9) == pytest.approx(144.0)
    assert burn_rate(Handled(), 99.0) == 0.0


def test_the_budget_is_whole_used_up_or_overdrawn_and_of_nothing_unknown() -> None:
    assert budget_left(Handled(1000, 0.0), 99.0) == 1.0
    assert budget_left(Handled(1000, 10.0), 99.0) == pytest.approx(0.0)
    assert budget_left(Handled(1000, 25.0), 99.0) == pytest.approx(-1.5)
    assert budget_left(Handled(), 99.0) is None


@pytest.mark.parametrize(
    ("windows", "parts", "alarming"),
    [
        (FAST, found(0.15), True),
        (FAST, found(0.14, m360=0.05), False),
        (FAST, found(0.0, m60=0.15, m5=0.15), True),
        (FAST, found(0.0, m60=0.15, m5=0.0), False),
        (FAST, found(0.0, m60=0.01, m5=0.5), False),
        (FAST, found(0.0, m360=0.061, m30=0.061), True),
        (FAST, found(0.0, m360=0.059, m30=0.5), False),
        (SLOW, found(0.011), True),
        (SLOW, found(0.009), False),
        (SLOW, found(0.5, m360=0.0), False),
        (FAST, found(0.5, total=8), False),
        (FAST, found(), False),
    ],
)
def test_it_alarms_where_both_windows_burn_at_the_factor(
    windows: object, parts: dict[timedelta, Handled], alarming: bool
) -> None:
    value, _window = burning(windows, parts, 99.0)  # type: ignore[arg-type]
    assert (value >= 1.0) is alarming


def test_the_window_that_burns_most_is_told() -> None:
    assert burning(FAST, found(0.0, m360=0.3, m30=0.3), 99.0)[1].long == 6 * HOUR
    assert burning(FAST, found(0.0, m60=0.3, m5=0.3), 99.0)[1].long == HOUR


@pytest.mark.parametrize("percent", [50.0, 80.0, 90.0])
def test_a_low_goal_alarms_where_nearly_everything_is_late(percent: float) -> None:
    assert burning(FAST, found(0.95), percent)[0] >= 1.0
    assert burning(FAST, found(1 - percent / 100), percent)[0] < 1.0


def test_the_windows_and_factors_use_up_the_shares_of_the_budget_that_the_workbook_names() -> None:
    shares = [each.factor * (each.long / timedelta(days=30)) for each in (*FAST, *SLOW)]
    assert shares == pytest.approx([0.02, 0.05, 0.10])
    assert all(each.short * 12 == each.long for each in (*FAST, *SLOW))
