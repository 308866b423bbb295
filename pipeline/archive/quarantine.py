"""Files that cannot be read: told of by their names, moved aside, and the others go on."""

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from pipeline.archive.files import ArchiveError
from pipeline.archive.manifests import Manifest
from pipeline.archive.reading import Archive
from pipeline.schemas import KINDS

T = TypeVar("T")
Found = dict[str, object]

# So many files of one job are moved aside; with more of them something else is wrong.
MOST = 20
NAMED = re.compile(
    r"[\w+.-]+:/[^\s'\"]*?/data/([a-z_]+)/day=[0-9-]+/block-(\d+)-[0-9a-f]+/[^\s'\"/]+\.parquet"
)
# What Parquet and Spark say of the content of a file. A disk or a host that is away is no fault of the file.
OF_THE_FILE = re.compile(
    r"not a Parquet file|FAILED_READ_FILE|ParquetDecodingException|Could not read "
    r"footer|CANNOT_READ_FILE_FOOTER|"
    r"CORRUPT|FileNotFoundException|FILE_NOT_EXIST|PATH_NOT_FOUND|EOFException|PARQUET_COLUMN_DATA_TYPE_MISMATCH|ParquetCryptoRuntime"
)


def guarded(archive: Archive, act: Callable[[], T]) -> T:
    """What `act` answers. Where it fails by a file that cannot be read, the file is moved aside and it is
    done again without it; `archive.quarantined` tells. Anything else is raised as it is."""
    for _ in range(MOST):
        try:
            return act()
        except (PySparkException, Py4JError) as error:
            if not quarantine_named(archive, error):
                raise
    return act()


def quarantine_named(archive: Archive, error: Exception) -> list[Found]:
    """Moves aside what the error names as a file of the archive that cannot be read. What was moved."""
    text = str(error)
    if not OF_THE_FILE.search(text):
        return []
    moved = []
    known = {each["path"] for each in archive.quarantined}
    for kind, block, path in _named(text):
        if path not in known and kind in KINDS and path.startswith(archive.files.root):
            known.add(path)
            moved.append(_quarantine(archive, kind, block, path, _why(text)))
    return moved


def inspect(archive: Archive, manifest: Manifest) -> list[Found]:
    """Files of a block that are not there or not of their size: cheap, and without reading them. What is of
    another size is moved aside."""
    sizes = {each.name: each.bytes for each in archive.files.list(manifest.folder)}
    wrong = []
    for file in manifest.files:
        path = archive.files.url(manifest.path(file))
        if file.name not in sizes:
            wrong.append(_note(archive, manifest.kind, manifest.block, path, "file not found"))
        elif sizes[file.name] != file.bytes:
            why = f"size {sizes[file.name]} bytes, written were {file.bytes}"
            wrong.append(_quarantine(archive, manifest.kind, manifest.block, path, why))
    return wrong


def inspect_all(archive: Archive, kind: str) -> list[Found]:
    return [found for each in archive.manifests(kind).values() for found in inspect(archive, each)]


def _named(text: str) -> Iterator[tuple[str, int, str]]:
    for match in NAMED.finditer(text):
        # Hadoop writes a local path with one slash, Spark with three.
        yield match[1], int(match[2]), re.sub("^file:/+", "file:/", match[0])


def _why(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if OF_THE_FILE.search(line)), text[:200])[:300]


def _quarantine(archive: Archive, kind: str, block: int, path: str, why: str) -> Found:
    plain = path.removeprefix(archive.files.root).lstrip("/")
    try:
        archive.files.move(plain, f"quarantine/{plain.removeprefix('data/')}")
    except ArchiveError:
        why = f"{why}; the file could not be quarantined"
    return _note(archive, kind, block, path, why)


def _note(archive: Archive, kind: str, block: int, path: str, why: str) -> Found:
    """Readers of this archive leave it out from here on."""
    found: Found = {"kind": kind, "block": block, "path": path, "why": why}
    if all(each["path"] != path for each in archive.quarantined):
        archive.quarantined.append(found)
    return found
