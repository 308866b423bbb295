"""What retention is going to delete: a projection by days."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from pipeline.jobs.retention_plan import Facts, projected, retention_plan
from pipeline.results import DAY_COUNTS, SETTINGS
from tests.pipeline.rows import frame

NOW = datetime(2026, 3, 31, 2, 30, tzinfo=UTC)
TODAY = NOW.date()


def days_ago(number: int) -> datetime:
    return NOW - timedelta(days=number)


def plan(
    session: SparkSession,
    activations: list[dict[str, Any]],
    facts: Facts,
    keys: tuple[str, ...] = ("orders",),
) -> Any:
    """100 failures on each of the 40 days before today; kept for 10 days before an activation with an
    error."""
    counts = [(days_ago(number).date(), "orders", "f1", 100, 1) for number in range(1, 41)]
    settings = [(key, 10, 10, "ANY", True, False) for key in keys]
    goes = projected(
        session.createDataFrame(counts, DAY_COUNTS),
        frame(session, "activations", *activations),
        session.createDataFrame(settings or [("other", 1, 1, "ANY", True, False)], SETTINGS),
        facts,
    ).localCheckpoint()
    return {(row["day"], row["setting_key"]): row for row in retention_plan(goes, facts).collect()}


def going(rows: Any, key: str = "orders") -> list[tuple[date, int]]:
    return sorted((day, row["rows_going"]) for (day, of), row in rows.items() if of == key)


def test_after_an_activation_that_finished_well_everything_goes_and_then_what_each_day_brings(
    session: SparkSession,
) -> None:
    ended = {"id": "a1", "started_at": days_ago(2), "ended_at": days_ago(1), "well": True}
    rows = plan(session, [ended], Facts(NOW, archive_bytes=4000, database_bytes=8000))

    assert going(rows) == [(TODAY, 4000)] + [(TODAY + timedelta(days=each), 100) for each in range(1, 30)]
    whole = rows[TODAY, ""]
    assert (whole["rows_going"], whole["bytes_going"], whole["archive_bytes"], whole["database_bytes"]) == (
        4000,
        8000,
        4100,
        200,
    )
    assert rows[TODAY + timedelta(days=29), ""]["archive_bytes"] == 7000
    assert rows[TODAY, "orders"]["archive_bytes"] is None


def test_after_one_with_an_error_the_last_n_days_stay(session: SparkSession) -> None:
    ended = {"id": "a1", "started_at": days_ago(2), "ended_at": days_ago(1), "well": False}
    rows = plan(session, [ended], Facts(NOW))

    assert going(rows)[:2] == [(TODAY, 3000), (TODAY + timedelta(days=1), 100)]


def test_what_the_last_run_deleted_does_not_go_again(session: SparkSession) -> None:
    ended = {"id": "a1", "started_at": days_ago(2), "ended_at": days_ago(1), "well": False}
    rows = plan(session, [ended], Facts(NOW, last_run_at=days_ago(1)))

    assert going(rows)[0] == (TODAY, 100)


def test_a_setting_that_went_quiet_stays_as_it_is(session: SparkSession) -> None:
    """It ended well 20 days ago: what was before that goes, and nothing more."""
    ended = {"id": "a1", "started_at": days_ago(21), "ended_at": days_ago(20), "well": True}

    assert going(plan(session, [ended], Facts(NOW))) == [(TODAY, 2000)]


def test_without_an_activation_only_the_age_counts(session: SparkSession) -> None:
    assert going(plan(session, [], Facts(NOW))) == []
    aged = going(plan(session, [], Facts(NOW, silent_days=39)))
    assert aged[:2] == [(TODAY, 100), (TODAY + timedelta(days=1), 100)]
    ended = {"id": "a1", "started_at": days_ago(2), "ended_at": days_ago(1), "well": True}
    assert going(plan(session, [ended], Facts(NOW, silent_days=39), keys=())) == aged  # the setting is gone


def test_days_are_of_the_zone(session: SparkSession) -> None:
    """At 02:30 UTC it is still yesterday in New York."""
    rows = plan(session, [], Facts(NOW, zone="America/New_York"))

    assert min(day for day, _key in rows) == TODAY - timedelta(days=1)
