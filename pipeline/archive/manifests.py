"""Manifests say which files are there. One is written once, by renaming it into its place, and never changed:
another one replaces it, by its number."""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipeline.archive.files import ArchiveError, Files

FORMAT = 1
# Over a network each takes its time.
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class File:
    """`occurred_min`, `occurred_max`: both belong to it (ISO, UTC); None where no row says when it
    occurred."""

    name: str
    rows: int
    bytes: int
    occurred_min: str | None = None
    occurred_max: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """`folder` is relative to the archive. `first` and `last`: the half-open range of receipt that was read,
    within `day`. `checksum`: of whole rows, `keys`: of what names them. `late_of`: the block of which this
    one holds what was committed after it. `replaces`: numbers of this kind that are read no longer, with
    those that they replaced."""

    kind: str
    block: int
    day: str
    folder: str
    files: tuple[File, ...]
    rows: int
    checksum: str
    keys: str
    first: str
    last: str
    occurred_min: str | None
    occurred_max: str | None
    schema: int
    archived_at: str
    late_of: int | None = None
    replaces: tuple[int, ...] = ()
    version: int = field(default=FORMAT)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        """Raises ArchiveError. Names that a later version added are passed over."""
        try:
            read = json.loads(text)
            if read["version"] > FORMAT:
                raise ArchiveError(f"the manifest has version {read['version']}, this program reads {FORMAT}")
            known = {name: read[name] for name in cls.__slots__ if name in read}
            files = tuple(_file(each) for each in known.pop("files"))
            return cls(files=files, replaces=tuple(known.pop("replaces", ())), **known)
        except (ValueError, KeyError, TypeError) as error:
            raise ArchiveError(f"not a manifest: {error}") from error

    def path(self, file: File) -> str:
        return f"{self.folder}/{file.name}"

    def overlaps(self, first: str, last: str) -> bool:
        return self.first < last and first < self.last


def _file(read: Mapping[str, Any]) -> File:
    return File(**{name: read[name] for name in File.__slots__ if name in read})


def place(kind: str, block: int) -> str:
    return f"manifest/{kind}/{block:06d}.json"


def read_one(files: Files, kind: str, block: int) -> Manifest | None:
    """Raises ArchiveError, naming the file."""
    path = place(kind, block)
    return _read(files, path) if files.exists(path) else None


def _read(files: Files, path: str) -> Manifest:
    try:
        return Manifest.from_json(files.read(path))
    except ArchiveError as error:
        raise ArchiveError(f"{files.url(path)}: {error}") from error


def read_all(files: Files, kind: str) -> dict[int, Manifest]:
    """All of a kind, also those that are replaced. Raises ArchiveError, naming the file."""
    names = [each.name for each in files.list(f"manifest/{kind}") if each.name.endswith(".json")]
    paths = [f"manifest/{kind}/{name}" for name in sorted(names) if not name.startswith(".")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(partial(_read, files), paths)
        return {manifest.block: manifest for manifest in found}


def current(manifests: Iterable[Manifest]) -> dict[int, Manifest]:
    """Those that no other one replaces."""
    all_of_them = {each.block: each for each in manifests}
    replaced = {number for each in all_of_them.values() for number in each.replaces}
    return {number: each for number, each in all_of_them.items() if number not in replaced}


def commit(files: Files, manifest: Manifest) -> Manifest:
    """Theirs, where somebody else committed this block before."""
    if files.write_new(place(manifest.kind, manifest.block), manifest.to_json()):
        return manifest
    there = read_one(files, manifest.kind, manifest.block)
    if there is None:
        raise ArchiveError(f"{files.url(place(manifest.kind, manifest.block))} cannot be written")
    return there


# -- checksums -----------------------------------------------------------------------------------------------
# They do not depend on the order of rows, nor on columns that are null: one that a later version of a kind
# adds changes none of those from before.

# Sums of so many bits of each hash stay within 64 bits for 8 million rows of a block, by far more than it
# has.
SHIFT = 24


def digests(columns: Sequence[str], prefix: str) -> list[Column]:
    """Two aggregates, `<prefix>_xor` and `<prefix>_sum`; `checksum_text` makes a text of both. Written as
    SQL: part by part hundreds of calls to the JVM would make them, for each block anew."""
    # Which column a value is in counts: neighbours that change places are another row.
    placed = (
        f"CASE WHEN `{name}` IS NOT NULL THEN struct({at}, `{name}`) END" for at, name in enumerate(columns)
    )
    hashed = f"xxhash64({', '.join(placed)})"
    return [
        F.expr(f"coalesce(bit_xor({hashed}), 0L)").alias(f"{prefix}_xor"),
        F.expr(f"coalesce(sum(shiftrightunsigned({hashed}, {SHIFT})), 0L)").alias(f"{prefix}_sum"),
    ]


def checksum_text(xor: int, total: int) -> str:
    return f"{xor & 0xFFFFFFFFFFFFFFFF:016x}.{total:x}"
