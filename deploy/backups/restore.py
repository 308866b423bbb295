"""./ma restore: --check reads all of a backup and touches nothing; --apply puts it into an installation that
does not run. What was there is moved aside, never deleted. Killed half way it is said by the next start, and
the same command goes on."""

import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deploy import environment
from deploy.backups import database, sealing
from deploy.backups import manifest as manifests
from deploy.backups.create import ENVIRONMENT, MB, SPARE
from deploy.backups.manifest import DATABASE, LEFT_OUT, MESSAGES, SECRETS, SPOOL, Manifest
from deploy.config import Config
from deploy.console import DeployError, Say, duration
from deploy.layout import Layout
from deploy.processes import earlier_starts
from deploy.processes.runner import Runner

STAGED = "restored.new"
WAL = ("-wal", "-shm")
# What a whole restore replaces, beside the database.
WHOLE = ("kma", "broker/data", "secrets", "tls", ENVIRONMENT)


@dataclass(frozen=True)
class Checked:
    """`opened`: the passphrase was right, and secrets and the seal are what was written."""

    folder: Path
    manifest: Manifest
    opened: bool


def check(named: Path, passphrase: str = "") -> Checked:
    """Reads every byte. Raises DeployError with all that is wrong."""
    folder = manifests.folder_of(named)
    found = manifests.read(folder)
    if problems := list(manifests.problems_of(folder, found)):
        raise DeployError("\n".join((*problems, f"{folder} is not whole: take another backup")))
    main = folder / found.of(DATABASE)[0].path
    if problem := database.problem_of(found.engine, main):
        raise DeployError(f"{main} is damaged: {problem}. Take another backup")
    if not passphrase or not found.of(SECRETS):
        return Checked(folder, found, opened=False)
    sealing.decrypted((folder / found.of(SECRETS)[0].path).read_bytes(), passphrase)
    if not manifests.is_sealed_by(found, sealing.key_of(passphrase, bytes.fromhex(found.salt))):
        raise DeployError(f"{folder} was changed by somebody without the passphrase: take another backup")
    return Checked(folder, found, opened=True)


def refuse_other_schema(found: Manifest) -> None:
    """A database that a newer program made; an older one is migrated by the next start."""
    unknown = sorted(manifests.own(found.migrations) - manifests.known_migrations())
    if unknown:
        raise DeployError(
            f"the backup is of version {found.version}, whose database has what this version "
            f"({manifests.version()}) does not know: {', '.join(unknown)}. Restore it with version "
            f"{found.version} or newer. Nothing was changed"
        )


# -- applied -----------------------------------------------------------------------------------------------


def apply(config: Config, layout: Layout, named: Path, passphrase: str, *, whole: bool, say: Say) -> None:
    """`whole`: everything, also where something is; else that only into an empty data folder, and into a
    used one the database alone. Raises DeployError."""
    refuse_running(layout)
    checked = check(named, passphrase)
    found, url = checked.manifest, environment.database_url(config, layout)
    refuse_other_schema(found)
    _refuse_other_engine(found, url)
    marker = read_marker(layout)
    whole = bool(marker["whole"]) if marker else whole or is_unused(layout, url)
    if whole and found.of(SECRETS) and not checked.opened:
        raise DeployError("the backup holds secrets: name the file with its passphrase (--passphrase-file)")
    if found.engine == database.POSTGRESQL:
        database.refuse_filled(url)
    _refuse_little_space(layout, found)
    staged = layout.data / STAGED
    shutil.rmtree(staged, ignore_errors=True)
    try:
        _stage(checked, staged, layout, passphrase, whole=whole)
        _sync(staged)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    if found.engine == database.POSTGRESQL:
        database.load(url, checked.folder / found.of(DATABASE)[0].path)
    aside = _switch(layout, url, staged, whole=whole, of=found)
    for line in _said(layout, found, aside, whole=whole, now=datetime.now(UTC)):
        say(line)


def refuse_running(layout: Layout) -> None:
    if Runner(layout).alive() or earlier_starts.find(layout):
        raise DeployError(f"{layout.data} is in use: ./ma down, then again. Nothing was changed")


def is_unused(layout: Layout, url: str) -> bool:
    """Nothing is here that a restore could be in the way of."""
    file = database.file_of(url) if database.engine_of(url) == database.SQLITE else layout.database
    return not file.exists() and not any(_filled(layout.data / name) for name in WHOLE)


def _filled(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def _refuse_other_engine(found: Manifest, url: str) -> None:
    if found.engine == database.engine_of(url):
        return
    names = {database.SQLITE: "SQLite", database.POSTGRESQL: "PostgreSQL"}
    raise DeployError(
        f"the backup is of {names[found.engine]}, this installation uses "
        f"{names[database.engine_of(url)]} ({database.place_of(url)}): set "
        f"MA_DATABASE_URL to a database of the "
        "same kind, or to nothing for SQLite. Nothing was changed"
    )


def _refuse_little_space(layout: Layout, found: Manifest) -> None:
    layout.data.mkdir(parents=True, exist_ok=True)
    needed, free = found.size + SPARE, shutil.disk_usage(layout.data).free
    if free < needed:
        raise DeployError(
            f"{layout.data} has {free // MB} MB free, the backup needs {needed // MB} MB. Nothing was changed"
        )


def _stage(checked: Checked, staged: Path, layout: Layout, passphrase: str, *, whole: bool) -> None:
    """All of it on the disk that it belongs to, before anything is moved."""
    found = checked.manifest
    staged.mkdir(mode=0o700, parents=True)
    if found.engine == database.SQLITE:
        shutil.copy2(checked.folder / found.of(DATABASE)[0].path, staged / layout.database.name)
    if not whole:
        return
    for part in found.of(SPOOL):
        to = staged / "kma" / Path(part.path).relative_to("spools")
        to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copy2(checked.folder / part.path, to)
    for part in found.of(MESSAGES):
        with tarfile.open(checked.folder / part.path) as tar:
            tar.extractall(staged, filter="data")
    for part in found.of(SECRETS):
        plain = sealing.decrypted((checked.folder / part.path).read_bytes(), passphrase)
        with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
            tar.extractall(staged, filter="data")
    if found.data != str(layout.data):
        # It names files of the folder that was.
        (staged / ENVIRONMENT).unlink(missing_ok=True)
    for folder in (staged / "secrets", staged / "tls", staged / "kma", staged / "run"):
        if folder.is_dir():
            folder.chmod(0o700)


def _sync(folder: Path) -> None:
    for each in folder.rglob("*"):
        if each.is_file():
            with each.open("rb") as file:
                os.fsync(file.fileno())
        elif each.is_dir():
            manifests.sync_folder(each)


# -- the switch, by renames; a marker says that it is under way ----------------------------------------------


def read_marker(layout: Layout) -> dict[str, str | bool] | None:
    """What a killed restore was about."""
    with suppress(OSError, ValueError):
        return dict(json.loads(layout.restore_marker.read_text("utf-8")))
    return None


def _switch(layout: Layout, url: str, staged: Path, *, whole: bool, of: Manifest) -> Path:
    """Returns where that is which was there."""
    marker = read_marker(layout)
    name = str(marker["aside"]) if marker else f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    aside = layout.data / name
    _write_marker(layout, {"aside": name, "whole": whole})
    for place, old, new in _moves(layout, url, staged, aside, whole=whole, of=of):
        if place.exists() or place.is_symlink():
            if old.exists():
                # A killed restore has put it there.
                shutil.rmtree(place) if place.is_dir() else place.unlink()
            else:
                old.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                place.rename(old)
        if new is not None and new.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            new.rename(place)
            manifests.sync_folder(place.parent)
    shutil.rmtree(staged, ignore_errors=True)
    layout.restore_marker.unlink()
    manifests.sync_folder(layout.data)
    return aside


def _write_marker(layout: Layout, content: dict[str, str | bool]) -> None:
    draft = layout.data / f".{layout.restore_marker.name}"
    with draft.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(layout.restore_marker)
    manifests.sync_folder(layout.data)


def _moves(
    layout: Layout, url: str, staged: Path, aside: Path, *, whole: bool, of: Manifest
) -> Iterator[tuple[Path, Path, Path | None]]:
    """(where, where to with what is there, what comes there)"""
    if of.engine == database.SQLITE:
        file = database.file_of(url)
        for suffix in (*WAL, ""):
            place = file.with_name(file.name + suffix)
            yield place, aside / place.name, None if suffix else staged / layout.database.name
    if whole:
        for name in WHOLE:
            if name in WHOLE[2:] and not of.of(SECRETS):
                # Without others to take their place those that are here go on.
                continue
            yield layout.data / name, aside / name, staged / name


# -- what cannot come back -----------------------------------------------------------------------------------


def _said(layout: Layout, found: Manifest, aside: Path, *, whole: bool, now: datetime) -> Iterator[str]:
    yield f"restored from {found.made_at}, {duration((now - found.at).total_seconds())} ago: " + (
        "everything that the backup has" if whole else "the database; all else here is newer and stays"
    )
    if aside.exists():
        yield f"what was here is in {aside}: delete it yourself when you are sure"
    yield ("cannot come back:")
    yield "  - what was done in the site since then: settings, switches, notes, the audit"
    if whole:
        yield from (f"  - {LEFT_OUT[code]}" for code in found.left_out)
        if found.of(MESSAGES):
            yield "  - messages published since then; those processed since then are processed again"
        yield "  - failures of KMAs of this machine since then; KMAs elsewhere send theirs again"
    else:
        yield "  - failures that no KMA keeps any more (KMA_KEEP_HOURS); all others are sent again"
    yield "next: ./ma up --detach; ./ma doctor names what is still on its way"
