"""Failures by hour and by day."""

from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.jobs.failure_trends import day_counts, failure_days, failure_trends, hours, of_hours
from pipeline.results import DAY_COUNTS, FAILURE_DAYS, FAILURE_TRENDS
from tests.pipeline.rows import START, at, frame


def test_an_hour_counts_failures_and_messages(session: SparkSession) -> None:
    protocols = frame(
        session, "protocols",
        {"occurred_at": at(0), "message_key": "m1"},
        {"occurred_at": at(10), "message_key": "m1", "temporary": True, "counted": False},
        {"occurred_at": at(20), "message_key": "m2"},
        {"occurred_at": at(3599)},
        {"occurred_at": at(3600), "message_key": "m1"},
        {"occurred_at": at(30), "message_key": "m1", "server": "srv-2"},
    )  # fmt: skip

    wanted = [
        (START, "orders", "srv-1", "f1", 4, 1, at(0), at(3599), 2),
        (at(3600), "orders", "srv-1", "f1", 1, 0, at(3600), at(3600), 1),
        (START, "orders", "srv-2", "f1", 1, 0, at(30), at(30), 1),
    ]
    assertDataFrameEqual(failure_trends(protocols), session.createDataFrame(wanted, FAILURE_TRENDS))


def test_a_clock_that_is_not_believed_counts_when_it_was_received(session: SparkSession) -> None:
    protocols = frame(
        session, "protocols",
        {"occurred_at": datetime(2099, 1, 1, tzinfo=UTC), "received_at": at(0)},
        {"occurred_at": datetime(1970, 1, 1, tzinfo=UTC), "received_at": at(1)},
        {"occurred_at": at(0) - timedelta(days=89), "received_at": at(2)},
    )  # fmt: skip

    assertDataFrameEqual(
        failure_trends(protocols).select("hour", "count", "first_at"),
        session.createDataFrame(
            [(START, 2, at(0)), (START - timedelta(days=89), 1, START - timedelta(days=89))],
            "hour timestamp, count long, first_at timestamp",
        ),
    )


def test_only_rows_of_the_touched_hours_are_counted_anew(session: SparkSession) -> None:
    new = frame(session, "protocols", {"occurred_at": at(3700)})
    everything = frame(
        session, "protocols", {"occurred_at": at(0)}, {"occurred_at": at(3600)}, {"occurred_at": at(3700)}
    )

    assert [row["hour"] for row in hours(new).collect()] == [at(3600).replace(tzinfo=None)]
    assert sorted(row["number"] for row in of_hours(everything, hours(new)).collect()) == [1, 2]


def test_a_day_may_have_23_or_25_hours(session: SparkSession) -> None:
    """In Berlin the 29th of March 2026 has 23 hours and the 25th of October 25."""
    spring, autumn = datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 10, 24, 22, tzinfo=UTC)
    every = [
        {"occurred_at": start + timedelta(hours=each)} for start in (spring, autumn) for each in range(26)
    ]
    counted = day_counts(frame(session, "protocols", *every), "Europe/Berlin")

    wanted = [
        (date(2026, 3, 29), "orders", "f1", 23, 0), (date(2026, 3, 30), "orders", "f1", 3, 0),
        (date(2026, 10, 25), "orders", "f1", 25, 0), (date(2026, 10, 26), "orders", "f1", 1, 0),
    ]  # fmt: skip
    assertDataFrameEqual(counted, session.createDataFrame(wanted, DAY_COUNTS))


def day(number: int) -> date:
    return date(2026, 3, number)


COUNTS = [
    (day(1), "orders", "f1", 5, 2), (day(2), "orders", "f1", 3, 3), (day(4), "orders", "f1", 1, 1),
    (day(2), "orders", "f2", 9, 1), (day(4), "bills", "f2", 1, 1),
]  # fmt: skip


def test_a_fingerprint_is_new_the_same_gone_or_returned(session: SparkSession) -> None:
    days = failure_days(session.createDataFrame(COUNTS, DAY_COUNTS), None, day(5))

    wanted = [
        (day(1), "orders", "f1", 5, 2, "new", 1),
        (day(2), "orders", "f1", 3, 3, "same", 2),
        (day(2), "orders", "f2", 9, 1, "new", 1),
        (day(3), "orders", "f1", 0, 0, "gone", 2),
        (day(3), "orders", "f2", 0, 0, "gone", 1),
        (day(4), "orders", "f1", 1, 1, "returned", 2),
        (day(4), "bills", "f2", 1, 1, "new", 1),
    ]
    assertDataFrameEqual(days, session.createDataFrame(wanted, FAILURE_DAYS))


def test_days_from_one_on_are_told_as_among_all_days(session: SparkSession) -> None:
    counts = session.createDataFrame(COUNTS, DAY_COUNTS)
    every = failure_days(counts, None, day(6)).collect()

    for number in range(1, 7):
        some = failure_days(counts, day(number), day(6)).collect()
        assert sorted(some) == sorted(row for row in every if row["day"] >= day(number))


def test_nothing_is_gone_on_a_day_that_is_not_over(session: SparkSession) -> None:
    counts = session.createDataFrame(COUNTS, DAY_COUNTS)

    assert failure_days(counts, day(3), day(3)).where("standing = 'gone'").count() == 0
    assert {row["day"] for row in failure_days(counts, day(4), day(6)).collect()} == {day(4), day(5)}
