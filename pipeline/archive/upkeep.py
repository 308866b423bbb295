"""The upkeep of the archive: the blocks of a day become one, and what is of no use goes."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from pipeline.archive import manifests
from pipeline.archive.files import ArchiveError
from pipeline.archive.manifests import Manifest
from pipeline.archive.quarantine import inspect
from pipeline.archive.reading import Archive, iso
from pipeline.archive.writing import Block, write
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
