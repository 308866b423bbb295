"""The process of a WorkerHost: for each line it forks processes that do one act each, and tells how they
ended."""

import gc
import json
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any


def _fork(
    begin: Callable[[], Any], act: str, crash_at: str, held: dict[str, Any], arguments: dict[str, Any]
) -> Any:
    """The child's id, and where its answer is read. It begins once `begin` lets it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.environ["MA_CRASH_AT"] = crash_at
        status = 1
        try:
            from tests.dlq import holding, worker_acts

            if held:
                holding.stand_still(**held)
            begin()
            with os.fdopen(writing, "w") as answer:
                json.dump(getattr(worker_acts, act)(**arguments), answer, default=str)
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    os.close(writing)
    return child, reading


def _ended(child: int, reading: int) -> tuple[int, Any]:
    with os.fdopen(reading) as answer:
        told = answer.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), json.loads(told) if told else None


def main() -> None:
    import django

    django.setup()
    from tests.dlq import worker_acts  # noqa: F401  # loaded once, for all children

    gc.collect()
    gc.freeze()  # a collection in a child would copy all that it shares
    for line in sys.stdin:
        acts = json.loads(line)
        together = multiprocessing.get_context("fork").Barrier(len(acts))
        children = [_fork(together.wait, *act) for act in acts]
        print(json.dumps([_ended(*child) for child in children]), flush=True)


if __name__ == "__main__":
    main()
