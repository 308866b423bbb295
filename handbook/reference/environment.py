"""Environment variables: what is read and with which default says the code, what it is for the guide to
operations."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.config import HANDED_ON, REPOSITORY
from handbook import markdown, source

FILES = {
    "./ma": "deploy/config.py",
    "The site": "ma_site/env.py",
    "A KMA": "kma/host/config.py",
}
GUIDE = source.DOCS / "how-to" / "operations.md"
PLACE = Path("reference") / "environment.md"
NAME = re.compile(r"K?MA_[A-Z_]+")
ROW = re.compile(r"^\| (`K?MA_[^|]*) \|(.*)\|$", re.MULTILINE)
UNITS = {
    "_SECONDS": "s",
    "_HOURS": "h",
    "_DAYS": "days",
    "_BYTES": "bytes",
    "_MEMORY_MB": "MB",
    "_MB_PER_MINUTE": "MB per minute",
    "_ROWS_PER_MINUTE": "records per minute",
}
# What the site or a KMA takes, by the function or method that reads it.
VALUES = {
    "_switch": "0, 1",
    "_seconds": "1 to 3,600",
    "_log_level": "DEBUG, INFO, WARNING, ERROR",
    "_time_of_day": "HH:MM, never",
    "one_of": "DEBUG, INFO, WARNING, ERROR, CRITICAL",
}


@dataclass(frozen=True, slots=True)
class Variable:
    """`default` None: it must be set. `is_secret`: NAME_FILE may name a file instead."""

    name: str
    default: str | None
    values: str = ""
    is_secret: bool = False

    @property
    def unit(self) -> str:
        return next((unit for end, unit in UNITS.items() if self.name.endswith(end)), "")


def pages() -> Mapping[str, str]:
    meanings = read_meanings()
    heads = ("variable", "default", "values", "unit", "meaning")
    parts = [
        "Secrets may come as a file, whose name is in `NAME_FILE`. Variables marked * are handed on from the "
        "environment of `./ma up` to the processes that it starts."
    ]
    for program, file in FILES.items():
        found = variables(ast.parse((REPOSITORY / file).read_text("utf-8")))
        if missing := [each.name for each in found if not meanings.get(each.name)]:
            raise ValueError(f"{GUIDE.name} does not say what these are for: {', '.join(missing)}")
        parts += [f"## {program}", markdown.table(heads, [_row(each, meanings) for each in found])]
    return {"environment": markdown.page("Environment variables", *parts)}


def _row(variable: Variable, meanings: Mapping[str, str]) -> tuple[str, ...]:
    name = markdown.code(variable.name)
    if variable.is_secret:
        name += ", " + markdown.code(f"{variable.name}_FILE")
    if variable.name in HANDED_ON:
        name += " \\*"
    default = "required" if variable.default is None else markdown.code(variable.default) or "not set"
    return name, default, markdown.plain(variable.values), variable.unit, meanings[variable.name]


def read_meanings() -> dict[str, str]:
    """The last column of the guide's tables, by variable. Links lead from the reference."""
    found = {}
    for names, rest in ROW.findall(GUIDE.read_text("utf-8")):
        meaning = rest.rpartition(" | ")[2].strip()
        for name in NAME.findall(names):
            if meaning:
                found[name.removesuffix("_FILE")] = source.LINK.sub(_link, meaning)
    return found


def _link(match: re.Match[str]) -> str:
    address = GUIDE.name + match[2] if match[2].startswith("#") else match[2]
    return source.link(GUIDE, PLACE, match[1], address)


def variables(tree: ast.Module) -> list[Variable]:
    """In the order in which the file reads them, each once."""
    found: dict[str, Variable] = {}
    for node in _in_order(tree):
        for variable in _read_by(node):
            known = found.get(variable.name)
            if known is None or (known.default is None and variable.default is not None):
                found[variable.name] = variable
    return list(found.values())


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The inner call of `reader.parsed(NAME, reader.secret(NAME), …)` says more: it comes first."""
    for child in ast.iter_child_nodes(node):
        yield from _in_order(child)
    yield node


def _read_by(node: ast.AST) -> Iterator[Variable]:
    match node:
        case ast.Tuple(elts=[ast.Constant(value=str(name)), ast.Constant(value=int(port))]) if _is_name(name):
            yield Variable(name, str(port), "1 to 65,535")
        case ast.BoolOp(values=[ast.Call(args=[ast.Constant(value=str(name))]), default]) if _is_name(name):
            yield Variable(name, _folder(default))
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="reader"), attr=method),
            args=[ast.Constant(value=str(name)), *rest],
        ) if _is_name(name) and method != "parsed":
            yield _from_reader(name, method, rest)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="reader"), attr="child_env")):
            yield Variable("KMA_CHILD_ENV", "")


def _from_reader(name: str, method: str, rest: list[ast.expr]) -> Variable:
    texts = [each.value for each in rest if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    numbers = [number for each in rest if (number := _number(each)) is not None]
    is_secret = method in ("secret", "redis_url")
    if method in ("option", "text", "secret", "number", "one_of"):
        default = texts[-1] if texts else None
    else:
        default = None
    if method == "number":
        return Variable(name, default, f"{numbers[0]:,g} to {numbers[1]:,.15g}")
    if method == "one_of":
        return Variable(name, default, VALUES[method])
    return Variable(name, default, _values_of(rest[0]) if method == "option" else "", is_secret)


def _values_of(parse: ast.expr) -> str:
    match parse:
        case ast.Call(func=ast.Name(id="_whole"), args=[least, most]):
            return f"{ast.literal_eval(least):,} to {ast.literal_eval(most):,}"
        case ast.Name(id=name):
            return VALUES.get(name, "")
    return ""


def _folder(node: ast.expr) -> str:
    """A default in words of the code: a text, the loopback address, or a folder of the clone."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id="LOOPBACK"):
            return "127.0.0.1"
        case ast.Call(args=[ast.BinOp(right=ast.Constant(value=str(folder)))]):
            return f"./{folder}"
    return ""


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int(value) | float(value)):
            return value
        case ast.BinOp(
            left=ast.Constant(value=int(base)), op=ast.Pow(), right=ast.Constant(value=int(power))
        ):
            return float(base**power)
    return None


def _is_name(text: str) -> bool:
    return NAME.fullmatch(text) is not None
