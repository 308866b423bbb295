"""Batches without the search for cycles of references: among many thousand objects that all live until the
commit it finds none, again and again, for a fifth of the time."""

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def uncollected(batch: Callable[Given, Result]) -> Callable[Given, Result]:
    """For a function that works on one batch of bounded size and keeps nothing of it: what it made is gone by
    counting references when it returns."""

    @wraps(batch)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        collected = gc.isenabled()
        gc.disable()
        try:
            return batch(*args, **kwargs)
        finally:
            if collected:
                gc.enable()

    return run
