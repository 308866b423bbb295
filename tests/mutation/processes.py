"""Children by fork(2) that run tests against changed code. Nothing that they do outlives them."""

import ast
import gc
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from tests.mutation.mutants import Key, Mutant, mutants_of

REPOSITORY = Path(__file__).resolve().parent.parent.parent
QUIET = ("-q", "--assert=plain", "-p", "no:cacheprovider", "--timeout=0")
# Of processor time, so that a busy machine kills no mutant; in seconds.
TIMES_LONGER, LONGER, WALL = 5, 2, 60
MOST_MEMORY = 8 << 30


class Verdict(StrEnum):
    KILLED = "killed"
    TIMEOUT = "timeout"
    SURVIVED = "survived"
    UNKNOWN = "unknown"  # no function that lives has this code: a new import shows the change


@dataclass(frozen=True)
class Rule:
    """A module by its path, and the files of its tests."""

    path: str
    tests: tuple[str, ...]

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").replace("/", ".")

    def tree(self) -> ast.Module:
        return ast.parse((REPOSITORY / self.path).read_text())


@dataclass(frozen=True)
class Ended:
    verdict: Verdict
    seconds: float
    killer: int = 0


def in_child(run: Callable[[Callable[[int], None]], None], limit: float) -> Ended:
    """`run` calls its argument with the number of the test that failed. `limit`: seconds of processor
    time."""
    reading, writing = os.pipe()
    started = resource.getrusage(resource.RUSAGE_CHILDREN)
    if (child := os.fork()) == 0:
        code = 1
        try:
            os.close(reading)
            _be_bounded(limit)
            run(lambda number: _end(writing, number))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        killer = pipe.read()
    _, status = os.waitpid(child, 0)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = spent.ru_utime + spent.ru_stime - started.ru_utime - started.ru_stime
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM):
        return Ended(Verdict.TIMEOUT, seconds)
    verdict = Verdict.SURVIVED if status == 0 else Verdict.KILLED
    return Ended(verdict, seconds, int(killer or b"0"))


def _be_bounded(limit: float) -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number, clock, seconds in (
        (signal.SIGPROF, signal.ITIMER_PROF, limit),
        (signal.SIGALRM, signal.ITIMER_REAL, limit + WALL),
    ):
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(clock, seconds)


def _end(writing: int, number: int) -> None:
    os.write(writing, str(number).encode())
    os._exit(1)


def compiled(tree: ast.Module, path: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(tree, path, "exec")


@dataclass
class Importing(MetaPathFinder):
    """Gives the changed code of one module to a process that has not imported it yet."""

    module: str
    code: CodeType

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.module or (spec := PathFinder.find_spec(name, path)) is None:
            return None
        assert isinstance(spec.loader, SourceFileLoader)
        spec.loader.get_code = lambda fullname: self.code  # type: ignore[method-assign]
        return spec


@dataclass
class Runner:
    """Of the tests of one session: ends the process at the first that fails, or after the last one."""

    failed: Callable[[int], None]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not session.items or session.testsfailed:
            self.failed(0)
        run_items(session.items, self.failed)
        os._exit(0)


def run_items(items: Sequence[pytest.Item], failed: Callable[[int], None]) -> None:
    for number, item in enumerate(items):
        following = items[number + 1] if number + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if item.session.testsfailed:
            failed(number)


def run_imported(rule: Rule, tree: ast.Module, limit: float, bare: bool) -> Ended:
    """In a child of a process that has nothing of the project: slow, and it sees every change. `bare`:
    without Django, which takes most of the time."""
    assert rule.module not in sys.modules, f"{rule.module} is imported already"
    code = compiled(tree, str(REPOSITORY / rule.path))

    def run(failed: Callable[[int], None]) -> None:
        sys.meta_path.insert(0, Importing(rule.module, code))
        if bare:
            del os.environ["DJANGO_SETTINGS_MODULE"]
        pytest.main([*QUIET, *(["--noconftest"] if bare else []), *rule.tests], plugins=[Runner(failed)])
        failed(0)  # the session ended before its tests

    return in_child(run, limit)


@dataclass
class Session:
    """Has collected the tests of all rules. Asked for a rule, it answers of the unchanged one, then of each
    mutant."""

    asked: Connection

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.collect()
        gc.freeze()
        while (rule := self.asked.recv()) is not None:
            items = [item for item in session.items if str(item.path.relative_to(REPOSITORY)) in rule.tests]
            unchanged = in_child(partial(run_items, items), 600)
            self.asked.send(unchanged)
            if unchanged.verdict is Verdict.SURVIVED:
                for mutant in mutants_of(tree := rule.tree()):
                    self.asked.send(_swapped(rule, tree, mutant, items, unchanged.seconds))
        return True


def _swapped(rule: Rule, tree: ast.Module, mutant: Mutant, items: list[pytest.Item], seconds: float) -> Ended:
    module = sys.modules.get(rule.module)
    if mutant.function is None or module is None or not (living := _functions(module).get(mutant.function)):
        return Ended(Verdict.UNKNOWN, 0)

    def run(failed: Callable[[int], None]) -> None:
        mutant.apply()
        try:
            code = _codes(compiled(tree, str(module.__file__)))[mutant.function]
            for function in living:
                function.__code__ = code
        except (KeyError, SyntaxError, ValueError):
            return  # of other free variables, for example: it is imported
        run_items(items, failed)

    ended = in_child(run, seconds * TIMES_LONGER + LONGER)
    items.insert(0, items.pop(ended.killer))  # what killed one often kills the next
    return ended


_known: dict[str, dict[Key, list[FunctionType]]] = {}


def _functions(module: ModuleType) -> dict[Key, list[FunctionType]]:
    """Those that live, with what they are called: whoever imported one by its name has the same object."""
    if module.__name__ not in _known:
        _known.clear()
        found = _known.setdefault(module.__name__, {})
        for each in _living():
            if each.__code__.co_filename == module.__file__:
                found.setdefault((each.__code__.co_qualname, each.__code__.co_firstlineno), []).append(each)
    return _known[module.__name__]


def _living() -> Iterable[FunctionType]:
    gc.unfreeze()  # the frozen are not listed
    found = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
    gc.freeze()
    return found


def _codes(code: CodeType) -> dict[Any, CodeType]:
    found: dict[Any, CodeType] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= {(constant.co_qualname, constant.co_firstlineno): constant} | _codes(constant)
    return found
