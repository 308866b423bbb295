"""A program: an installation on a small file system of its own that is really full, and what commands say
there.

It needs a mount namespace: `unshare --map-root-user --mount PYTHON -m tests.deploy.on_full_disk FOLDER CASE`.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deploy import config as configuration
from deploy.config import REPOSITORY
from deploy.environment import Process
from deploy.layout import Layout
from deploy.processes import order
from deploy.processes.runner import Runner, write_runner_files
from deploy.services.ports import free_ports
from tests import migrated
from tests.environment import values

CHATTY = "sh -c 'while true; do echo a line of a log that finds no room; sleep 0.02; done'"
Told = dict[str, Any]


def mounted(folder: Path, megabytes: int) -> Path:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], check=True)
    data = folder / "data"
    data.mkdir()
    return data


def fill(folder: Path) -> None:
    """To the last byte, as far as anybody who writes a byte can tell."""
    for size in (64 * 1024, 1):
        try:
            with (folder / f"fill-{size}").open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * size)
        except OSError as error:
            assert error.errno == 28, error


def ran(command: list[str], environ: dict[str, str], output: Path | None = None) -> Told:
    """`output`: where its standard output goes; None: it is told."""
    out = output.open("w") if output is not None else subprocess.PIPE
    known = {**os.environ, **environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=known,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=240,
    )
    return {"code": done.returncode, "out": done.stdout or "", "err": done.stderr}


def status(folder: Path) -> Told:
    data = mounted(folder, 2)
    layout = Layout(data)
    layout.make_folders()
    config = configuration.read({"MA_DATA": str(data)})
    write_runner_files([Process("web", CHATTY)], config, layout)
    Runner(layout).begin()
    try:
        Runner(layout).start("web")
        while not Runner(layout).state("web").running:
            time.sleep(0.05)
        fill(folder)
        environ = {"MA_DATA": str(data), "MA_PORT": str(free_ports(1)[0])}
        return {
            "text": ran(["./ma", "status"], environ),
            "json": ran(["./ma", "status", "--json"], environ),
            "into_it": ran(["./ma", "status"], environ, folder / "output"),
        }
    finally:
        order.stop_everything(layout, lambda text: None)


def doctor(folder: Path) -> Told:
    data = mounted(folder, 64)
    environ = values(data)
    migrated.make_file(data / "db.sqlite3")
    fill(folder)
    return ran([sys.executable, "manage.py", "doctor", "--json"], environ)


CASES: dict[str, Callable[[Path], Told]] = {"status": status, "doctor": doctor}

if __name__ == "__main__":
    print(json.dumps(CASES[sys.argv[2]](Path(sys.argv[1]))))
