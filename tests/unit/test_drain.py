"""When a backlog will be gone: beside queues whose end is known."""

import random

import pytest

from agents.provisioning.drain import DrainEstimate, Sample, estimate, kept


class Queue:
    """Looked at every ten seconds, as the broker is."""

    def __init__(self, depth: int, seed: int = 0) -> None:
        self.second, self.depth, self.added = 1_000_000, depth, depth
        self.samples: list[Sample] = []
        self.random = random.Random(seed)

    def passes(self, seconds: int, arrive: float, leave: float) -> None:
        for _ in range(seconds):
            self.second += 1
            come = self._about(arrive)
            self.added += come
            self.depth = max(0, self.depth + come - self._about(leave))
            if self.second % 10 == 0:
                self.samples = kept(self.samples, Sample(self.second, self.added, self.depth))

    def _about(self, rate: float) -> int:
        return sum(self.random.random() < rate / 100 for _ in range(100))

    def seconds_left(self, arrive: float, leave: float) -> int:
        """The truth: it goes on until nothing is left."""
        begin = self.second
        while self.depth:
            self.passes(1, arrive, leave)
        return self.second - begin


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("arrive", "leave"), [(0.0, 5.0), (4.0, 12.0), (20.0, 30.0), (0.3, 2.0)])
def test_the_estimate_is_within_a_quarter_of_the_truth(arrive: float, leave: float, seed: int) -> None:
    queue = Queue(3000, seed)
    queue.passes(130, arrive, leave)
    drain = estimate(queue.samples)
    assert drain is not None and drain.seconds is not None
    assert drain.seconds == pytest.approx(queue.seconds_left(arrive, leave), rel=0.25)


@pytest.mark.parametrize("seed", range(6))
def test_half_a_minute_after_the_producer_has_ended_it_is_within_a_quarter_again(seed: int) -> None:
    queue = Queue(1000, seed)
    queue.passes(300, 20.0, 10.0)
    growing = estimate(queue.samples)
    assert growing is not None and growing.seconds is None
    queue.passes(30, 0.0, 10.0)
    drain = estimate(queue.samples)
    assert drain is not None and drain.seconds is not None
    assert drain.seconds == pytest.approx(queue.seconds_left(0.0, 10.0), rel=0.25)


@pytest.mark.parametrize("seed", range(6))
def test_half_a_minute_after_a_burst_it_is_within_a_quarter(seed: int) -> None:
    queue = Queue(0, seed)
    queue.passes(100, 0.0, 8.0)
    queue.depth += 5000
    queue.added += 5000
    queue.passes(40, 0.0, 8.0)
    drain = estimate(queue.samples)
    assert drain is not None and drain.seconds is not None
    assert drain.seconds == pytest.approx(queue.seconds_left(0.0, 8.0), rel=0.25)


def test_bursts_that_come_again_and_again_are_taken_with_their_pauses() -> None:
    queue = Queue(2000, 1)
    for _ in range(3):
        queue.depth += 600
        queue.added += 600
        queue.passes(50, 0.0, 8.0)
    drain = estimate(queue.samples)
    assert drain is not None and drain.seconds is None, "600 come in 50 s, 400 leave"


def test_a_producer_that_has_just_begun_is_seen_within_half_a_minute() -> None:
    queue = Queue(3000, 2)
    queue.passes(110, 0.0, 10.0)
    queue.passes(30, 20.0, 10.0)
    drain = estimate(queue.samples)
    assert drain is not None and drain.seconds is None
    assert drain.rate_in == pytest.approx(20.0, rel=0.25)


def test_both_rates_are_told_and_how_long_the_work_would_take() -> None:
    samples = [Sample(0, 0, 100), Sample(10, 50, 120), Sample(20, 100, 140)]
    assert estimate(samples) == DrainEstimate(140, 5.0, 3.0, None)
    assert DrainEstimate(140, 5.0, 3.5, None).work_seconds == 40.0
    assert DrainEstimate(140, 5.0, 0.0, None).work_seconds == float("inf")


def test_consumers_that_have_just_stopped_leave_no_rate_of_before() -> None:
    samples = [Sample(10 * n, 100 * n, 1000 - 100 * n) for n in range(5)]
    stopped = [*samples, Sample(50, 500, 700), Sample(60, 600, 800)]
    assert estimate(stopped) == DrainEstimate(800, 10.0, 0.0, None)
    slow = [Sample(0, 0, 50), Sample(10, 0, 49), Sample(20, 0, 49), Sample(30, 0, 49)]
    found = estimate(slow)
    assert found is not None and found.rate_out > 0, "one in a while may not have been due"


def test_too_little_is_no_estimate_and_an_empty_queue_is_drained() -> None:
    assert estimate([]) is estimate([Sample(0, 0, 9), Sample(30, 0, 8)]) is None
    assert estimate([Sample(0, 0, 9), Sample(5, 0, 8), Sample(10, 0, 7)]) is None
    assert estimate([Sample(0, 0, 0), Sample(10, 0, 0), Sample(20, 0, 0)]) == DrainEstimate(0, 0.0, 0.0, 0.0)


def test_what_is_remembered_is_two_minutes_long_and_begins_anew_with_the_broker() -> None:
    samples: list[Sample] = []
    for second in range(0, 300, 10):
        samples = kept(samples, Sample(second, second, 1))
    assert [each.at for each in samples] == list(range(170, 300, 10))
    assert kept(samples, Sample(300, 0, 5)) == [Sample(300, 0, 5)]
    assert kept(samples, Sample(290, 290, 7))[-1].depth == 7, "two that look at once leave one sample"


# -- exactly -------------------------------------------------------------------------------------------------

BEGIN = 1_000_000.0


def looks(*rows: tuple[float, int, int]) -> list[Sample]:
    """(seconds after the first, added, depth)."""
    return [Sample(BEGIN + second, added, depth) for second, added, depth in rows]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([(0, 0, 90), (10, 0, 80), (19.5, 0, 70)], None),
        ([(0, 0, 90), (10, 0, 80), (20, 0, 70)], DrainEstimate(70, 0.0, 1.0, 70.0)),
        ([(0, 0, 90), (10, 0, 85), (20, 0, 80)], DrainEstimate(80, 0.0, 0.5, 160.0)),
        ([(0, 0, 10), (10, 0, 20), (20, 0, 30)], DrainEstimate(30, 0.0, 0.0, None)),
        ([(0, 0, 90), (20, 0, 87), (40, 0, 84)], DrainEstimate(84, 0.0, 0.15, 560.0)),
        ([(0, 0, 94), (20, 0, 88), (40, 0, 88)], DrainEstimate(88, 0.0, 0.0, None)),
        ([(0, 0, 93), (20, 0, 88), (40, 0, 88)], DrainEstimate(88, 0.0, 0.125, 704.0)),
        ([(0, 0, 95), (20, 0, 86), (40, 0, 85)], DrainEstimate(85, 0.0, 0.25, 340.0)),
        ([(0, 0, 90), (10, 0, 0), (20, 0, 0), (30, 0, 0)], DrainEstimate(0, 0.0, 3.0, 0.0)),
        ([(0, 0, 0), (10, 40, 35), (20, 40, 30), (30, 40, 25)], DrainEstimate(25, 0.0, 0.5, 50.0)),
        ([(0, 0, 50), (10, 0, 45), (20, 60, 100)], DrainEstimate(100, 3.0, 0.5, None)),
        (
            [(0, 0, 50), (10, 40, 80), (20, 40, 70), (30, 40, 60), (40, 80, 90), (50, 120, 120)],
            DrainEstimate(120, 2.4, 1.0, None),
        ),
        ([(0, 0, 50), (10, 0, 40), (20, 40, 70), (30, 80, 100)], DrainEstimate(100, 4.0, 1.0, None)),
    ],
    ids=[
        "half a second too little", "enough", "slow", "delayed ones come due", "few leave", "it has stopped",
        "less was due than tells", "one left", "empty by now", "a burst that is over", "one at this moment",
        "two with a pause", "it has begun",
    ],
)  # fmt: skip
def test_exactly(rows: list[tuple[float, int, int]], found: DrainEstimate | None) -> None:
    assert estimate(looks(*rows)) == found


def test_what_is_remembered_exactly() -> None:
    samples = looks((0, 100, 9), (0.5, 300, 9), (60, 400, 9))
    assert kept(samples, Sample(BEGIN + 120, 500, 9)) == [*samples, Sample(BEGIN + 120, 500, 9)]
    assert kept(samples, Sample(BEGIN + 120.2, 500, 9)) == [*samples[1:], Sample(BEGIN + 120.2, 500, 9)]
    assert kept(samples, Sample(BEGIN + 60, 400, 7)) == [*samples[:2], Sample(BEGIN + 60, 400, 7)]
    assert kept(samples, Sample(BEGIN + 70, 399, 7)) == [Sample(BEGIN + 70, 399, 7)]
    assert DrainEstimate(140, 0.0, 0.5, None).work_seconds == 280.0
