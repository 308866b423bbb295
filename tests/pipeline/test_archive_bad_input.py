"""Files that are broken, a disk that is full, schemas of before: told by name, and the others go on."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deploy.config import REPOSITORY
from pipeline.archive.files import ArchiveError
from pipeline.archive.manifests import place
from pipeline.archive.quarantine import guarded, inspect_all
from pipeline.archive.reading import Archive, iso
from pipeline.archive.stages import _reread, archive_stage, compact_day, sweep, verify_block
from pipeline.archive.writing import archive_block
from pipeline.schemas import KINDS
from tests.pipeline.rows_in_sqlite import NOON, Database, block, minutes


@pytest.fixture
def archive(session: SparkSession, tmp_path: Path) -> Archive:
    """Three blocks of one row each: a, b, c."""
    database = Database(tmp_path / "db.sqlite3")
    archive = Archive(session, str(tmp_path / "archive"))
    for number, name in enumerate("abc", start=1):
        database.add_protocol(name, NOON + minutes(number), traceback=name * 3000)
        archive_block(session, one(number), database.source, archive)
    archive.forget()
    return archive


def one(number: int) -> dict[str, object]:
    return dict(block(number, NOON + minutes(number), NOON + minutes(number + 1)))


def file_of(archive: Archive, number: int) -> Path:
    manifest = archive.manifests("protocols")[number]
    return Path(archive.files.root.removeprefix("file:")) / manifest.path(manifest.files[0])


def ids(archive: Archive) -> list[str]:
    return sorted(row["id"] for row in archive.rows("protocols").collect())


def test_a_file_with_garbage_in_it_is_named_and_moved_aside_and_the_others_go_on(archive: Archive) -> None:
    broken = file_of(archive, 2)
    content = bytearray(broken.read_bytes())
    content[4 : len(content) - 8] = b"\xff" * (len(content) - 12)
    broken.write_bytes(content)
    # Its checksum file tells too; a reader of another file system has none.
    broken.with_name(f".{broken.name}.crc").unlink(missing_ok=True)
    with pytest.raises(Exception, match=broken.name):
        ids(archive)

    assert guarded(archive, lambda: ids(archive)) == ["a", "c"]
    assert [(each["kind"], each["block"]) for each in archive.quarantined] == [("protocols", 2)]
    assert not broken.exists()
    assert list(Path(archive.files.root.removeprefix("file:")).glob(f"quarantine/**/{broken.name}"))


def test_a_file_that_was_cut_off_is_found_without_reading_it(archive: Archive) -> None:
    broken = file_of(archive, 1)
    broken.write_bytes(broken.read_bytes()[:100])
    found = inspect_all(archive, "protocols")

    assert [each["block"] for each in found] == [1]
    assert "100 bytes" in str(found[0]["why"])
    assert ids(archive) == ["b", "c"]


def test_a_file_that_is_gone_is_named(archive: Archive) -> None:
    file_of(archive, 3).unlink()

    assert guarded(archive, lambda: ids(archive)) == ["a", "b"]
    assert [each["block"] for each in archive.quarantined] == [3]


def test_verify_reads_what_lies_there(session: SparkSession, tmp_path: Path, archive: Archive) -> None:
    database = Database(tmp_path / "other.sqlite3")
    database.add_protocol("b", NOON + minutes(2), traceback="changed")
    other = Archive(session, str(tmp_path / "other"))
    archive_block(session, one(2), database.source, other)
    whole, changed = file_of(archive, 2), file_of(other, 2)
    whole.write_bytes(changed.read_bytes().ljust(whole.stat().st_size, b"\0"))
    found = verify_block(session, one(2), database.source, archive, deep=True)

    assert not found.ok and whole.name in found.problems[0]


def test_a_database_whose_connection_breaks_in_the_middle_leaves_the_other_blocks(
    session: SparkSession, tmp_path: Path, archive: Archive
) -> None:
    database = Database(tmp_path / "broken.sqlite3")
    for number in range(3000):
        database.add_protocol(f"x{number}", NOON + minutes(30), traceback="T" * 500)
    database.add("recovered", id="r", received_at=NOON, occurred_at=NOON)
    database.run("PRAGMA wal_checkpoint(TRUNCATE)")
    with database.path.open("r+b") as file:
        file.seek(database.path.stat().st_size // 2)
        file.write(b"\xff" * 65536)
    blocks = [
        block(9, NOON + minutes(30), NOON + minutes(31)),
        block(1, NOON, NOON + minutes(1), "recovered"),
    ]
    done = archive_stage(session, blocks, [], database.source, archive)

    assert [(each["kind"], each["number"]) for each in done.failed] == [("protocols", 9)]
    assert "malformed" in done.failed[0]["problem"]
    assert [each["kind"] for each in done.written] == ["recovered"]
    assert ids(archive) == ["a", "b", "c"]


def test_what_was_archived_by_an_older_version_is_read_with_nulls(
    session: SparkSession, archive: Archive
) -> None:
    """Its schema had fewer columns."""
    manifest = archive.manifests("protocols")[1]
    path = file_of(archive, 1)
    unknown = ("traceparent", "clock_skew_seconds", "memory_peak_bytes", "disposition", "durable")
    old = session.read.parquet(str(path)).drop(*unknown)
    old.coalesce(1).write.parquet(str(path.parent / "old"))
    written = next((path.parent / "old").glob("*.parquet"))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.write_bytes(written.read_bytes())

    rows = {row["id"]: row for row in archive.rows("protocols").collect()}
    assert (rows["a"]["traceparent"], rows["a"]["durable"], rows["a"]["traceback"]) == (
        None,
        None,
        "a" * 3000,
    )
    # Columns that are null change no checksum.
    assert _reread(archive, KINDS["protocols"], manifest) == []


def test_a_clock_that_is_far_off_changes_neither_day_nor_rows(session: SparkSession, tmp_path: Path) -> None:
    database = Database(tmp_path / "db.sqlite3")
    for name, year in (("ahead", 9998), ("behind", 1900), ("right", 2026)):
        database.add_protocol(name, NOON, occurred_at=datetime(year, 1, 1, tzinfo=UTC))
    archive = Archive(session, str(tmp_path / "archive"))
    manifest = archive_block(session, block(1, NOON, NOON + minutes(1)), database.source, archive)

    assert (manifest.day, manifest.rows) == ("2026-11-22", 3)
    assert (manifest.occurred_min or "")[:4] == "1900" and (manifest.occurred_max or "")[:4] == "9998"
    window = (datetime(9997, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
    assert [row["id"] for row in archive.rows("protocols", occurred=window).collect()] == ["ahead"]


def test_a_day_becomes_one_block_that_takes_the_place_of_many(
    session: SparkSession, archive: Archive, tmp_path: Path
) -> None:
    whole = block(4, NOON + minutes(1), NOON + minutes(4), compacts=True, replaces=[1, 2, 3])
    manifest = compact_day(session, whole, archive)
    archive.forget()

    assert (len(manifest.files), manifest.rows, ids(archive)) == (1, 3, ["a", "b", "c"])
    assert archive.rows("protocols", blocks=[4]).count() == 3
    assert verify_block(session, one(2), Database(tmp_path / "db2").source, archive, deep=True).problems == ()
    # Who began to read the old files may go on for a while; then they go, and killed in between nothing comes
    # twice.
    assert sweep(archive) == []
    later = datetime.now(UTC) + timedelta(days=2)
    assert len(sweep(archive, now=later)) == 3
    assert ids(archive) == ["a", "b", "c"]
    assert not archive.files.exists(place("protocols", 1))


def test_a_day_of_which_a_file_is_broken_stays_as_it_is(session: SparkSession, archive: Archive) -> None:
    file_of(archive, 2).write_bytes(b"PAR1")
    whole = block(4, NOON + minutes(1), NOON + minutes(4), compacts=True, replaces=[1, 2, 3])
    with pytest.raises(ArchiveError, match="is incomplete"):
        compact_day(session, whole, archive)

    archive.forget()
    assert ids(archive) == ["a", "c"]


FULL = """
import resource, sys
from pathlib import Path
from pipeline.archive.files import ArchiveError
from pipeline.archive.reading import Archive
from pipeline.archive.writing import archive_block
from pipeline.session import build
from tests.pipeline import classes
from tests.pipeline.conftest import SETTINGS
from tests.pipeline.rows_in_sqlite import NOON, Database, block, minutes
folder = Path(sys.argv[1])
session = build("local[1]", memory="500m", settings={**SETTINGS, "spark.jars": sys.argv[2],
    "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {classes.options()}"})
database, archive = Database(folder / "db.sqlite3"), Archive(session, str(folder / "small" / "archive"))
import os
for number in range(3000):
    database.add_protocol(f"x{number}", NOON, traceback=os.urandom(1000).hex())
try:
    archive_block(session, block(1, NOON, NOON + minutes(1)), database.source, archive)
except ArchiveError as error:
    print("REFUSED", error)
print("FILES", len(list(archive.files.walk("data"))), archive.rows("protocols").count())
(folder / "small" / "filling").unlink()
archive_block(session, block(1, NOON, NOON + minutes(1)), database.source, archive)
archive.forget()
print("THEN", archive.rows("protocols").count())
session.stop()
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Eight megabytes, of which all but one are taken."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], check=True)
    (folder / "filling").write_bytes(b"x" * 7 * 1024 * 1024)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.process
def test_a_disk_that_is_full_leaves_nothing_half_and_the_next_run_goes_on(
    small_disk: Path, jars: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(small_disk.parent), jars], cwd=REPOSITORY, capture_output=True,
        text=True,
        timeout=240, check=False,
    )  # fmt: skip

    assert "REFUSED block 1 of protocols" in done.stdout, done.stderr[-3000:]
    assert "No space left on device" in done.stdout
    assert "FILES 0 0" in done.stdout and "THEN 3000" in done.stdout


def test_instants_of_plans_are_written_so_that_their_order_is_that_of_time() -> None:
    earlier, later = NOON, NOON + timedelta(microseconds=1)
    assert iso(earlier) == "2026-11-22T12:00:00.000000+00:00" < iso(later)
