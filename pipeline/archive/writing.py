"""One block from the database into the archive.

Written under a name of its own, looked at again as it lies there, then committed by its manifest. Killed
before that, nothing of it is there for readers, and the next attempt begins anew; killed after it, the next
attempt finds the manifest and has nothing to do.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F

from pipeline import crash
from pipeline.archive import manifests
from pipeline.archive.files import ArchiveError
from pipeline.archive.manifests import File, Manifest, checksum_text, digests
from pipeline.archive.reading import ARCHIVED_AT, Archive, iso
from pipeline.archive.source import Source
from pipeline.schemas import KINDS, VERSION, Kind

Block = Mapping[str, Any]

ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'+00:00'"


def archive_block(session: SparkSession, block: Block, source: Source, archive: Archive) -> Manifest:
    """Its manifest; one that was written before stays as it is. Raises ArchiveError: then nothing of it is
    there.

    `block`: {"kind", "number", "day", "first", "last", "splits", "late_of", "replaces"}, instants in ISO,
    UTC."""
    if there := manifests.read_one(archive.files, block["kind"], block["number"]):
        return there
    kind = KINDS[block["kind"]]
    crash.point("archive: planned")
    try:
        rows = source.rows(session, block)
        if block.get("late_of") is not None or block.get("replaces"):
            rows = _not_there_yet(rows, kind, block, archive)
    except (PySparkException, Py4JError, ArchiveError) as error:
        raise ArchiveError(f"block {block['number']} of {kind.name}: {reason(error)}") from error
    return write(session, block, rows, archive)


def write(
    session: SparkSession, block: Block, rows: DataFrame, archive: Archive, parts: int | None = None
) -> Manifest:
    """`rows` in the schema of their kind. `parts`: into so many files at most."""
    kind, now = KINDS[block["kind"]], datetime.now(UTC)
    folder = f"data/{kind.name}/day={block['day']}/block-{block['number']:06d}-{uuid4().hex[:8]}"
    committing = False
    try:
        sweep_attempts(archive, kind.name, block["day"], block["number"])
        seen = _stage(rows, kind, archive.files.url(folder), now, parts)
        manifest = _manifest(session, block, kind, folder, seen, archive, now)
        crash.point("archive: before the manifest")
        _still_there(block, archive)
        committing = True
        done = manifests.commit(archive.files, manifest)
        crash.point("archive: after the manifest")
    except (PySparkException, Py4JError, ArchiveError) as error:
        if not committing:  # else the manifest may be there, though the answer was an error
            _clear(archive, folder)
        raise ArchiveError(f"block {block['number']} of {kind.name}: {reason(error)}") from error
    archive.note(done)
    return done


def _stage(rows: DataFrame, kind: Kind, url: str, now: datetime, parts: int | None) -> Mapping[str, Any]:
    """What was seen on the way from the database into the files."""
    seen = Observation()
    # The rows are counted as they are read: what lies there is compared with it afterwards.
    watched = rows.observe(seen, F.count(F.lit(1)).alias("rows"), *digests(kind.schema.names, "row"))
    if kind.newest and ARCHIVED_AT not in rows.columns:
        watched = watched.withColumn(ARCHIVED_AT, F.lit(iso(now)).cast("timestamp"))
    if parts is not None:
        watched = watched.coalesce(parts)
    watched.write.mode("error").parquet(url)
    return seen.get


def _manifest(
    session: SparkSession, block: Block, kind: Kind, folder: str, seen: Mapping[str, Any], archive: Archive,
    now: datetime,
) -> Manifest:  # fmt: skip
    """From the files as they lie there. Raises ArchiveError where they hold something else than what was
    read."""
    sizes = {each.name: each.bytes for each in archive.files.list(folder) if each.name.endswith(".parquet")}
    staged = archive.read(kind, [archive.files.url(f"{folder}/{name}") for name in sorted(sizes)])
    found = _looked_at(staged, kind)
    total = int(sum(row["rows"] for row in found))
    checksum = checksum_text(_xor(found, "row"), sum(row["row_sum"] for row in found))
    if (total, checksum) != (seen["rows"], checksum_text(seen["row_xor"], seen["row_sum"])):
        raise ArchiveError(f"{seen['rows']} rows were read, {total} or other rows were written")
    files = [
        File(row["name"], row["rows"], sizes[row["name"]], row["occurred_min"], row["occurred_max"])
        for row in found
    ]
    return Manifest(
        kind=kind.name, block=block["number"], day=block["day"], folder=folder, files=tuple(files),
        rows=total,
        checksum=checksum, keys=checksum_text(_xor(found, "key"), sum(row["key_sum"] for row in found)),
        first=block["first"],
        last=block["last"], occurred_min=min((each.occurred_min for each in files if each.occurred_min),
        default=None),
        occurred_max=max((each.occurred_max for each in files if each.occurred_max), default=None),
        schema=VERSION,
        archived_at=iso(now), late_of=block.get("late_of"), replaces=_replaced(block, archive),
    )  # fmt: skip


def _looked_at(staged: DataFrame, kind: Kind) -> Sequence[Row]:
    """One row per file that has any."""
    occurred = F.date_format(kind.occurred, ISO)
    return (
        staged.withColumn("name", F.element_at(F.split(F.input_file_name(), "/"), -1))
        .groupBy("name")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.min(occurred).alias("occurred_min"),
            F.max(occurred).alias("occurred_max"),
            *digests(kind.schema.names, "row"),
            *digests(kind.key, "key"),
        )
        .orderBy("name")
        .collect()
    )


def _xor(rows: Sequence[Row], prefix: str) -> int:
    found = 0
    for row in rows:
        found ^= row[f"{prefix}_xor"]
    return found


def _replaced(block: Block, archive: Archive) -> tuple[int, ...]:
    """With what those replaced: one that comes back when the one that replaced it is swept away would be
    twice."""
    named = set(block.get("replaces") or ())
    every = manifests.read_all(archive.files, block["kind"]) if named else {}
    return tuple(sorted(named.union(*(every[number].replaces for number in named if number in every))))


def _not_there_yet(rows: DataFrame, kind: Kind, block: Block, archive: Archive) -> DataFrame:
    """Those that no other block of the range has."""
    archive.forget(kind.name)
    current = archive.manifests(kind.name)
    others = [
        number
        for number, each in current.items()
        if number not in (block.get("replaces") or ()) and each.overlaps(block["first"], block["last"])
    ]
    there = archive.rows(kind.name, blocks=others) if others else archive.read(kind, [])
    return rows.join(there.select(*kind.key), on=list(kind.key), how="left_anti").select(*kind.schema.names)


def sweep_attempts(archive: Archive, kind: str, day: str, number: int) -> list[str]:
    """Away with what attempts left that were killed: no manifest names them. What went."""
    parent, gone = f"data/{kind}/day={day}", []
    for entry in archive.files.list(parent):
        if entry.folder and entry.name.startswith(f"block-{number:06d}-"):
            archive.files.delete(f"{parent}/{entry.name}")
            gone.append(f"{parent}/{entry.name}")
    return gone


def _still_there(block: Block, archive: Archive) -> None:
    """What two blocks took the place of would be there twice."""
    every = manifests.read_all(archive.files, block["kind"]) if block.get("replaces") else {}
    named = {number for number in block.get("replaces") or () if number in every}
    named -= {number for each in named for number in every[each].replaces}
    if gone := sorted(named - manifests.current(every.values()).keys()):
        raise ArchiveError(f"{gone} were replaced in the meantime: run the pipeline again")


def _clear(archive: Archive, folder: str) -> None:
    """As well as it goes: a disk that is full or away leaves it to the next attempt."""
    try:
        archive.files.delete(folder)
    except ArchiveError:
        return


def reason(error: Exception) -> str:
    """The line that says most, of a text of hundreds."""
    if isinstance(error, ArchiveError):
        return str(error)
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("An error occurred while calling")]
    caused = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (caused[-1] if caused else lines[0] if lines else type(error).__name__)[:500]
