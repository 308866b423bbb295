"""Blocks in the archive: written once, read by their manifests, verified against the database."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.archive.files import ArchiveError
from pipeline.archive.reading import Archive
from pipeline.archive.stages import archive_stage, verify_block
from pipeline.archive.writing import archive_block
from tests.pipeline.rows_in_sqlite import NOON, Database, block, minutes


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "db.sqlite3")


@pytest.fixture
def archive(session: SparkSession, archive_url: str) -> Archive:
    return Archive(session, archive_url)


def ids(archive: Archive, kind: str = "protocols", **how: object) -> list[object]:
    archive.forget()
    return sorted(row["id"] for row in archive.rows(kind, **how).collect())  # type: ignore[arg-type]


def test_an_archive_with_nothing_in_it_has_rows_of_the_right_columns(archive: Archive) -> None:
    rows = archive.rows("protocols")

    assert (rows.count(), rows.columns[0], rows.columns[-1]) == (0, "id", "durable")


def test_a_row_is_the_same_in_the_archive(
    session: SparkSession, database: Database, archive: Archive
) -> None:
    at = datetime(2026, 11, 22, 12, 0, 1, 234567, tzinfo=UTC)
    database.add_protocol(
        "11111111-2222-3333-4444-555555555555", at, occurred_at=datetime(1970, 1, 1, tzinfo=UTC),
        temporary=True,
        exception_text="Ошибка: «нет»\n\t'\"", duration_seconds=0.25, number=2**40,
        properties='{"a": [1, null]}',
    )  # fmt: skip
    manifest = archive_block(session, block(1, NOON, NOON + minutes(10)), database.source, archive)
    row = archive.rows("protocols").selectExpr("*", "unix_micros(received_at) AS micros").collect()[0]

    assert row["id"] == "11111111-2222-3333-4444-555555555555"
    assert row["exception_text"] == "Ошибка: «нет»\n\t'\""
    assert (row["temporary"], row["counted"], row["number"], row["duration_seconds"]) == (
        True,
        None,
        2**40,
        0.25,
    )
    assert row["micros"] == int(at.timestamp()) * 1_000_000 + 234567
    assert row["properties"] == '{"a": [1, null]}'
    assert (manifest.rows, manifest.occurred_min) == (1, "1970-01-01T00:00:00.000000+00:00")
    assert [file.rows for file in manifest.files] == [1]


def test_a_range_is_half_open_to_the_microsecond(
    session: SparkSession, database: Database, archive: Archive
) -> None:
    for name, at in (
        ("before", NOON - timedelta(microseconds=1)), ("first", NOON), ("second",
        NOON + timedelta(microseconds=1)),
        ("end", NOON + minutes(1) - timedelta(microseconds=1)), ("last", NOON + minutes(1)),
    ):  # fmt: skip
        database.add_protocol(name, at)
    archive_block(session, block(1, NOON, NOON + minutes(1)), database.source, archive)

    assert ids(archive) == ["end", "first", "second"]


def test_partitions_of_a_block_hold_each_row_once(
    session: SparkSession, database: Database, archive: Archive
) -> None:
    for number in range(40):
        database.add_protocol(f"p{number:02d}", NOON + minutes(number))
    splits = [f"2026-11-22T12:{minute:02d}:00.000000+00:00" for minute in range(2, 40, 2)]
    manifest = archive_block(
        session, block(1, NOON, NOON + minutes(40), splits=splits), database.source, archive
    )

    assert ids(archive) == [f"p{number:02d}" for number in range(40)]
    assert 2 <= len(manifest.files) <= 8


def test_a_block_that_was_written_is_not_written_again(
    session: SparkSession, database: Database, archive: Archive
) -> None:
    database.add_protocol("a", NOON)
    wanted = block(1, NOON, NOON + minutes(10))
    first = archive_block(session, wanted, database.source, archive)
    database.add_protocol("b", NOON + minutes(1))

    assert archive_block(session, wanted, database.source, archive) == first
    assert ids(archive) == ["a"]


def test_readers_take_files_by_when_rows_occurred(
    session: SparkSession, database: Database, archive: Archive
) -> None:
    """A KMA that was away for a week: its rows are in the block of their receipt, and found by their
    occurrence."""
    week_ago = NOON - timedelta(days=7)
    database.add_protocol("now", NOON)
    database.add_protocol("late", NOON + minutes(20), occurred_at=week_ago)
    source = database.source
    archive_block(session, block(1, NOON, NOON + minutes(10)), source, archive)
    manifest = archive_block(session, block(2, NOON + minutes(10), NOON + minutes(30)), source, archive)

    assert "/day=2026-11-22/" in manifest.folder
    window = (week_ago - minutes(1), week_ago + minutes(1))
    assert ids(archive, occurred=window) == ["late"]
    assert len(archive.rows("protocols", occurred=window).inputFiles()) == 1
    assert ids(archive, occurred=(NOON - minutes(1), NOON + minutes(1))) == ["now"]
    assert ids(archive, blocks=[2]) == ["late"]
    assert ids(archive, blocks=[]) == []


def test_a_row_that_changed_is_read_as_it_was_archived_last(
    session: SparkSession, database: Database, archive: Archive
) -> None:
    database.add(
        "activations", id="a1", state="succeeded", well=True, started_at=NOON, ended_at=NOON + minutes(1)
    )
    archive_block(session, block(1, NOON, NOON + minutes(5), "activations"), database.source, archive)
    database.run("UPDATE activations SET well = 0, ended_at = '2026-11-22 12:07:00'")
    archive_block(
        session, block(2, NOON + minutes(5), NOON + minutes(9), "activations"), database.source, archive
    )
    archive.forget()

    assert [(row["id"], row["well"]) for row in archive.rows("activations").collect()] == [("a1", False)]
    assert archive.rows("activations").columns[-1] == "launched_with"


def test_verify_names_a_row_that_is_missing_and_one_too_many(
    session: SparkSession, database: Database, archive: Archive
) -> None:
    wanted, source = block(1, NOON, NOON + minutes(10)), database.source
    for name in ("a", "b", "c"):
        database.add_protocol(name, NOON)
    archive_block(session, wanted, source, archive)
    assert verify_block(session, wanted, source, archive).ok

    database.run("DELETE FROM protocols WHERE id = 'b'")
    database.add_protocol("committed late", NOON + minutes(1))
    found = verify_block(session, wanted, source, archive)

    assert (found.ok, found.missing, found.extra, found.examples) == (False, 1, 1, ("committed late", "b"))
    # What retention deleted of a block that was verified is no fault; what came late is.
    database.run("DELETE FROM protocols WHERE id = 'committed late'")
    again = verify_block(session, {**wanted, "verified": True}, source, archive)
    assert (again.ok, again.missing, again.extra) == (True, 0, 1)


def test_what_was_committed_late_becomes_a_block_of_its_own(
    session: SparkSession, database: Database, archive: Archive
) -> None:
    wanted, source = block(1, NOON, NOON + minutes(10)), database.source
    database.add_protocol("a", NOON)
    archive_block(session, wanted, source, archive)
    database.add_protocol("late", NOON)
    late = {**wanted, "number": 2, "late_of": 1}
    manifest = archive_block(session, late, source, archive)

    assert (manifest.rows, manifest.late_of) == (1, 1)
    assert ids(archive) == ["a", "late"]
    archive.forget()
    assert verify_block(session, wanted, source, archive).ok
    assert verify_block(session, late, source, archive).ok


def test_one_block_that_fails_takes_no_other_one_down(
    session: SparkSession, database: Database, archive: Archive
) -> None:
    database.add_protocol("a", NOON)
    blocks = [block(1, NOON, NOON + minutes(1), "trips"), block(2, NOON, NOON + minutes(1))]
    database.run("DROP TABLE trips")
    told: list[tuple[int, int]] = []
    result = archive_stage(session, blocks, [], database.source, archive, lambda *done: told.append(done))

    assert [(each["kind"], each["number"]) for each in result.failed] == [("trips", 1)]
    assert "no such table: trips" in result.failed[0]["problem"]
    assert [(each["kind"], each["rows"]) for each in result.written] == [("protocols", 1)]
    assert [each["ok"] for each in result.verified] == [True]
    assert told == [(1, 2), (2, 2)]


def test_a_database_that_is_away_leaves_nothing_half(
    session: SparkSession, database: Database, archive: Archive
) -> None:
    database.add_protocol("a", NOON)
    wanted = block(1, NOON, NOON + minutes(1))
    away = database.path.rename(database.path.with_suffix(".away"))
    with pytest.raises(ArchiveError, match="block 1 of protocols"):
        archive_block(session, wanted, database.source, archive)

    assert list(archive.files.walk("data")) == []
    away.rename(database.path)
    archive_block(session, wanted, database.source, archive)
    assert ids(archive) == ["a"]
