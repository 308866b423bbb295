"""`python -m bench NAME [--json] …`: one line per measure, `name · product · reference · ratio · goal ·
ok|short`, and the peak memory. Exit code 1 where a goal is missed.
"""

import json
import sys
from collections.abc import Callable, Sequence

from bench import Line, archive, consume, dlq, metrics, modes, pages, pipeline, protocols, sizes, trip

BENCHES: dict[str, Callable[[Sequence[str]], Sequence[Line]]] = {
    "archive": archive.run,
    "consume": consume.run,
    "dlq": dlq.run,
    "metrics": metrics.run,
    "modes": modes.run,
    "pages": pages.run,
    "pipeline": pipeline.run,
    "protocols": protocols.run,
    "sizes": sizes.run,
    "trip": trip.run,
}


def main(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    names = [argument for argument in arguments if argument != "--json"]
    if not names or names[0] not in BENCHES:
        print(f"usage: python -m bench {'|'.join(BENCHES)} [--json] [--help]", file=sys.stderr)
        return 2
    measures = BENCHES[names[0]](names[1:])
    if as_json:
        print(json.dumps([measure.as_json() for measure in measures], indent=2))
    else:
        for measure in measures:
            print(measure.line())
            if measure.peak_memory_mb:
                print(f"{measure.name} · peak memory {measure.peak_memory_mb:,.0f} MB")
    return 0 if all(measure.ok for measure in measures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
