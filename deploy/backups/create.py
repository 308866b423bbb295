"""./ma backup: written beside its name, synced, and renamed when it is whole. The database comes before the
spools: a spool that is newer than the database sends what that lacks, an older one would lose it."""

import errno
import fcntl
import io
import os
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deploy import environment
from deploy.backups import database, sealing
from deploy.backups import manifest as manifests
from deploy.backups.manifest import DATABASE, MESSAGES, SECRETS, SPOOL, UNFINISHED, Manifest, Part
from deploy.config import Config
from deploy.console import DeployError, Say
from deploy.layout import Layout
from deploy.processes import earlier_starts
from deploy.processes.runner import Runner

MB = 1024 * 1024
# Beside the parts: the manifest, and what a file system takes for itself.
SPARE = 16 * MB
SPOOL_FILE = "spool.sqlite3"
Standstill = Callable[[], AbstractContextManager[object]]
ENVIRONMENT = "run/environment.json"


@dataclass(frozen=True)
class Wanted:
    """`passphrase` empty: without the secrets. `keep` 0: every backup stays."""

    target: Path
    passphrase: str
    messages: bool
    keep: int = 0


def create(
    config: Config, layout: Layout, wanted: Wanted, standstill: Standstill, say: Say
) -> tuple[Path, Manifest]:
    """`standstill`: nothing runs within it. Raises DeployError, and then nothing is left behind."""
    url = environment.database_url(config, layout)
    with _alone(wanted.target):
        _sweep(wanted.target)
        _refuse_little_space(layout, url, wanted)
        folder = _free_name(wanted.target, datetime.now(UTC))
        draft = folder.with_name(folder.name + UNFINISHED)
        try:
            draft.mkdir(mode=0o700)
            made = _fill(draft, url, layout, wanted, standstill, say)
            draft.rename(folder)
            manifests.sync_folder(wanted.target)
        except OSError as error:
            raise DeployError(_sentence(error, wanted.target)) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        for old in superfluous(wanted.target, made, wanted.keep):
            _remove(old)
            say(f"{old.name} removed: --keep {wanted.keep}")
    return folder, made


def superfluous(target: Path, made: Manifest, keep: int) -> list[Path]:
    """Older backups of the same site beyond so many. What cannot be read is nobody's to delete."""
    same = []
    for each in manifests.backups_in(target):
        with suppress(DeployError):
            if manifests.read(each).site == made.site:
                same.append(each)
    return same[:-keep] if keep else []


# -- the target --------------------------------------------------------------------------------------------


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """One backup at a time into a folder."""
    try:
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise DeployError(_sentence(error, target)) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise DeployError(f"another ./ma backup is writing into {target}: wait for it") from None
    finally:
        os.close(descriptor)


def _sweep(target: Path) -> None:
    """What a killed backup left."""
    for each in target.glob(f"ma-backup-*{UNFINISHED}"):
        shutil.rmtree(each, ignore_errors=True)


def _remove(backup: Path) -> None:
    """Killed in the middle of it, nothing is left that is taken for a backup."""
    gone = backup.with_name(backup.name + UNFINISHED)
    backup.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _free_name(target: Path, now: datetime) -> Path:
    plain = target / f"ma-backup-{now:%Y%m%dT%H%M%SZ}"
    number, free = 1, plain
    while free.exists():
        number += 1
        free = plain.with_name(f"{plain.name}-{number}")
    return free


def _sentence(error: OSError, target: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(target).free // MB
        return f"no backup was made: the disk of {target} is full ({free} MB free); nothing was left there"
    why = f"{error.filename or target}: {error.strerror or error}"
    return f"no backup was made: {why}. Name a folder that this user may write"


def _refuse_little_space(layout: Layout, url: str, wanted: Wanted) -> None:
    needed = SPARE + _size(layout.data / "kma")
    if database.engine_of(url) == database.SQLITE:
        needed += sum(_size(Path(f"{database.file_of(url)}{suffix}")) for suffix in ("", "-wal"))
    if wanted.messages:
        needed += _size(layout.broker / "data")
    free = shutil.disk_usage(wanted.target).free
    if free < needed:
        raise DeployError(
            f"no backup was made: the disk of {wanted.target} has {free // MB} MB free, "
            f"{needed // MB} MB are "
            "needed. Nothing was written"
        )


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size if path.exists() else 0
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())


# -- the parts -----------------------------------------------------------------------------------------------


def _fill(
    draft: Path, url: str, layout: Layout, wanted: Wanted, standstill: Standstill, say: Say
) -> Manifest:
    runs = Runner(layout).alive() or bool(earlier_starts.find(layout))
    stopped: float | None = None
    if wanted.messages and runs:
        began = time.monotonic()
        with standstill():
            facts, parts = _copy(draft, url, layout, still=True)
        stopped = round(time.monotonic() - began, 1)
        say(f"everything was stopped for {stopped} s")
    else:
        facts, parts = _copy(draft, url, layout, still=not runs)
    if wanted.passphrase:
        parts.append(_secrets(draft, layout, wanted.passphrase))
    made = Manifest(
        made_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        version=manifests.version(),
        site=facts.site,
        data=str(layout.data),
        engine=database.engine_of(url),
        migrations=facts.migrations,
        parts=tuple(parts),
        left_out=tuple(left_out(parts, still=not runs or stopped is not None)),
        stopped=stopped,
    )
    if wanted.passphrase:
        salt = sealing.new_salt()
        made = manifests.sealed(made, sealing.key_of(wanted.passphrase, salt), salt)
    manifests.write(draft, made)
    for folder in (draft, *(each for each in draft.rglob("*") if each.is_dir())):
        manifests.sync_folder(folder)
    return made


def left_out(parts: list[Part], *, still: bool) -> Iterator[str]:
    """Codes of what a person must know to be missing."""
    kinds = {part.kind for part in parts}
    if MESSAGES not in kinds:
        yield "messages"
    if SECRETS not in kinds:
        yield "secrets"
    if not still:
        yield "handlings"
    yield "archive"
    yield "other_hosts"


def _copy(draft: Path, url: str, layout: Layout, *, still: bool) -> tuple[database.Facts, list[Part]]:
    """`still`: nothing runs, so what KMAs handle and what the broker has can be copied."""
    engine = database.engine_of(url)
    facts = database.copy(url, draft / database.FILES[engine])
    parts = [manifests.part_of(draft, DATABASE, draft / database.FILES[engine])]
    for spool in sorted((layout.data / "kma").glob(f"*/{SPOOL_FILE}")):
        parts += _spool(draft, spool.parent, still=still)
    if still and (layout.broker / "data").is_dir():
        archive = draft / "messages.tar"
        with archive.open("wb") as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                tar.add(layout.broker / "data", "broker/data")
            _sync(file)
        parts.append(manifests.part_of(draft, MESSAGES, archive))
    return facts, parts


def _spool(draft: Path, folder: Path, *, still: bool) -> Iterator[Part]:
    """The journal and the desired state are of what the KMA does just now: only where it does nothing."""
    to = draft / "spools" / folder.name
    to.mkdir(parents=True, mode=0o700)
    database.copy_sqlite(folder / SPOOL_FILE, to / SPOOL_FILE)
    yield manifests.part_of(draft, SPOOL, to / SPOOL_FILE)
    if not still:
        return
    for each in sorted(folder.rglob("*")):
        if each.is_file() and not each.name.startswith(SPOOL_FILE):
            copied = to / each.relative_to(folder)
            copied.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copy2(each, copied)
            with copied.open("rb") as file:
                os.fsync(file.fileno())
            yield manifests.part_of(draft, SPOOL, copied)


def _secrets(draft: Path, layout: Layout, passphrase: str) -> Part:
    """With the authority of this installation, and with what the last start was given."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name in ("secrets", "tls", ENVIRONMENT):
            if (layout.data / name).exists():
                tar.add(layout.data / name, name)
    file = draft / "secrets.tar.enc"
    with file.open("wb") as written:
        written.write(sealing.encrypted(plain.getvalue(), passphrase))
        _sync(written)
    return manifests.part_of(draft, SECRETS, file)


def _sync(file: io.BufferedWriter) -> None:
    file.flush()
    os.fsync(file.fileno())
