"""From a job to its agent: imports the modules of KMA_AGENTS in the process that runs user code."""

import importlib
from collections.abc import Iterable

from kma import registry


def load(agent: str, modules: Iterable[str]) -> registry.Registered:
    """Raises UnknownAgent, or what a module raised that cannot be imported when that is most likely why."""
    failed: list[BaseException] = []
    for module in modules:
        try:
            importlib.import_module(module)
        except BaseException as error:  # a module that exits must not stop the agents of the others
            failed.append(error)
    try:
        return registry.find(agent)
    except registry.UnknownAgent:
        if failed:
            raise failed[0] from None
        raise
