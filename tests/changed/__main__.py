"""python -m tests.changed [REVISION]: see the package."""

import re
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

from deploy.config import REPOSITORY
from tests.changed import changes, execution_map, imports
from tests.changed.changes import Change
from tests.changed.execution_map import Known
from tests.changed.order import Ranking, left_out, nearness, portions
from tests.changed.run import Run, check, counted, session
from tests.services import cache

SESSIONS = 2
MARKS = "pure or db"
APPROVED = "tests/architecture/"


def say(text: str) -> None:
    print(text, flush=True)


def main(arguments: Sequence[str]) -> int:
    run = Run(say)
    threads = [Thread(target=session, args=(run, REPOSITORY, ("-m", MARKS))) for _ in range(SESSIONS)]
    threads.append(Thread(target=check, args=(run, REPOSITORY)))
    for thread in threads:
        thread.start()
    try:
        ranking = rank(arguments)
        run.order(portions(ranking))
    finally:
        run.ordered.set()
        for thread in threads:
            thread.join()
    return report(run, ranking)


def rank(arguments: Sequence[str]) -> Ranking:
    try:
        revision, changed = changes.find(REPOSITORY, *arguments)
    except (OSError, subprocess.CalledProcessError) as error:
        revision, changed = "", []
        say(f"git does not answer, so the cheapest tests come first: {error}")
    paths = files()
    known = execution_map.read(execution_map.folder(), changed).moved(paths)
    say(f"changed since {revision}: {_some([change.path for change in changed])}")
    say(_about(known))
    return ranking_of(paths, changed, known)


def ranking_of(tests: Sequence[str], changed: Sequence[Change], known: Known) -> Ranking:
    paths = {change.path for change in changed}
    packages = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"][
        "root_packages"
    ]
    near = {*paths, *imports.naming(REPOSITORY, packages, paths)}
    folders = {path.rpartition("/")[0] for path in paths if path.endswith("/conftest.py")}
    return Ranking(
        files=tests,
        changed=paths & set(tests),
        touching=known.touching,
        approved=[file for file in tests if file.startswith(APPROVED)],
        nearness=nearness(tests, imports.distances(packages, near), near, folders),
        tests={file: known.tests[file] for file in tests if file in known.tests},
        seconds=known.seconds,
    )


def report(run: Run, ranking: Ranking) -> int:
    done, tests = counted(run.done), dict[str, int]()
    for file in ranking.files:
        collected = len(run.collected[file]) if file in run.collected else ranking.tests.get(file)
        tests[file] = _written(REPOSITORY / file) if collected is None else collected
    executing = set(ranking.touching)
    say(f"\n{len(run.done)} tests of {len(done)} files ran in {run.seconds:.0f} s")
    if executing:
        say(
            f"{len(executing & run.done)} of the {len(executing)} tests that execute the change are among "
            f"them"
        )
    missing = dict(left_out(ranking.files, tests, done))
    if missing or run.unfinished:
        _say_what_is_left(missing, run.unfinished)
    for name in run.failed:
        say(f"FAILED {name}")
    say(f"{len(run.failed)} failed" if run.failed else "all of these passed")
    return 1 if run.failed else 0


def _say_what_is_left(missing: dict[str, int], unfinished: Sequence[str]) -> None:
    folders = Counter[str]()
    for file, tests in missing.items():
        folders["/".join(file.split("/")[:2])] += tests
    place = cache() / "left-out.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(f"{file}\n" for file in missing))
    each = ", ".join(f"{folder} {tests}" for folder, tests in folders.most_common())
    say(f"left out for lack of time: {sum(folders.values())} tests ({each})")
    if unfinished:
        say(f"cut off: {', '.join(unfinished)}")
    say(f"the rest: ./ma test -n 2 -m '{MARKS}' @{place}")


def _about(known: Known) -> str:
    if not known.tests:
        return (
            "no map of what tests execute (./ma test --night records one): imports and names decide the order"
        )
    age = (time.time() - execution_map.file(execution_map.folder()).stat().st_mtime) / 3600
    return f"map of {known.tests.total()} tests, {age:.0f} h old: {len(known.touching)} execute the change"


def files() -> list[str]:
    """Those of tests."""
    return sorted(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "tests").rglob("test_*.py"))


def _written(file: Path) -> int:
    """Tests that a file defines; one with parameters counts once."""
    return len(re.findall(r"^ *(?:async )?def test_", file.read_text("utf-8"), re.M))


def _some(names: Sequence[str], most: int = 5) -> str:
    return (
        ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "") or "nothing"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
