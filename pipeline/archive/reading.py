"""Reading the archive: only what current manifests name."""

import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from threading import RLock

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pipeline.archive import manifests
from pipeline.archive.files import Files
from pipeline.archive.manifests import File, Manifest
from pipeline.schemas import INSTANT, KINDS, Kind

# In files of kinds whose rows may come again: when the row was read from the database.
ARCHIVED_AT = "archived_at"


class Archive:
    """Manifests are read once per kind and kept: what is committed while a job runs is not in it. `forget`
    reads them anew, `note` adds one that was committed by this program, of which several threads may write.
    `quarantined`: files that cannot be read and were moved aside, as a report tells of them."""

    def __init__(self, session: SparkSession, url: str) -> None:
        self.session, self.files = session, Files(session, url)
        self.quarantined: list[dict[str, object]] = []
        self._manifests: dict[str, dict[int, Manifest]] = {}
        self._lock = RLock()

    def manifests(self, kind: str) -> dict[int, Manifest]:
        """The current ones, by their blocks. Raises ArchiveError, naming what cannot be read."""
        with self._lock:
            if kind not in self._manifests:
                self._manifests[kind] = manifests.current(manifests.read_all(self.files, kind).values())
            return self._manifests[kind]

    def forget(self, kind: str | None = None) -> None:
        with self._lock:
            for each in list(self._manifests) if kind is None else [kind]:
                self._manifests.pop(each, None)

    def note(self, manifest: Manifest) -> None:
        with self._lock:
            known = self._manifests.get(manifest.kind)
            if known is not None:
                left = {number: each for number, each in known.items() if number not in manifest.replaces}
                self._manifests[manifest.kind] = left | {manifest.block: manifest}

    def rows(
        self,
        kind: str,
        *,
        blocks: Collection[int] | None = None,
        occurred: tuple[datetime, datetime] | None = None,
    ) -> DataFrame:
        """In the schema of the kind, also where there is nothing. `blocks`: of these only, or of what
        replaced them; `occurred`: half-open, aware; files that cannot hold such rows are left out. Of rows
        that may change: the newest that is read, one per key."""
        chosen, schema = self._chosen(kind, blocks), KINDS[kind]
        paths = [path for each in chosen for path in self._paths(each, occurred)]
        found = self.read(schema, paths)
        if schema.newest:
            found = _newest(found, schema)
        if occurred is not None:
            found = found.where(_within(F.col(schema.occurred), occurred))
        return found.select(*schema.schema.names)

    def read(self, kind: Kind, paths: list[str]) -> DataFrame:
        """As it lies there, with `archived_at` where the kind has it."""
        schema = stored_schema(kind)
        if not paths:
            return self.session.createDataFrame([], schema)
        return self.session.read.schema(schema).parquet(*paths)

    def _chosen(self, kind: str, blocks: Collection[int] | None) -> list[Manifest]:
        current = self.manifests(kind)
        if blocks is None:
            return list(current.values())
        wanted = set(blocks)
        return [
            each for number, each in current.items() if number in wanted or wanted.intersection(each.replaces)
        ]

    def _paths(self, manifest: Manifest, occurred: tuple[datetime, datetime] | None) -> Iterable[str]:
        gone = {each["path"] for each in self.quarantined}
        for file in manifest.files:
            path = self.files.url(manifest.path(file))
            if path not in gone and (occurred is None or _may_hold(file, occurred)):
                yield path

    def block_of(self, path: str) -> int | None:
        """Of a file's path."""
        found = re.search(r"/block-(\d+)-[^/]*/[^/]+$", path)
        return int(found[1]) if found else None


def stored_schema(kind: Kind) -> StructType:
    schema = StructType(list(kind.schema))
    return schema.add(ARCHIVED_AT, INSTANT) if kind.newest else schema


def iso(at: datetime) -> str:
    """As plans and manifests write it: their order is the order in time."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _newest(rows: DataFrame, kind: Kind) -> DataFrame:
    latest = Window.partitionBy(*kind.key).orderBy(F.desc(ARCHIVED_AT), F.desc_nulls_last(kind.received))
    return rows.withColumn("_place", F.row_number().over(latest)).where("_place = 1")


def _may_hold(file: File, occurred: tuple[datetime, datetime]) -> bool:
    if file.occurred_min is None or file.occurred_max is None:
        return file.rows > 0
    return file.occurred_min < iso(occurred[1]) and iso(occurred[0]) <= file.occurred_max


def _within(column: Column, occurred: tuple[datetime, datetime]) -> Column:
    first, last = (F.lit(iso(each)).cast("timestamp") for each in occurred)
    return (column >= first) & (column < last)
