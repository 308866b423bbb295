"""The archive's part of a run: every planned block is written and looked at, or compared with the
database, and one that fails takes no other one down; the blocks of a day become one, and what is of no use
goes."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from time import monotonic
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.archive import manifests
from pipeline.archive.files import ArchiveError
from pipeline.archive.manifests import Manifest, checksum_text, digests
from pipeline.archive.quarantine import inspect, quarantine_named
from pipeline.archive.reading import Archive, iso
from pipeline.archive.source import Source
from pipeline.archive.writing import Block, archive_block, reason, write
from pipeline.schemas import KINDS, Kind

# -- whether a block holds what the database holds of its range ----------------------------------------------
# And whether its files are as they were written.


SHOWN = 5


@dataclass(frozen=True, slots=True)
class Verified:
    """`missing`: rows of the database that are in no block of the range. `extra`: rows here that the database
    does not have; of a block from which retention may have deleted they are no fault. `examples`: keys of
    some of both."""

    kind: str
    number: int
    ok: bool
    missing: int = 0
    extra: int = 0
    problems: tuple[str, ...] = ()
    examples: tuple[str, ...] = field(default=())


def verify_block(
    session: SparkSession, block: Block, source: Source, archive: Archive, *, deep: bool = False
) -> Verified:
    """`block` as it was planned; "verified": true where rows may have been deleted from the database since.
    `deep`: reads the files too. Raises ArchiveError where the database or the location does not answer."""
    kind, number = KINDS[block["kind"]], block["number"]
    current = archive.manifests(kind.name)
    mine = current.get(number) or next((each for each in current.values() if number in each.replaces), None)
    if mine is None:
        return Verified(kind.name, number, False, problems=("no manifest",))
    problems = [f"{each['path']}: {each['why']}" for each in inspect(archive, mine)]
    if deep and not problems:
        problems = _reread(archive, kind, mine)
    try:
        missing, extra, examples = _compare(session, block, source, archive, kind, mine)
    except (PySparkException, Py4JError) as error:
        raise ArchiveError(f"block {number} of {kind.name}: {reason(error)}") from error
    # A row that may change moves from range to range, and one that was deleted was in the archive before.
    wrong = missing or (extra and not (kind.newest or block.get("verified")))
    return Verified(kind.name, number, not (problems or wrong), missing, extra, tuple(problems), examples)


def _compare(
    session: SparkSession, block: Block, source: Source, archive: Archive, kind: Kind, mine: Manifest
) -> tuple[int, int, tuple[str, ...]]:
    keys = source.rows(session, block).select(*kind.key, kind.received)
    found = keys.agg(F.count(F.lit(1)).alias("rows"), *digests(kind.key, "key")).collect()[0]
    alone = not any(each is not mine and each.overlaps(block["first"], block["last"])
                    for each in archive.manifests(kind.name).values())  # fmt: skip
    whole = alone and (mine.first, mine.last) == (block["first"], block["last"])
    if whole and (found["rows"], checksum_text(found["key_xor"], found["key_sum"])) == (mine.rows, mine.keys):
        return 0, 0, ()
    there = _of_range(block, archive, kind)
    missing = keys.join(there, on=list(kind.key), how="left_anti")
    extra = there.join(keys, on=list(kind.key), how="left_anti")
    examples = [*missing.select(*kind.key).take(SHOWN), *extra.select(*kind.key).take(SHOWN)]
    return missing.count(), extra.count(), tuple("/".join(map(str, each)) for each in examples)


def _of_range(block: Block, archive: Archive, kind: Kind) -> DataFrame:
    current = archive.manifests(kind.name)
    numbers = [number for number, each in current.items() if each.overlaps(block["first"], block["last"])]
    rows = archive.rows(kind.name, blocks=numbers)
    if not kind.newest:
        first, last = (F.lit(block[edge]).cast("timestamp") for edge in ("first", "last"))
        rows = rows.where((F.col(kind.received) >= first) & (F.col(kind.received) < last))
    return rows.select(*kind.key)


def _reread(archive: Archive, kind: Kind, manifest: Manifest) -> list[str]:
    """What is wrong with the content; a file that cannot be read is moved aside."""
    rows = archive.read(kind, [archive.files.url(manifest.path(each)) for each in manifest.files])
    try:
        found = rows.agg(F.count(F.lit(1)).alias("rows"), *digests(kind.schema.names, "row")).collect()[0]
    except (PySparkException, Py4JError) as error:
        named = quarantine_named(archive, error)
        if not named:
            raise
        return [f"{each['path']}: {each['why']}" for each in named]
    checksum = checksum_text(found["row_xor"], found["row_sum"])
    if (found["rows"], checksum) == (manifest.rows, manifest.checksum):
        return []
    return [
        f"{found['rows']} rows with checksum {checksum}, the manifest says {manifest.rows} with "
        f"{manifest.checksum}"
    ]


def as_row(verified: Verified) -> Mapping[str, Any]:
    return {name: getattr(verified, name) for name in Verified.__slots__}


# Of one file, about.
BYTES_PER_FILE = 128 * 1024 * 1024


def compact_day(session: SparkSession, block: Block, archive: Archive) -> Manifest:
    """`block["replaces"]`: the numbers of the blocks that become this one. Raises ArchiveError where one of
    them is not whole: then they stay as they are. Readers see the old ones, then the new one."""
    if there := manifests.read_one(archive.files, block["kind"], block["number"]):
        return there
    kind = KINDS[block["kind"]]
    current = archive.manifests(kind.name)
    parts = [current[number] for number in block["replaces"] if number in current]
    if len(parts) < len(block["replaces"]):
        raise ArchiveError(f"block {block['number']} of {kind.name}: some of {block['replaces']} are missing")
    if broken := [found["path"] for each in parts for found in inspect(archive, each)]:
        raise ArchiveError(f"block {block['number']} of {kind.name}: {broken[0]} is incomplete")
    paths = [archive.files.url(each.path(file)) for each in parts for file in each.files]
    size = sum(file.bytes for each in parts for file in each.files)
    # Not the newest alone: one that came later in another block must find what it takes the place of.
    return write(session, block, archive.read(kind, paths), archive, parts=max(1, -(-size // BYTES_PER_FILE)))


# -- what is of no use: left by attempts that were killed, or replaced long ago ------------------------------

# Whoever began to read what is replaced has so long to end.
GRACE = timedelta(hours=24)


def sweep(archive: Archive, *, now: datetime | None = None, grace: timedelta = GRACE) -> list[str]:
    """What went. Of what is replaced the data first, then its manifest: killed in between, the next one goes
    on."""
    before = iso((now or datetime.now(UTC)) - grace)
    gone: list[str] = []
    for kind in KINDS:
        every = manifests.read_all(archive.files, kind)
        for each in every.values():
            over = {number for number in each.replaces if number in every}
            if each.archived_at < before:
                for number in sorted(over):
                    archive.files.delete(every[number].folder)
                    archive.files.delete(manifests.place(kind, number))
                    gone.append(every[number].folder)
        for entry in archive.files.list(f"manifest/{kind}"):
            if entry.name.startswith("."):
                archive.files.delete(f"manifest/{kind}/{entry.name}")
                gone.append(f"manifest/{kind}/{entry.name}")
        archive.forget(kind)
    return gone


Row = Mapping[str, Any]

AT_ONCE = 4  # blocks


@dataclass(slots=True)
class Archived:
    """For report.json: `written` are manifests, `verified` as `Verified` says, `failed`: {"kind", "number",
    "problem"}."""

    written: list[Row] = field(default_factory=list)
    verified: list[Row] = field(default_factory=list)
    failed: list[Row] = field(default_factory=list)
    seconds: float = 0.0


def archive_stage(
    session: SparkSession, blocks: Sequence[Block], verify: Sequence[Block], source: Source, archive: Archive,
    tell: Callable[[int, int], object] = lambda done, of: None,
) -> Archived:  # fmt: skip
    """`blocks` are written, then verified; `verify`: are verified only. A block with "compacts": true is made
    of those that it replaces. `tell(done, of)` after each. Some at once, for most of a small block is
    waiting: those that look at no other one, then the others one by one."""
    began, result, done = monotonic(), Archived(), count(1)
    sweep(archive)

    def write(block: Block) -> None:
        try:
            _write(session, block, source, archive, result)
        except ArchiveError as error:
            result.failed.append(_failed(block, error))
        tell(next(done), len(blocks) + len(verify))

    def look(block: Block) -> None:
        try:
            result.verified.append(as_row(verify_block(session, block, source, archive, deep=True)))
        except ArchiveError as error:
            result.failed.append(_failed(block, error))
        tell(next(done), len(blocks) + len(verify))

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="archive") as pool:
        list(pool.map(write, (block for block in blocks if _stands_alone(block))))
        for block in blocks:
            if not _stands_alone(block):
                write(block)
        list(pool.map(look, verify))
    result.written.sort(key=lambda each: (each["kind"], each["block"]))
    result.verified.sort(key=lambda each: (each["kind"], each["number"]))
    result.seconds = round(monotonic() - began, 3)
    return result


def _stands_alone(block: Block) -> bool:
    return not block.get("compacts") and not block.get("replaces") and block.get("late_of") is None


def _failed(block: Block, error: ArchiveError) -> Row:
    return {"kind": block["kind"], "number": block["number"], "problem": str(error)}


def _write(session: SparkSession, block: Block, source: Source, archive: Archive, result: Archived) -> None:
    if block.get("compacts"):
        result.written.append(asdict(compact_day(session, block, archive)))
        return
    result.written.append(asdict(archive_block(session, block, source, archive)))
    result.verified.append(as_row(verify_block(session, block, source, archive)))
