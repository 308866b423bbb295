"""The virtual environment .venv: the pinned requirements, installed anew only when they have changed."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.config import REPOSITORY
from deploy.console import run_logged
from deploy.installing import artemis_download
from deploy.layout import Layout
from deploy.processes import earlier_starts

VENV = REPOSITORY / ".venv"
PYTHON = VENV / "bin" / "python"
CONSTRAINTS = REPOSITORY / "constraints.txt"

# Hundreds of megabytes that the first page does not need: installed in the background, and so what only
# serves them.
LARGE = "pyspark"
LATER = (LARGE, "pyarrow")


def requirements(name: str) -> tuple[str, ...]:
    """The lines of a requirements file, those of the files that it names included."""
    lines: list[str] = []
    for line in (REPOSITORY / name).read_text("utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            lines += requirements(text.removeprefix("-r ").strip())
        elif text and not text.startswith("-"):
            lines.append(text)
    return tuple(lines)


def for_start() -> tuple[str, ...]:
    return tuple(line for line in requirements("requirements.txt") if not line.startswith(LATER))


def for_background() -> tuple[str, ...]:
    return tuple(line for line in requirements("requirements.txt") if line.startswith(LATER))


def for_tests() -> tuple[str, ...]:
    return requirements("requirements-test.txt")


def installed(lines: Sequence[str], stamp: str) -> bool:
    path = _stamp(stamp)
    return PYTHON.exists() and path.exists() and path.read_text("utf-8") == _digest(lines)


def install(lines: Sequence[str], stamp: str, log: Path) -> None:
    """The stamp is written last: an interrupted installation is done again."""
    if not PYTHON.exists():
        run_logged([sys.executable, "-m", "venv", VENV], what="The creation of .venv", log=log)
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check"]
    run_logged([*pip, "install", "-c", CONSTRAINTS, *lines], what="pip install", log=log)
    _stamp(stamp).write_text(_digest(lines), "utf-8")


def install_in_background(layout: Layout) -> bool:
    """Whether something has still to be installed; this module, run as a program, is doing it then."""
    if installed(for_background(), "background") and artemis_download.fetched():
        return False
    with layout.log(LARGE).open("ab") as log:
        subprocess.Popen(
            [str(PYTHON), "-m", "deploy.installing.python_packages", str(layout.log(LARGE))],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=earlier_starts.marked(layout),
            start_new_session=True,
        )
    return True


def _stamp(name: str) -> Path:
    return VENV / f"ma-{name}.sha256"


def _digest(lines: Sequence[str]) -> str:
    """pyvenv.cfg names the Python: after an upgrade of it everything has to be installed anew."""
    parts = ((VENV / "pyvenv.cfg").read_text("utf-8"), *sorted(lines), CONSTRAINTS.read_text("utf-8"))
    text = "\n".join(parts)
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    os.nice(19)
    install(for_background(), "background", Path(sys.argv[1]))
    artemis_download.ensure_fetched(Path(sys.argv[1]))
