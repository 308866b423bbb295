"""The virtual environment: made once, and filled again when a requirement or the Python has changed."""

import hashlib
import shutil
from pathlib import Path

from deploy.config import REPOSITORY
from deploy.console import run_logged
from deploy.installing import python_packages

DJANGO = "django>=6.0,<6.1"
NOT_PINNED = "django=="


def requirements() -> tuple[str, ...]:
    """All of the product and of its tests."""
    names = ("requirements.txt", "requirements-test.txt")
    pinned = [line for name in names for line in python_packages.requirements(name)]
    return (DJANGO, *(line for line in pinned if not line.startswith(NOT_PINNED)))


def constraints() -> str:
    lines = (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.lower().startswith(NOT_PINNED))


def ensure(folder: Path, python: Path, log: Path) -> Path:
    """Its folder of programs. The stamp is written last: an interrupted installation is done again."""
    venv, stamp = folder / "venv", folder / "installed.sha256"
    wanted = hashlib.sha256("\n".join((str(python), *requirements(), constraints())).encode()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == wanted):
        stamp.unlink(missing_ok=True)
        shutil.rmtree(venv, ignore_errors=True)
        run_logged([python, "-m", "venv", venv], what="The creation of a virtual environment", log=log)
        bounds = folder / "constraints.txt"
        bounds.write_text(constraints(), "utf-8")
        pip: list[str | Path] = [venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
        run_logged([*pip, "install", "-c", bounds, *requirements()], what="pip install", log=log)
        stamp.write_text(wanted)
    return venv / "bin"
