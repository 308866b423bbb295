"""A backup is a folder: its parts, and a manifest that names each with size and digest. It gets its name when
all of it is on disk; nothing else counts as a backup."""

import hashlib
import hmac
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.config import REPOSITORY
from deploy.console import DeployError

FORMAT = 1
MANIFEST = "manifest.json"
NAME = re.compile(r"ma-backup-\d{8}T\d{6}Z(-\d+)?")
UNFINISHED = ".unfinished"
BLOCK = 1024 * 1024
# Of the packages of this program; those of Django move with its version.
MIGRATIONS = re.compile(r"\d{4}_\w+")

DATABASE, SPOOL, MESSAGES, SECRETS = KINDS = "database", "spool", "messages", "secrets"

# What a backup has not, by code, for people.
LEFT_OUT = {
    "messages": "messages not included: the broker ran, or is another machine's",
    "secrets": "secrets not included: without them a lost machine gets new "
    "ones, and every token is made again",
    "handlings": "what KMAs were processing: such messages are the broker's, and are delivered again",
    "archive": "the archive of the pipeline: its files never change, copy them with a tool of your own",
    "other_hosts": "spools of KMAs on other hosts: they go on with their own",
}


@dataclass(frozen=True)
class Part:
    kind: str
    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """`migrations`: `app.name` of each that the database has. `stopped`: seconds for which everything was
    stopped, None where nothing had to be. `salt` and `seal`: of the whole, by the passphrase."""

    made_at: str
    version: str
    site: str
    data: str
    engine: str
    migrations: tuple[str, ...]
    parts: tuple[Part, ...]
    left_out: tuple[str, ...]
    stopped: float | None = None
    salt: str = ""
    seal: str = ""
    format: int = field(default=FORMAT)

    @property
    def at(self) -> datetime:
        return datetime.strptime(self.made_at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def of(self, kind: str) -> list[Part]:
        return [part for part in self.parts if part.kind == kind]


def version() -> str:
    found = re.search(r'"(\d[^"]*)"', (REPOSITORY / "contract" / "__init__.py").read_text("utf-8"))
    return found[1] if found else "unknown"


def known_migrations() -> frozenset[str]:
    """`app.name` of every migration that this program has."""
    files = REPOSITORY.glob("*/migrations/[0-9]*.py")
    return frozenset(f"{file.parent.parent.name}.{file.stem}" for file in files)


def own(migrations: frozenset[str] | tuple[str, ...]) -> frozenset[str]:
    """Without those of Django's own apps."""
    apps = {name.partition(".")[0] for name in known_migrations()}
    return frozenset(name for name in migrations if name.partition(".")[0] in apps)


# -- written -------------------------------------------------------------------------------------------------


def _digest_of(manifest: Manifest, salt: bytes) -> bytes:
    plain = replace(manifest, seal="", salt=salt.hex())
    return json.dumps(asdict(plain), sort_keys=True).encode()


def sealed(manifest: Manifest, key: bytes, salt: bytes) -> Manifest:
    """With the code that only who knows the passphrase can make."""
    code = hmac.new(key, _digest_of(manifest, salt), hashlib.sha256).hexdigest()
    return replace(manifest, salt=salt.hex(), seal=code)


def is_sealed_by(manifest: Manifest, key: bytes) -> bool:
    code = hmac.new(key, _digest_of(manifest, bytes.fromhex(manifest.salt)), hashlib.sha256).hexdigest()
    return hmac.compare_digest(code, manifest.seal)


def write(folder: Path, manifest: Manifest) -> None:
    text = json.dumps(asdict(manifest), indent=1, sort_keys=True)
    document = {"manifest": json.loads(text), "sha256": _sum(json.loads(text))}
    with (folder / MANIFEST).open("w", encoding="utf-8") as file:
        json.dump(document, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())


def _sum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def part_of(folder: Path, kind: str, path: Path) -> Part:
    return Part(kind, str(path.relative_to(folder)), path.stat().st_size, digest_of_file(path))


def digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- read ----------------------------------------------------------------------------------------------------


def backups_in(target: Path) -> list[Path]:
    """The whole ones, the oldest first."""
    found = (each for each in target.iterdir() if NAME.fullmatch(each.name) and each.is_dir())
    return sorted(found, key=lambda each: each.name)


def folder_of(named: Path) -> Path:
    """A backup, or the newest of the folder that holds backups. Raises DeployError."""
    if not named.exists():
        raise DeployError(f"{named} does not exist: name a backup, or the folder that ./ma backup was given")
    if not named.is_dir():
        raise DeployError(f"{named} is no backup: a backup is a folder with the file {MANIFEST}")
    if UNFINISHED in named.name:
        raise DeployError(
            f"{named} is what an interrupted ./ma backup left: it is not whole. Take another one"
        )
    if (named / MANIFEST).exists() or NAME.fullmatch(named.name):
        return named
    if not (found := backups_in(named)):
        raise DeployError(f"{named} holds no backup: name a backup, or the folder that ./ma backup was given")
    return found[-1]


def read(folder: Path) -> Manifest:
    """Raises DeployError where it is not what was written."""
    file = folder / MANIFEST
    damaged = f"{file} was cut off or changed since it was written: take another backup"
    try:
        document = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise DeployError(f"{folder} is not whole: it has no {MANIFEST}. Take another backup") from None
    except OSError as error:
        raise DeployError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise DeployError(damaged) from None
    try:
        content = document["manifest"]
        if _sum(content) != document["sha256"]:
            raise DeployError(damaged)
        if content["format"] != FORMAT:
            raise DeployError(
                f"{folder} has format {content['format']}, this program reads {FORMAT}: use version "
                f"{content['version']} of MA"
            )
        parts = tuple(Part(**part) for part in content["parts"])
        lists = {name: tuple(content[name]) for name in ("migrations", "left_out")}
        return Manifest(**{**content, **lists, "parts": parts})
    except (KeyError, TypeError):
        raise DeployError(damaged) from None


def problems_of(folder: Path, manifest: Manifest) -> Iterator[str]:
    """What differs from the manifest, by reading every byte."""
    named = {part.path for part in manifest.parts}
    for part in manifest.parts:
        path = folder / part.path
        try:
            size = path.stat().st_size
            if size != part.size:
                yield f"{path} was cut off or changed: {size} bytes, {part.size} were written"
            elif digest_of_file(path) != part.sha256:
                yield f"{path} was changed: its content is not what was written"
        except OSError as error:
            yield f"{path} cannot be read: {error.strerror}"
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not path.is_dir() and name not in named and name != MANIFEST:
            yield f"{path} is not part of this backup: remove it"
