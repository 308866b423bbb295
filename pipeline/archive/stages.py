"""The archive's part of a run: every planned block is written and looked at, and one that fails takes no
other one down; the blocks of a day become one, and what is of no use goes."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from time import monotonic
from typing import Any

from pyspark.sql import SparkSession

from pipeline.archive import manifests
from pipeline.archive.files import ArchiveError
from pipeline.archive.manifests import Manifest
from pipeline.archive.quarantine import inspect
from pipeline.archive.reading import Archive, iso
from pipeline.archive.source import Source
from pipeline.archive.verifying import as_row, verify_block
from pipeline.archive.writing import Block, archive_block, write
from pipeline.schemas import KINDS

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
        raise ArchiveError(
            f"block {block['number']} of {kind.name}: some of {block['replaces']} are not there"
        )
    if broken := [found["path"] for each in parts for found in inspect(archive, each)]:
        raise ArchiveError(f"block {block['number']} of {kind.name}: {broken[0]} is not whole")
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
