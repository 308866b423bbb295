"""Which agents this server's modules offer. User code is imported in a process of its own, never in the
container: `python -m kma.agent_discovery MODULE…` prints JSON as its last line.
"""

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from contract import reasons
from contract.messages import OfferedAgent
from contract.reasons import Reason

SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class OfferedAgents:
    agents: tuple[OfferedAgent, ...] = ()
    problems: tuple[Reason, ...] = ()

    def version_of(self, name: str) -> str:
        return next((agent.version for agent in self.agents if agent.name == name), "")


def inspect_modules(modules: Sequence[str]) -> OfferedAgents:
    """Never raises: what cannot be imported is a problem to show."""
    from kma.children.process import child_environment

    try:
        done = subprocess.run(
            [sys.executable, "-m", "kma.agent_discovery", *modules],
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return OfferedAgents(
            problems=(reasons.MODULES_TOO_SLOW(modules=", ".join(modules), seconds=SECONDS),)
        )
    except OSError as error:
        return OfferedAgents(problems=(reasons.NO_PROCESS_FOR_MODULES(detail=str(error)),))
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    try:
        found = json.loads(lines[-1])
        problems = tuple(Reason(**problem) for problem in found["problems"])
        return OfferedAgents(tuple(OfferedAgent(**agent) for agent in found["agents"]), problems)
    except (IndexError, ValueError, TypeError, KeyError):
        ended = reasons.MODULES_ENDED_PROCESS(modules=", ".join(modules), status=done.returncode)
        return OfferedAgents(problems=(ended,))


def imported(modules: Sequence[str]) -> dict[str, Any]:
    """Imports the modules here and now."""
    from kma.sdk import registry

    problems = []
    for module in modules:
        try:
            importlib.import_module(module)
        except BaseException as error:
            traceback.print_exc()
            problems.append(
                reasons.MODULE_NOT_IMPORTED(module=module, type=type(error).__name__, text=str(error))
            )
    agents = [OfferedAgent(one.name, one.kind, one.version, one.summary) for one in registry.offered()]
    return {
        "agents": [asdict(agent) for agent in agents],
        "problems": [asdict(problem) for problem in problems],
    }


def main(modules: list[str]) -> None:
    answer = os.dup(1)
    os.dup2(2, 1)  # what user code prints belongs to the log, not into the answer
    line = json.dumps(imported(modules))
    sys.stdout.flush()
    os.write(answer, f"{line}\n".encode())
    os._exit(0)  # threads of user code must not keep the process


if __name__ == "__main__":
    main(sys.argv[1:])
