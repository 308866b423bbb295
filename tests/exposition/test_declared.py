"""What a scrape answers of declared metrics."""

from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exposition.declared import Declared, Distribution, Kind, Samples, Tallies, counter, gauge, text

NOW = datetime(2026, 11, 27, tzinfo=UTC)
SECONDS = Declared("x_seconds", Kind.HISTOGRAM, "Durations.", ("task",), (0.1, 1.0))
DECLARED = (gauge("x_up", "Up.", "server"), counter("x_done_total", "Done."), SECONDS)


def lines(found: bytes) -> list[str]:
    return [line for line in found.decode().splitlines() if not line.startswith("#")]


def test_metrics_come_in_the_order_of_their_declaration_and_without_samples_not_at_all() -> None:
    samples = Samples(DECLARED)
    samples.add("x_done_total", 3)
    samples.add("x_up", 1, "srv-2")
    samples.add("x_up", 0, "srv-1")
    assert lines(text(DECLARED, samples.found, NOW)) == [
        'x_up{server="srv-2"} 1.0',
        'x_up{server="srv-1"} 0.0',
        "x_done_total 3.0",
    ]


def test_an_instant_is_an_age_and_one_in_the_future_is_0() -> None:
    samples = Samples(DECLARED)
    samples.add("x_up", NOW - timedelta(seconds=90), "a")
    samples.add("x_up", NOW + timedelta(seconds=90), "b")
    assert lines(text(DECLARED, samples.found, NOW)) == ['x_up{server="a"} 90.0', 'x_up{server="b"} 0.0']


def test_a_value_of_a_label_is_escaped() -> None:
    samples = Samples(DECLARED)
    samples.add("x_up", 1, 'a"b\\c\nd')
    (family,) = text_string_to_metric_families(text(DECLARED, samples.found, NOW).decode())
    assert family.samples[0].labels == {"server": 'a"b\\c\nd'}


@pytest.mark.parametrize(("name", "labels"), [("x_up", ()), ("x_up", ("a", "b")), ("x_done_total", ("a",))])
def test_other_labels_than_declared_are_a_mistake(name: str, labels: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=name):
        Samples(DECLARED).add(name, 1, *labels)


def test_a_metric_that_nobody_declared_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Samples(DECLARED).add("x_other", 1)


def test_durations_are_counted_in_their_bucket_and_in_all_above() -> None:
    tallies = Tallies(DECLARED)
    for seconds in (0.1, 0.5, 5.0, 0.0625):
        tallies.observe("x_seconds", seconds, "fold")
    tallies.count("x_done_total")
    tallies.count("x_done_total", by=2)
    assert lines(text(DECLARED, tallies.samples(), NOW)) == [
        "x_done_total 3.0",
        'x_seconds_bucket{le="0.1",task="fold"} 2.0',
        'x_seconds_bucket{le="1.0",task="fold"} 3.0',
        'x_seconds_bucket{le="+Inf",task="fold"} 4.0',
        'x_seconds_count{task="fold"} 4.0',
        'x_seconds_sum{task="fold"} 5.6625',
    ]
    assert tallies.samples()[1][2] == Distribution((2, 1), 1, 5.6625)
