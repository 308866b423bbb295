"""Programs that stand in strings of tests import what is there: no type checker reads them."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from deploy.config import REPOSITORY

OURS = {path.parent.name for path in REPOSITORY.glob("*/__init__.py")}
BEGINS = re.compile(r"""[=(,]\s*[rf]?["']+(?:\\n)?\s*(?:import|from) """)
# A place that a test fills in.
PLACE = re.compile(r"(?<!\{)\{\w*(?:![rs])?\}(?!\})")


@cache
def file_of(module: str) -> Path | None:
    path = REPOSITORY.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.exists()), None)


@cache
def names_in(module: str) -> set[str]:
    file = file_of(module)
    found = set[str]()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))) if file else ():
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found


def programs(text: str) -> Iterator[ast.Module]:
    """Of a module's source: each text that is a program with an import of ours."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import " in node.value:
            plain = PLACE.sub("PLACE", node.value).replace("{{", "{").replace("}}", "}")
            try:
                yield ast.parse(plain)
            except SyntaxError:
                continue


def missing(program: ast.Module) -> Iterator[str]:
    imported = dict[str, str]()
    for node in ast.walk(program):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").partition(".")[0] not in OURS:
            continue
        module = node.module or ""
        if file_of(module) is None:
            yield module
            continue
        for alias in node.names:
            whole = f"{module}.{alias.name}"
            if file_of(whole) is not None:
                imported[alias.asname or alias.name] = whole
            elif alias.name not in names_in(module):
                yield whole
    for node in ast.walk(program):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = imported.get(node.value.id, "")
            if module and node.attr not in names_in(module) and file_of(f"{module}.{node.attr}") is None:
                yield f"{module}.{node.attr}"


def test_programs_in_tests_import_what_is_there() -> None:
    paths = (path for folder in ("tests", "bench") for path in (REPOSITORY / folder).rglob("*.py"))
    texts = ((path, path.read_text("utf-8")) for path in paths)
    found = [
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path, text in texts
        if BEGINS.search(text)
        for program in programs(text)
        for name in missing(program)
    ]
    assert found == []


def test_what_is_not_there_is_found() -> None:
    text = """A = 'from agents.models import Pool, Nothing\\nfrom agents import hooks\\nhooks.nothing({x})'"""
    assert [name for program in programs(text) for name in missing(program)] == [
        "agents.models.Nothing",
        "agents.hooks.nothing",
    ]


def test_benches_reach_only_for_inner_parts_that_are_there() -> None:
    """No test runs a bench, and what it reads of `Any` no type checker sees."""
    product = (path for name in OURS - {"tests", "bench"} for path in (REPOSITORY / name).rglob("*.py"))
    known = {name for path in product for name in re.findall(r"\b_[a-z]\w*", path.read_text("utf-8"))}
    read = set[str]()
    for path in (REPOSITORY / "bench").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                known.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                known.add(node.attr)
            elif isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
                read.add(node.attr)
    assert read - known == set()
