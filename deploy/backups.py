"""`backup` and `restore`: a folder for each backup, with a manifest that says what is in it, what is not, and
the digest of every part.

A backup is made in a folder with another name and renamed when all of it is on the disk: whoever is killed
before leaves `.unfinished-…`, which is no backup, and which the next one removes. A restore deletes nothing;
at each instant there is a whole database in its place, the old one or the new one.
"""

import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from deploy.console import DeployError
from deploy.console import say_if_heard as say

MANIFEST, UNFINISHED, BEGIN = "manifest.json", ".unfinished-", "ma-"
FORMAT = 1
# Of openssl: a key is made of the passphrase in so many rounds.
CIPHER = ("enc", "-aes-256-cbc", "-pbkdf2", "-iter", "600000", "-md", "sha256")
PIECE = 1 << 20


@dataclass(frozen=True)
class Part:
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """`stopped_seconds`: how long broker and KMAs stood still, None where they were not stopped."""

    version: str
    taken_at: str
    parts: list[Part]
    left_out: list[str] = field(default_factory=list)
    stopped_seconds: float | None = None
    format: int = FORMAT


@dataclass(frozen=True)
class Installation:
    """What there is to back up. `stopped`: folders that may be copied only while nothing runs, by name."""

    version: str
    database_url: str
    secrets: Path | None
    stopped: Mapping[str, Path] = field(default_factory=dict)


# -- backing up ----------------------------------------------------------------------------------------------


def take(
    what: Installation, target: Path, passphrase: Path | None, now: datetime, *, stopped: bool = False
) -> Path:
    """The folder of the new backup. Raises DeployError, and then there is none."""
    name = f"{BEGIN}{now:%Y%m%dT%H%M%SZ}"
    aside, final = target / f"{UNFINISHED}{name}", target / name
    try:
        target.mkdir(parents=True, exist_ok=True)
        for left in target.glob(f"{UNFINISHED}*"):
            shutil.rmtree(left)
        if final.exists():
            raise DeployError(f"{final} is there already: wait a second")
        aside.mkdir(mode=0o700)
        began, left_out = time.monotonic(), []
        if stopped:
            for part, folder in what.stopped.items():
                _pack(folder, aside / f"{part}.tar")
        elif what.stopped:
            left_out.append("messages not included: the broker and the KMAs were running")
        else:
            left_out.append("messages not included: the broker is not of this installation")
        seconds = round(time.monotonic() - began, 1) if stopped else None
        _dump(what.database_url, aside)
        if what.secrets is None:
            left_out.append("secrets not included: they are not in files of this installation")
        elif passphrase is None:
            left_out.append("secrets not included: no passphrase was given")
        else:
            _encrypt(what.secrets, aside / "secrets.tar.enc", passphrase)
        parts = [_part(path) for path in sorted(aside.iterdir())]
        manifest = Manifest(what.version, f"{now:%Y-%m-%dT%H:%M:%SZ}", parts, left_out, seconds)
        _write(aside / MANIFEST, json.dumps(asdict(manifest), indent=1).encode() + b"\n")
        _sync_folder(aside)
        aside.rename(final)
        _sync_folder(target)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise DeployError(
            f"the backup was not made: {error.filename or target}: {error.strerror or error}"
        ) from error
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return final


def _dump(url: str, folder: Path) -> None:
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        path = folder / "database.sqlite3"
        try:
            with (
                closing(sqlite3.connect(f"file:{_sqlite_path(url)}?mode=ro", uri=True)) as source,
                closing(sqlite3.connect(path)) as copy,
            ):
                source.backup(copy)
        except sqlite3.Error as error:
            raise DeployError(f"the backup was not made: the database cannot be copied: {error}") from error
        _sync_file(path)
        return
    path = folder / "database.dump"
    _postgresql("pg_dump", url, "--format=custom", "--no-owner", f"--file={path}")
    _sync_file(path)


def _sqlite_path(url: str) -> Path:
    return Path("/" + unquote(urlsplit(url).path).lstrip("/"))


def _postgresql(program: str, url: str, *arguments: str) -> None:
    """The password goes by the environment: others see the arguments."""
    if shutil.which(program) is None:
        raise DeployError(f"{program} is missing. On Debian: sudo apt-get install postgresql-client")
    parts = urlsplit(url)
    shown = parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@")).geturl()
    done = subprocess.run(
        [program, *arguments, f"--dbname={shown}"], capture_output=True, text=True, check=False,
        env={**os.environ, "PGPASSWORD": unquote(parts.password or "")},
    )  # fmt: skip
    if done.returncode != 0:
        raise DeployError(f"{program} failed: {done.stderr.strip()[-1000:]}")


def _pack(folder: Path, path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        archive.add(folder, arcname=".")
    _sync_file(path)


def _encrypt(folder: Path, path: Path, passphrase: Path) -> None:
    plain = path.with_suffix(".plain")
    try:
        plain.touch(mode=0o600)
        _pack(folder, plain)
        _openssl("-salt", "-pass", f"file:{passphrase}", "-in", str(plain), "-out", str(path))
    finally:
        plain.unlink(missing_ok=True)
    _sync_file(path)


def _openssl(*arguments: str) -> None:
    if shutil.which("openssl") is None:
        raise DeployError("openssl is missing. On Debian: sudo apt-get install openssl")
    done = subprocess.run(["openssl", *CIPHER, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DeployError(f"openssl failed: {done.stderr.strip()[-500:]}")


def _part(path: Path) -> Part:
    return Part(path.name, path.stat().st_size, _digest(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    _sync_file(path)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def forget(target: Path, keep: int) -> list[Path]:
    """Deletes all but the newest; their names are their times. What it deleted."""
    found = sorted(path for path in target.glob(f"{BEGIN}*Z") if (path / MANIFEST).is_file())
    old = found[:-keep] if keep else []
    for path in old:
        shutil.rmtree(path)
    return old


# -- putting back --------------------------------------------------------------------------------------------


def check(backup: Path) -> Manifest:
    """Reads all of it. Raises DeployError with the first thing that is wrong."""
    path = backup / MANIFEST
    try:
        read: dict[str, Any] = json.loads(path.read_text("utf-8"))
        manifest = Manifest(**{**read, "parts": [Part(**each) for each in read["parts"]]})
    except FileNotFoundError:
        raise DeployError(f"{backup} is no backup: it has no {MANIFEST}, or was cut off") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DeployError(f"{path} cannot be read: {error}") from error
    if manifest.format != FORMAT:
        raise DeployError(f"{backup} has format {manifest.format}; this version reads {FORMAT}")
    for part in manifest.parts:
        file = backup / part.name
        if not file.is_file():
            raise DeployError(f"{file} is missing: use another backup")
        if (size := file.stat().st_size) != part.bytes:
            raise DeployError(
                f"{file} has {size} bytes, not {part.bytes}: it was cut off; use another backup"
            )
        if _digest(file) != part.sha256:
            raise DeployError(f"{file} was changed: its SHA-256 is another one; use another backup")
    return manifest


def put_back(backup: Path, what: Installation, now: datetime) -> list[str]:
    """The database alone: broker and KMAs have newer truths. What was done, a line each. Raises DeployError,
    and then nothing was changed."""
    manifest = check(backup)
    if _newer(manifest.version, what.version):
        raise DeployError(
            f"{backup} is of version {manifest.version}, this one is {what.version}: install that one first"
        )
    names = {part.name for part in manifest.parts}
    said = [f"{backup}: of version {manifest.version}, taken at {manifest.taken_at}"]
    if urlsplit(what.database_url).scheme == "sqlite":
        if "database.sqlite3" not in names:
            raise DeployError(f"{backup} is of a site with PostgreSQL: name that database in MA_DATABASE_URL")
        said += _put_sqlite(backup / "database.sqlite3", _sqlite_path(what.database_url), now)
    else:
        if "database.dump" not in names:
            raise DeployError(f"{backup} is of a site with SQLite: use ./ma move-to-postgresql afterwards")
        _put_postgresql(backup / "database.dump", what.database_url)
        said.append("the database was filled")
    said += [f"not in it: {line}" for line in manifest.left_out]
    said.append(
        "not in it: failures, settings and notes since then; KMAs send their failures again "
        "(docs/how-to/restore-database.md)"
    )
    return said


def _newer(one: str, other: str) -> bool:
    """Later than `other`, by major and minor."""
    return _numbers(one) > _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def _put_sqlite(copy: Path, place: Path, now: datetime) -> list[str]:
    """At each instant there is a whole database in the place: the old one, then the new one."""
    said, end = [], f".before-{now:%Y%m%dT%H%M%SZ}"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{place.name}.restored")
        shutil.copyfile(copy, draft)
        draft.chmod(0o600)
        _sync_file(draft)
        if place.exists():
            _fold_log_in(place)
            # The log of the old one beside the new one would damage that.
            for path in (Path(f"{place}-wal"), Path(f"{place}-shm")):
                if path.exists():
                    path.rename(f"{path}{end}")
            os.link(place, f"{place}{end}")
            said.append(f"kept aside: {place}{end}")
        draft.replace(place)
        _sync_folder(place.parent)
    except OSError as error:
        raise DeployError(f"{error.filename or place}: {error.strerror or error}") from error
    return [*said, f"restored: {place}"]


def _fold_log_in(place: Path) -> None:
    """So that the old database is whole without its log. One that is damaged keeps it beside."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(place, timeout=5)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _put_postgresql(dump: Path, url: str) -> None:
    """In one transaction, into an empty database: what is there stays as it is."""
    _postgresql("pg_restore", url, "--no-owner", "--single-transaction", "--exit-on-error", str(dump))


# -- the commands --------------------------------------------------------------------------------------------


def backup_options(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description="Backs up this installation.")
    parser.add_argument("target", type=Path, metavar="FOLDER", help="where backups are kept")
    parser.add_argument(
        "--passphrase-file",
        type=Path,
        metavar="FILE",
        help="encrypts the secrets; without it none are kept",
    )
    parser.add_argument("--keep", type=int, default=0, metavar="N", help="delete all but the newest N")
    return parser


def restore_options(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description="Checks a backup, or puts its database back.")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--check", type=Path, metavar="BACKUP", help="read all of it, change nothing")
    how.add_argument("--apply", type=Path, metavar="BACKUP", help="put the database of a stopped site back")
    return parser


def run_backup(chosen: argparse.Namespace, what: Installation, *, stopped: bool) -> Path:
    if chosen.keep < 0:
        raise DeployError("--keep must not be negative")
    if (file := chosen.passphrase_file) is not None and not (file.is_file() and file.read_text().strip()):
        raise DeployError(f"{file} holds no passphrase")
    path = take(what, chosen.target.absolute(), chosen.passphrase_file, datetime.now(UTC), stopped=stopped)
    manifest = check(path)
    for part in manifest.parts:
        say(f"{part.bytes:>14,}  {part.name}")
    for line in manifest.left_out:
        say(line)
    for old in forget(chosen.target.absolute(), chosen.keep):
        say(f"deleted: {old}")
    say(f"backup: {path}")
    return path


def run_restore(arguments: Sequence[str], prog: str, what: Installation, running: str) -> int:
    """`running`: why the site is thought to run, "" where it does not."""
    chosen = restore_options(prog).parse_args(arguments)
    if chosen.check is not None:
        manifest = check(chosen.check)
        say(f"ok: {chosen.check}, version {manifest.version}, {len(manifest.parts)} parts")
        return 0
    if running:
        raise DeployError(f"{running}: stop it first, a restored database under a running site is damaged")
    for line in put_back(chosen.apply, what, datetime.now(UTC)):
        say(line)
    return 0
