"""How long a job waits for the consumers of a setting that was switched off."""

from datetime import UTC, datetime, timedelta

import pytest

from dlq.replay.worker.pacer import WAITS_FOR, Gate, GateReading, decide

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("consumers", "since", "gate"),
    [
        (0, None, Gate.OPEN),
        (0, NOW - WAITS_FOR * 2, Gate.OPEN),
        (1, None, Gate.WAIT),
        (1, NOW - WAITS_FOR + timedelta(seconds=1), Gate.WAIT),
        (3, NOW - WAITS_FOR, Gate.PAUSE),
    ],
)
def test_it_waits_a_minute_and_then_pauses(consumers: int, since: datetime | None, gate: Gate) -> None:
    assert decide(consumers, since, NOW) is gate


@pytest.mark.parametrize(
    ("reading", "why"),
    [(GateReading(Gate.WAIT, consumers=2), "stopping"), (GateReading(Gate.WAIT, blocked=3), "blocked")],
)
def test_what_it_waits_for_is_said(reading: GateReading, why: str) -> None:
    assert reading.why == why
