"""A Python that is new enough: the oldest of those, so that Django differs and little else does."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from deploy.console import DeployError
from deploy.installing import system_packages
from deploy.installing.system_packages import Need

# Of Python 3: what Django 6.0 runs on.
MINORS = (12, 13, 14)
CHOSEN = "MA_TEST_NEWER_PYTHON"
# A virtual environment can be made, and python-qpid-proton be built.
PROBE = (
    "import ensurepip, sqlite3, ssl, sys, sysconfig, pathlib; "
    f"sys.exit(sys.version_info < (3, {MINORS[0]}) "
    "or not pathlib.Path(sysconfig.get_paths()['include'], 'Python.h').exists())"
)


def ensure(log: Path) -> Path:
    """Raises Problem: this machine has none, and its package manager knows none."""
    if found := find():
        return found
    try:
        system_packages.ensure_installed(_needs(), log, lambda text: print(text, flush=True))
    except DeployError as problem:
        raise DeployError(_nowhere()) from problem
    if found := find():
        return found
    raise DeployError(_nowhere())


def find() -> Path | None:
    return next((python for python in candidates() if _is_usable(python)), None)


def candidates() -> Iterator[Path]:
    """The one that was chosen and no other; else the one that runs this, those on PATH, those of pyenv."""
    if chosen := os.environ.get(CHOSEN):
        yield Path(chosen)
        return
    yield Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    folders = [Path(folder) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    for name in (f"python3.{minor}" for minor in MINORS):
        yield from (folder / name for folder in folders)
        yield from sorted(pyenv.glob(f"*/bin/{name}"))


def _is_usable(python: Path) -> bool:
    """Starts it: a name on PATH may be a shim of pyenv with nothing behind it."""
    try:
        return subprocess.run([python, "-c", PROBE], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _needs() -> tuple[Need, ...]:
    """Of one Python: the first that apt knows has all of them."""
    packages = [tuple(f"python3.{minor}-{part}" for minor in MINORS) for part in ("venv", "dev")]
    return tuple(
        Need(f"Python 3.{MINORS[0]} or newer", some, lambda: find() is not None) for some in packages
    )


def _nowhere() -> str:
    oldest = f"3.{MINORS[0]}"
    if chosen := os.environ.get(CHOSEN):
        return f"{CHOSEN}={chosen} is no Python {oldest} or newer with venv, sqlite3, ssl and headers"
    return (
        f"This Django needs Python {oldest} or newer with headers. None is on PATH or in ~/.pyenv/versions "
        "and apt gave none (Debian 12 has 3.11 only). Install one, for example by `pyenv install 3.13`, or "
        f"name one: {CHOSEN}=/path/to/python3.13"
    )
