"""The process of a WorkerHost: for each line it forks a process that does one act, and tells how that one ended."""

import json
import os
import sys
import traceback
from typing import Any


def _child(act: str, crash_at: str, arguments: dict[str, Any]) -> tuple[int, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.environ["MA_CRASH_AT"] = crash_at
        status = 1
        try:
            from tests.dlq import worker_acts

            with os.fdopen(writing, "w") as answer:
                json.dump(getattr(worker_acts, act)(**arguments), answer, default=str)
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as answer:
        told = answer.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), json.loads(told) if told else None


def main() -> None:
    import django

    django.setup()
    from tests.dlq import worker_acts  # noqa: F401  # loaded once, for all children

    for line in sys.stdin:
        print(json.dumps(_child(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
