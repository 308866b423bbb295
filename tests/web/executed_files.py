"""Counts the files that somebody reads to follow one act through the product."""

import inspect
import sys
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

from tests.architecture.test_house import PACKAGES, ROOT

# It stands for the broker, whose code nobody reads for this.
BROKER_IN_MEMORY = "broker/memory/"


def _always(*_: object) -> bool:
    return True


class ExecutedFiles:
    """The files of the product of which a function, method or lambda runs between `start` and `stop`, in this
    thread or in one that begins meanwhile.

    What every request passes, such as the middleware, counts as well: whoever follows an act does not know
    that it changes nothing before having read it. Not counted: `__init__.py`, migrations, the broker in
    memory, and files of which only fields and constants are used. A value that is cached runs no function:
    go the way once before it is counted.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self.running = False

    def start(self) -> None:
        self.running = True
        threading.setprofile(self._on_call)
        sys.setprofile(self._on_call)

    def stop(self) -> None:
        """Does nothing where it is over already."""
        self.running = False
        sys.setprofile(None)
        threading.setprofile(None)

    def _on_call(self, frame: FrameType, event: str, _argument: object) -> None:
        # Bodies of modules and classes run for whoever is the first to import them.
        if self.running and event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            self._names.add(frame.f_code.co_filename)

    @property
    def files(self) -> list[str]:
        inside = (Path(name) for name in self._names if Path(name).is_relative_to(ROOT))
        return sorted(str(path) for path in (each.relative_to(ROOT) for each in inside) if _counts(path))

    def until(self, call: Callable[..., Any], last: Callable[..., bool] = _always) -> Callable[..., Any]:
        """`call`, which ends the count when it returns from arguments that `last` takes for the last ones."""

        @wraps(call)
        def ending(*arguments: Any, **options: Any) -> Any:
            done = call(*arguments, **options)
            if last(*arguments):
                self.stop()
            return done

        return ending


def _counts(path: Path) -> bool:
    return (
        path.parts[0] in PACKAGES
        and path.name != "__init__.py"
        and "migrations" not in path.parts
        and not str(path).startswith(BROKER_IN_MEMORY)
    )
