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


# Lines of functions are bits, counted from the first line of the function: lines above it may move. The last
# bit is all lines from there on; SQLite keeps 63 of them.
LAST = 62


def changed_in(source: str, lines: set[int]) -> dict[str, int]:
    """The innermost function of each line, its head included. Empty lines change nothing."""
    written = {number for number, text in enumerate(source.splitlines(), 1) if text.strip()}
    return _bits(lines & written, [(each.first, each) for each in functions(source)])


def executed_in(spans: list[Function], lines: set[int]) -> dict[str, int]:
    """Functions whose bodies ran. Heads run at import, in whichever test comes first."""
    found = _bits(lines, [(each.body, each) for each in spans])
    return {name: bits for name, bits in found.items() if name != WHOLE}


def _bits(lines: set[int], spans: list[tuple[int, Function]]) -> dict[str, int]:
    innermost: dict[int, Function] = {}
    for begin, function in spans:
        innermost |= {line: function for line in lines if begin <= line <= function.last}
    found = dict[str, int]()
    for line in lines:
        name, first = (innermost[line].name, innermost[line].first) if line in innermost else (WHOLE, line)
        found[name] = found.get(name, 0) | 1 << min(line - first, LAST)
    return found
