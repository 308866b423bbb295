"""What is changed in a rule, and how a child ends that meets the change."""

import ast
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import mutants_of
from tests.mutation.processes import REPOSITORY, Verdict, compiled, in_child
from tests.mutation.rules import NAMES, rules


def names(source: str) -> list[str]:
    return [mutant.name for mutant in mutants_of(ast.parse(source))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a < b -> a <= b", "a < b -> a >= b"]),
        ("a == b", ["a == b -> a != b"]),
        ("a not in b", ["a not in b -> a in b"]),
        (
            "a < b <= c",
            [f"a < b <= c -> a {changed} c" for changed in ("<= b <=", ">= b <=", "< b <", "< b >")],
        ),
        ("a + b", ["a + b -> a - b"]),
        ("a += b", ["a += b -> pass", "a += b -> a -= b"]),
        ("a and b", ["a and b -> a or b", "a and b -> b", "a and b -> a"]),
        ("a = True", ["True -> False"]),
        ("a = 3", ["3 -> 4", "3 -> 2"]),
        ("a = 'x'", ["'x' -> ''"]),
        ("a = ''", ["'' -> 'mutant'"]),
        ("not a", ["not a -> a"]),
        ("-a", ["-a -> a"]),
        ("min(a)", ["min(a) -> pass", "min(a) -> max(a)"]),
        ("a = any(b)", ["any(b) -> all(b)"]),
        ("a[b:c]", ["b -> nothing", "c -> nothing"]),
        ("a = b if c else d", ["c -> True", "c -> False"]),
        ("[a for a in b if a]", ["a -> True", "a -> False"]),
        ("if a: b = c", ["a -> True", "a -> False"]),
        ("while a: break", ["a -> False", "break -> pass", "break -> continue"]),
        ("raise Wrong('x')", ["raise Wrong('x') -> pass"]),
        ("a.b = c", ["a.b = c -> pass"]),
    ],
)
def test_each_kind_of_change(source: str, expected: list[str]) -> None:
    expressions = isinstance(ast.parse(source).body[0], ast.Expr) and not source.startswith("min")
    own = [f"{source} -> pass"] if expressions else []
    assert names(source) == [f"module: {each}" for each in own + expected]


@pytest.mark.parametrize(
    "source", ["'a docstring'", "__all__ = ['a']", "if TYPE_CHECKING: a = 1", "def f(a: 'A'): ..."]
)
def test_what_is_no_rule_stays(source: str) -> None:
    assert names(source) == []


def test_mutants_of_one_name_are_numbered() -> None:
    assert names("def f(a=1):\n  return 1")[::2] == [
        "f: 1 -> 2",
        "f: return 1 -> return None",
        "f: 1 -> 0 #2",
    ]


def test_each_mutant_changes_what_the_code_does() -> None:
    source = "def f(a, b=2):\n  return max(a, b) * 3"
    found = set()
    for number, mutant in enumerate(mutants_of(ast.parse(source))):
        mutants_of(tree := ast.parse(source))[number].apply()
        names_: dict[str, Any] = {}
        exec(compiled(tree, "rule.py"), names_)
        found.add(names_["f"](1))
        assert (mutant.function is None) == (" 2 -> " in mutant.name), "a default is computed at the import"
    assert found == {9, 3, None, 0, 8, 4}


def test_every_one_that_is_named_as_equivalent_exists() -> None:
    known = {rule.path: {mutant.name for mutant in mutants_of(rule.tree())} for rule in rules()}
    assert [
        (path, name) for path, some in EQUIVALENT.items() for name in some if name not in known[path]
    ] == []


def test_every_module_of_the_contract_is_a_rule() -> None:
    modules = {f"contract/{file.name}" for file in REPOSITORY.glob("contract/*.py")}
    assert modules - {"contract/__init__.py"} == {path for path in NAMES if path.startswith("contract/")}


def loop(_failed: Callable[[int], None]) -> None:
    while True:
        pass


def crash(_failed: Callable[[int], None]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.process
def test_how_a_child_ended() -> None:
    assert in_child(lambda failed: None, 10).verdict is Verdict.SURVIVED
    ended = in_child(lambda failed: failed(3), 10)
    assert (ended.verdict, ended.killer) == (Verdict.KILLED, 3)
    assert in_child(crash, 10).verdict is Verdict.KILLED
    assert in_child(loop, 0.1).verdict is Verdict.TIMEOUT
