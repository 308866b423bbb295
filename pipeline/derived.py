"""What jobs keep beside the archive, so that a run costs only what is new: parts, each added by one run.

    derived/<name>/000012-<run>/<sheet>/*.parquet   the rows of a part, of one or more shapes
    derived/<name>/000012-<run>.json                written last: a part without it does not exist

A part names the blocks that it was made of. While the MA has not marked these as computed (it died before it
took the results, or another job of that run failed), the next run is told them as new: then the part is void,
and goes before anything is added. So each block is in the parts once, whenever a run is killed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from pipeline import crash
from pipeline.archive.files import ArchiveError
from pipeline.archive.reading import Archive
from pipeline.results import told

ROWS = "rows"  # the sheet that every part has
# More small parts than this become one.
MOST_PARTS = 24
SMALL = 500_000  # rows
PART = "_part"  # the column that tells the part of a row; later parts sort behind earlier ones


@dataclass(frozen=True, slots=True)
class Part:
    """`rows`: of its sheet ROWS. `first`, `last`: of what the job chose to tell, to leave parts out by; None:
    nothing was told."""

    key: str
    rows: int
    blocks: Mapping[str, Sequence[int]] = field(default_factory=dict)
    first: str | None = None
    last: str | None = None
    replaces: Sequence[str] = ()
    version: int = 1

    def may_hold(self, first: str, last: str) -> bool:
        return self.first is None or self.last is None or (self.first <= last and first <= self.last)


class Derived:
    """`new_blocks`: by kind, those that are computed in this run. `anew`: these are all there are, so every
    part of another run is void."""

    def __init__(
        self, archive: Archive, run: str, new_blocks: Mapping[str, Sequence[int]], *, anew: bool = False
    ) -> None:
        self._archive, self._files, self._run, self._new, self._anew = (
            archive,
            archive.files,
            run,
            new_blocks,
            anew,
        )

    def parts(self, name: str) -> list[Part]:
        """Those that count, in the order in which they were added. Raises ArchiveError."""
        every = self._every(name)
        replaced = {key for part in every for key in part.replaces}
        return [part for part in every if not self._void(part) and part.key not in replaced]

    def sweep(self, name: str) -> None:
        """Away with what is void, was merged, or was never finished, also by an attempt of this run."""
        counting = {part.key for part in self.parts(name) if not self._anew and not self._names_new(part)}
        for entry in self._files.list(f"derived/{name}"):
            if entry.name.removesuffix(".json").removeprefix(".") not in counting:
                self._files.delete(f"derived/{name}/{entry.name}")

    def rows(
        self, name: str, schema: StructType, parts: Sequence[Part] | None = None, sheet: str = ROWS
    ) -> DataFrame:
        """With the column PART. `parts`: of these only."""
        chosen = self.parts(name) if parts is None else parts
        session = self._archive.session
        if not chosen:
            return told(session, (), StructType(list(schema)).add(PART, StringType()))
        paths = [self._files.url(f"derived/{name}/{part.key}/{sheet}") for part in chosen]
        folder = F.element_at(F.split(F.col("_metadata.file_path"), "/"), -3)
        return session.read.schema(schema).parquet(*paths).withColumn(PART, folder)

    def add(
        self, name: str, rows: DataFrame, *, first: str | None = None, last: str | None = None,
        more: Mapping[str, Callable[[DataFrame], DataFrame]] = {},
    ) -> Part:  # fmt: skip
        """Also where there are no rows: the next run is to know that the blocks were looked at. `more`: other
        sheets, each made of `rows` as they were written."""
        last_key = max((part.key for part in self._every(name)), default="000000")
        key = f"{int(last_key[:6]) + 1:06d}-{self._run}"
        self._files.delete(f"derived/{name}/{key}")
        number = self._sheet(name, key, ROWS, rows)
        written = self._archive.session.read.schema(rows.schema).parquet(
            self._files.url(f"derived/{name}/{key}/{ROWS}")
        )
        for sheet, made in more.items():
            self._sheet(name, key, sheet, made(written))
        return self._commit(name, Part(key, number, self._new, first, last))

    def merge(
        self, name: str, sheets: Mapping[str, tuple[StructType, Callable[[DataFrame], DataFrame]]]
    ) -> None:
        """Small parts into one where there are many. Each sheet: its schema, and what makes of the rows of
        all those that say the same."""
        parts = self.parts(name)
        # Behind the last large one: what is said of a thing again must stay behind what was said before.
        behind = max((number for number, part in enumerate(parts, 1) if part.rows >= SMALL), default=0)
        small = parts[behind:]
        if len(small) <= MOST_PARTS:
            return
        key = f"{small[-1].key[:6]}-m-{self._run}"
        self._files.delete(f"derived/{name}/{key}")
        number = 0
        for sheet, (schema, merged) in sheets.items():
            rows = merged(self.rows(name, schema, small, sheet)).select(*schema.names)
            written = self._sheet(name, key, sheet, rows)
            number = written if sheet == ROWS else number
        ends = [end for part in small for end in (part.first, part.last)]
        known = sorted(end for end in ends if end is not None)
        first, last = (known[0], known[-1]) if known and None not in ends else (None, None)
        # All of their blocks are computed for good.
        self._commit(name, Part(key, number, {}, first, last, [part.key for part in small]))
        self.sweep(name)

    def _sheet(self, name: str, key: str, sheet: str, rows: DataFrame) -> int:
        place = self._files.url(f"derived/{name}/{key}/{sheet}")
        rows.write.mode("error").parquet(place)
        crash.point(f"derived {name}: {sheet} written")
        return self._archive.session.read.schema(rows.schema).parquet(place).count()

    def _commit(self, name: str, part: Part) -> Part:
        path = f"derived/{name}/{part.key}.json"
        if not self._files.write_new(path, json.dumps(asdict(part))):
            raise ArchiveError(f"{self._files.url(path)} cannot be written")
        crash.point(f"derived {name}: committed")
        return part

    def _every(self, name: str) -> list[Part]:
        names = sorted(entry.name for entry in self._files.list(f"derived/{name}"))
        return [
            _read(self._files.url(f"derived/{name}/{each}"), self._files.read(f"derived/{name}/{each}"))
            for each in names
            if each.endswith(".json") and not each.startswith(".")
        ]

    def _void(self, part: Part) -> bool:
        return (self._anew or self._names_new(part)) and not part.key.endswith(f"-{self._run}")

    def _names_new(self, part: Part) -> bool:
        return any(set(numbers) & set(self._new.get(kind, ())) for kind, numbers in part.blocks.items())


def _read(path: str, text: str) -> Part:
    try:
        read: dict[str, Any] = json.loads(text)
        return Part(**{name: read[name] for name in Part.__slots__ if name in read})
    except (ValueError, TypeError) as error:
        raise ArchiveError(f"{path} is not a part file: {error}") from error
