"""Functions of a source: where a line belongs, also after lines above it have moved."""

import ast
from dataclasses import dataclass

# Code outside of functions, or a file that has none.
WHOLE = ""


@dataclass(frozen=True)
class Function:
    """`first` is the line of its first decorator, `body` the first one that runs when it is called."""

    name: str
    first: int
    body: int
    last: int


def functions(source: str) -> list[Function]:
    """Outer ones before inner ones. Nothing of a source that is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    found: list[Function] = []
    _collect(tree, "", found)
    return found


def _collect(node: ast.AST, prefix: str, found: list[Function]) -> None:
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}."
            if not isinstance(child, ast.ClassDef):
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                last = child.end_lineno or child.lineno
                found.append(Function(name.rstrip("."), first, child.body[0].lineno, last))
        _collect(child, name, found)


def changed_in(source: str, lines: set[int]) -> set[str]:
    """The innermost function of each line, its head included. Empty lines change nothing."""
    spans = functions(source)
    written = {number for number, text in enumerate(source.splitlines(), 1) if text.strip()}
    names = dict.fromkeys(lines & written, WHOLE)
    for function in spans:
        names |= {line: function.name for line in names if function.first <= line <= function.last}
    return set(names.values())


def executed_in(spans: list[Function], lines: set[int]) -> set[str]:
    """Functions whose bodies ran. Heads run at import, in whichever test comes first."""
    names: dict[int, str] = {}
    for function in spans:
        names |= {line: function.name for line in lines if function.body <= line <= function.last}
    return set(names.values())
