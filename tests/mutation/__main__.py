"""python -m tests.mutation [--changed] [--minutes N] [PATH …]: fails on a survivor that is not named as
equivalent."""

import argparse
import contextlib
import hashlib
import importlib
import json
import multiprocessing
import os
import shutil
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import hypothesis
import pytest

from tests import environment
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import mutants_of
from tests.mutation.processes import (
    LONGER,
    QUIET,
    REPOSITORY,
    TIMES_LONGER,
    Rule,
    Session,
    Verdict,
    run_imported,
)
from tests.mutation.rules import rules

TOOL = ("tests/mutation/mutants.py", "tests/mutation/processes.py")
MOST_SURVIVORS = 0.05
IMPORTED = (
    "_hypothesis_pytestplugin",
    "hypothesis.stateful",
    "pytest_django.plugin",
    "pytest_timeout",
    "xdist.plugin",
)


@dataclass(frozen=True)
class Record:
    """Of a rule's complete run. `content`: of its source, of its tests and of what makes the mutants."""

    content: str
    killed: int
    timeouts: int
    survivors: tuple[str, ...]

    @property
    def mutants(self) -> int:
        return self.killed + self.timeouts + len(self.survivors)


def folder() -> Path:
    return Path(os.environ.get("MA_TEST_CACHE") or REPOSITORY / "var" / "test") / "mutants"


def content(rule: Rule) -> str:
    paths = (rule.path, *rule.tests, *TOOL)
    return hashlib.sha256(b"".join((REPOSITORY / path).read_bytes() for path in paths)).hexdigest()


def kept(rule: Rule) -> Record | None:
    try:
        known = Record(**json.loads((folder() / f"{rule.module}.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return known if known.content == content(rule) else None


def keep(rule: Rule, record: Record) -> None:
    folder().mkdir(parents=True, exist_ok=True)
    scratch = folder() / f"{rule.module}.{os.getpid()}"
    scratch.write_text(json.dumps(asdict(record)))
    scratch.replace(folder() / f"{rule.module}.json")


def unnamed(rule: Rule, record: Record) -> list[str]:
    return [name for name in record.survivors if name not in EQUIVALENT.get(rule.path, {})]


def prepare() -> None:
    """Also imports what each child would import again."""
    environment.fill_in()
    os.environ["DJANGO_SETTINGS_MODULE"] = "ma_site.settings"
    os.environ.pop("MA_TEST_DATABASE", None)
    hypothesis.settings.register_profile(
        "mutants",
        database=None,
        derandomize=True,
        deadline=None,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("mutants")
    for name in (
        "_hypothesis_pytestplugin",
        "hypothesis.stateful",
        "pytest_django.plugin",
        "pytest_timeout",
        "xdist.plugin",
    ):
        importlib.import_module(name)


def session_of(some: list[Rule]) -> tuple[BaseProcess, Connection]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_session, args=(ours, theirs, some))
    process.start()
    theirs.close()
    return process, ours


def _session(ours: Connection, theirs: Connection, some: list[Rule]) -> None:
    ours.close()  # so that it ends with its parent
    tests = sorted({test for rule in some for test in rule.tests})
    with open(os.devnull, "w") as silent, contextlib.redirect_stdout(silent):
        code = pytest.main([*QUIET, *tests], plugins=[Session(theirs)])
    sys.exit(code)


def run(rule: Rule, session: Connection) -> Record:
    started, of = time.monotonic(), content(rule)
    session.send(rule)
    bare = run_imported(rule, rule.tree(), 600, bare=True).verdict is Verdict.SURVIVED
    anew = run_imported(rule, rule.tree(), 600, bare)
    if session.recv().verdict is not Verdict.SURVIVED or anew.verdict is not Verdict.SURVIVED:
        sys.exit(f"{rule.path}: its tests fail without any change: {' '.join(rule.tests)}")
    verdicts, survivors = Counter[Verdict](), list[str]()
    for number, mutant in enumerate(mutants_of(rule.tree())):
        ended = session.recv()
        if ended.verdict in (Verdict.SURVIVED, Verdict.UNKNOWN):
            mutants_of(tree := rule.tree())[number].apply()
            ended = run_imported(rule, tree, anew.seconds * TIMES_LONGER + LONGER, bare)
        verdicts[ended.verdict] += 1
        if ended.verdict is Verdict.SURVIVED:
            survivors.append(mutant.name)
            if mutant.name not in EQUIVALENT.get(rule.path, {}):
                print(f"  {rule.path}:{mutant.line} {mutant.name}", flush=True)
    record = Record(of, verdicts[Verdict.KILLED], verdicts[Verdict.TIMEOUT], tuple(survivors))
    keep(rule, record)
    print(f"{row(rule, record)} {time.monotonic() - started:5.0f} s", flush=True)
    return record


def row(rule: Rule, record: Record) -> str:
    named = len(record.survivors) - len(unnamed(rule, record))
    return (
        f"{rule.path:40} {record.mutants:5} {record.killed:6} {record.timeouts:8} "
        f"{len(record.survivors):8} {named:10}"
    )


def choose(paths: list[str], changed: bool) -> list[Rule]:
    chosen = [rule for rule in rules() if not paths or any(path in rule.path for path in paths)]
    return [rule for rule in chosen if not (changed and _is_done(rule))]


def _is_done(rule: Rule) -> bool:
    """One with open survivors fails again until somebody looks at them."""
    record = kept(rule)
    return record is not None and not unnamed(rule, record)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", help="parts of paths of rules")
    parser.add_argument("--changed", action="store_true", help="only what differs from the last complete run")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="begins no further rule after so many"
    )
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.minutes * 60
    chosen = choose(arguments.paths, arguments.changed)
    records: dict[Rule, Record] = {}
    if chosen:
        prepare()
        process, session = session_of(chosen)
        try:
            print(f"{'rule':40} mutants killed timeouts survived equivalent", flush=True)
            for rule in chosen:
                if time.monotonic() < until:
                    records[rule] = run(rule, session)
            session.send(None)
            process.join()
        finally:
            process.terminate()
            shutil.rmtree(environment.DATA, ignore_errors=True)
    return conclude(records, [rule for rule in chosen if rule not in records])


def conclude(records: dict[Rule, Record], left: list[Rule]) -> int:
    # The share is of all rules: a small one may have two mutants that no test can kill.
    known = [record for rule in rules() if (record := records.get(rule) or kept(rule))]
    mutants = sum(record.mutants for record in known)
    survivors = sum(len(record.survivors) for record in known)
    open_ones = sum(len(unnamed(rule, record)) for rule, record in records.items())
    killed = [
        f"{rule.path} {name}"
        for rule, record in records.items()
        for name in EQUIVALENT.get(rule.path, {})
        if name not in record.survivors
    ]
    for each in killed:
        print(f"named as equivalent, but a test kills it, or there is no such mutant: {each}")
    for rule in left:
        print(f"left for the next time: {rule.path}")
    share = survivors / mutants if mutants else 0.0
    print(f"{len(records)} rules now; of all known: {mutants} mutants, {survivors} survived ({share:.1%})")
    print(f"{open_ones} of the survivors of now are not named as equivalent")
    return 1 if open_ones or killed or share > MOST_SURVIVORS else 0


if __name__ == "__main__":
    sys.exit(main())
