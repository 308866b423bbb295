"""Runs the programs that an installation step needs; their output goes to a log, a failure is one problem."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.console import DeployError

SHOWN_LINES = 5


def run_logged(
    command: Sequence[str | Path],
    *,
    what: str,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        output.write(f"$ {' '.join(str(part) for part in command)}\n".encode())
        output.flush()
        try:
            done = subprocess.run(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env) if env is not None else None,
                cwd=cwd,
                check=False,
            )
        except OSError as error:
            raise DeployError(f"{what} failed: {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise DeployError(
            f"{what} failed with exit code {done.returncode}; all of it is in {log}\n{_tail(log)}"
        )


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f"  | {line}" for line in lines[-SHOWN_LINES:])
