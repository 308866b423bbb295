"""/metrics of a KMA: counters begin at 0 with the process and never go back; the rest is what the MA is
told."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from contract.histogram import BUCKETS, bucket
from contract.messages import BlockedMessage, RunReport, SpoolReport
from contract.records import BreakerCounts, RunState
from kma.host import metrics
from kma.host.metrics import BOUNDS, OF_KMA, HostMetrics, Told
from kma.run.minutes import Durations
from kma.run.thread import Children
from kma.spool.journal import Totals
from kma.spool.ledger import run_key

NOW = datetime(2026, 11, 27, tzinfo=UTC)
RUN = RunReport(UUID(int=1), 1, "orders", RunState.RUNNING)
KEY = run_key(RUN.activation, RUN.epoch)
Series = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


def told(*runs: RunReport, at: datetime = NOW) -> Told:
    children = {run_key(run.activation, run.epoch): Children(2, 300) for run in runs}
    return Told(at, runs, children, SpoolReport(), (), ma_answers=True, answered_at=at)


def series(found: HostMetrics, now: datetime = NOW) -> Series:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(found.text(now).decode())
        for sample in family.samples
    }


def value(found: HostMetrics, name: str, **labels: str) -> float | None:
    return series(found).get((name, tuple(sorted(labels.items()))))


def handled(found: HostMetrics, result: str = "succeeded", setting: str = "orders") -> float | None:
    return value(found, "kma_handlings_total", setting=setting, result=result)


SECONDS = st.floats(0, 100_000) | st.sampled_from(BOUNDS)


def durations(processing: Sequence[float], critical: Sequence[float]) -> Durations:
    def numbers(seconds: Sequence[float]) -> list[int]:
        found = [0] * BUCKETS
        for each in seconds:
            found[bucket(each)] += 1
        return found

    return Durations("orders", numbers(processing), numbers(critical), sum(processing))


def test_it_says_everything_that_is_declared() -> None:
    found = HostMetrics("srv-1", {}, {})
    run = replace(RUN, handled=7, failed=2, temporary=1, in_progress=3, connected=True)
    run = replace(run, counts=BreakerCounts(any=2), blocked=BlockedMessage("k", 1))
    spool = SpoolReport(rows=4, bytes=5, limit_bytes=6, full=True, oldest_at=NOW - timedelta(seconds=30))
    found.measured(durations([0.5, 2.0], [3.0]))
    children = {KEY: Children(2, 300)}
    found.note(Told(NOW, (run,), children, spool, ("a", "a", "b"), ma_answers=False, answered_at=NOW))
    there = series(found, NOW + timedelta(seconds=10))
    ends = ("_bucket", "_count", "_sum")
    assert {name for name, _ in there} == {
        f"{each.name}{end}" for each in OF_KMA for end in (ends if each.buckets else ("",))
    }
    assert value(found, "kma_problems", code="a") == 2
    assert value(found, "kma_children", setting="orders") == 2
    assert value(found, "kma_children_bytes", setting="orders") == 300
    assert value(found, "kma_consecutive_failures", setting="orders") == 2
    assert there["kma_spool_oldest_age_seconds", ()] == 40
    assert there["kma_told_age_seconds", ()] == 10
    assert (there["kma_ma_up", ()], there["kma_spool_full", ()]) == (0, 1)
    assert value(found, "kma_runs", state="running") == 1


def test_before_the_host_has_told_anything_only_its_version_is_known() -> None:
    assert {name for name, _ in series(HostMetrics("srv-1", {}, {}))} == {"kma_build_info"}


def test_what_an_earlier_process_has_shown_is_not_shown_again() -> None:
    found = HostMetrics("srv-1", {KEY: Totals(handled=100, failed=5, restarts=2)}, {})
    found.note(told(replace(RUN, handled=103, failed=5, restarts=3, repeats=8)))
    assert (handled(found), handled(found, "failed")) == (3, 0)
    assert value(found, "kma_child_restarts_total", setting="orders") == 1
    assert value(found, "kma_repeats_total", setting="orders") == 0, (
        "the disk does not say how many there were"
    )
    found.note(told(replace(RUN, handled=103, failed=5, restarts=3, repeats=9)))
    assert value(found, "kma_repeats_total", setting="orders") == 1


def test_attempts_that_died_with_an_earlier_process_have_failed_and_are_counted_once() -> None:
    found = HostMetrics("srv-1", {KEY: Totals(handled=100, failed=5)}, {"orders": 3})
    found.note(told(replace(RUN, handled=100, failed=5)))
    assert (handled(found), handled(found, "failed")) == (0, 3)
    found.note(told(replace(RUN, handled=101, failed=7)))
    assert (handled(found), handled(found, "failed")) == (1, 5)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.lists(SECONDS, max_size=5), st.lists(SECONDS, max_size=5)), max_size=5))
def test_durations_are_exact_at_each_bound_and_their_sums_nearly(
    looks: list[tuple[list[float], list[float]]],
) -> None:
    found = HostMetrics("srv-1", {}, {})
    for processing, critical in looks:
        found.measured(durations(processing, critical))
    found.note(told(RUN))
    there = series(found)
    for which, name in enumerate(("kma_processing_seconds", "kma_critical_seconds")):
        seconds = [each for look in looks for each in look[which]]
        count = there.get((f"{name}_count", (("setting", "orders"),)))
        assert count == (len(seconds) if looks else None)
        for limit in BOUNDS if looks else ():
            within = there[f"{name}_bucket", (("le", repr(limit)), ("setting", "orders"))]
            assert within == sum(each <= limit for each in seconds)
        if looks:
            total = there[f"{name}_sum", (("setting", "orders"),)]
            assert total == pytest.approx(sum(seconds), rel=0.1, abs=0.001 * len(seconds))


def test_the_bounds_of_durations_stay_what_they_are() -> None:
    assert BOUNDS[:6] == (0.001, 0.004, 0.016, 0.064, 0.256, 1.024)
    assert (len(BOUNDS), BOUNDS[-1]) == (14, 67108.864)


def test_what_a_new_run_did_before_it_was_first_looked_at_counts() -> None:
    found = HostMetrics("srv-1", {}, {})
    found.note(told(replace(RUN, handled=3, repeats=1)))
    assert (handled(found), value(found, "kma_repeats_total", setting="orders")) == (3, 1)


def test_a_run_that_ended_stays_in_the_counter_of_its_setting() -> None:
    found = HostMetrics("srv-1", {}, {})
    found.note(told(replace(RUN, handled=3)))
    found.note(told(replace(RUN, handled=3), replace(RUN, epoch=2, handled=2)))
    found.note(told(replace(RUN, epoch=2, handled=4)))
    assert handled(found) == 7
    assert value(found, "kma_in_progress", setting="orders") == 0
    found.note(told())
    assert handled(found) == 7
    assert value(found, "kma_in_progress", setting="orders") is None, "it says nothing of now"


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 50), max_size=3), max_size=20))
def test_a_counter_never_goes_back_and_counts_what_the_runs_reached(looks: list[list[int]]) -> None:
    """Each look tells of runs 0, 1, 2: their totals, which may be those of the disk for a moment."""
    found, reached, before = HostMetrics("srv-1", {}, {}), [0, 0, 0], 0.0
    for look in looks:
        found.note(told(*(replace(RUN, epoch=number, handled=total) for number, total in enumerate(look))))
        for number, total in enumerate(look):
            reached[number] = max(reached[number], total)
        now = handled(found) or 0.0
        assert now >= before
        before = now
    assert before == sum(reached)


def test_of_too_many_settings_the_first_are_shown_and_the_rest_is_counted() -> None:
    found = HostMetrics("srv-1", {}, {})
    runs = [replace(RUN, activation=UUID(int=n), setting=f"s-{n:05}", handled=1) for n in range(10_000)]
    found.note(told(*runs))
    there = series(found)
    assert value(found, "kma_label_values_left_out", label="setting") == 10_000 - metrics.MOST_SETTINGS
    assert sum(name == "kma_connected" for name, _ in there) == metrics.MOST_SETTINGS
    assert sum(name == "kma_handlings_total" for name, _ in there) == 3 * metrics.MOST_SETTINGS


def test_runs_that_are_long_gone_are_forgotten_and_not_those_that_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "MOST_RUNS", 3)
    found = HostMetrics("srv-1", {}, {})
    for epoch in range(1, 9):
        found.note(told(replace(RUN, handled=epoch), replace(RUN, epoch=100 + epoch, handled=1)))
    assert handled(found) == 8 + 8
    assert len(found._seen) == 3
