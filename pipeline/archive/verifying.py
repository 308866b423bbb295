"""Whether a block holds what the database holds of its range, and whether its files are as they were
written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.archive.files import ArchiveError
from pipeline.archive.manifests import Manifest, checksum_text, digests
from pipeline.archive.quarantine import inspect, quarantine_named
from pipeline.archive.reading import Archive
from pipeline.archive.source import Source
from pipeline.archive.writing import Block, reason
from pipeline.schemas import KINDS, Kind

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
        return Verified(kind.name, number, False, problems=("it has no manifest",))
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
