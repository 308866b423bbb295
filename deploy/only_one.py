"""One start at a time for a data folder."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.layout import Layout
from deploy.problem import Problem


@contextmanager
def start_of(layout: Layout) -> Iterator[None]:
    """The kernel gives the lock back when its holder ends, however it ends."""
    layout.make_folders()
    with (layout.run / "up.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Problem(f"another ./ma up is starting {layout.data}: wait for it") from None
        yield
