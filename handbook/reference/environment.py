"""Environment variables: what is read, and which values it may have, says the code; what it is for, and which
default `./ma` gives it, says docs/reference/environment.md. The site's page has both."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from contract.encryption import KINDS
from deploy.config import HANDED_ON, REPOSITORY
from handbook import markdown, source

FILES = {
    "./ma": "deploy/config.py",
    "The site": "ma_site/env.py",
    "A KMA": "kma/host/config.py",
}
GUIDE = source.DOCS / "reference" / "environment.md"
NAME = re.compile(r"K?MA_[A-Z_]+")
HEADS = ("variable", "default", "values", "unit", "meaning")
ROW = re.compile(r"^\| (`K?MA_[^|]*) \|(.*)\|$", re.MULTILINE)
TABLE = re.compile(r"^\|.*?\n(?=\n|\Z)", re.DOTALL | re.MULTILINE)
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


@dataclass(frozen=True, slots=True)
class Said:
    """What the guide says of a variable."""

    default: str
    meaning: str


def pages() -> Mapping[str, str]:
    said, text = read_guide(), GUIDE.read_text("utf-8")
    for program, file in FILES.items():
        found = variables(ast.parse((REPOSITORY / file).read_text("utf-8")))
        if missing := [each.name for each in found if each.name not in said]:
            raise ValueError(f"{GUIDE.name} does not say what these are for: {', '.join(missing)}")
        text = _with_table(text, f"## {program}", markdown.table(HEADS, [_row(each, said) for each in found]))
    return {"environment": text}


def _with_table(text: str, heading: str, table: str) -> str:
    """Puts it in the place of the table below the heading."""
    before, rest = text.split(f"\n{heading}\n", 1)
    return f"{before}\n{heading}\n{TABLE.sub(lambda _: table + chr(10), rest, count=1)}"


def _row(variable: Variable, said: Mapping[str, Said]) -> tuple[str, ...]:
    name = markdown.code(variable.name)
    if variable.is_secret:
        name += ", " + markdown.code(f"{variable.name}_FILE")
    if variable.name in HANDED_ON:
        name += " \\*"
    default = markdown.code(variable.default or "") or said[variable.name].default or "not set"
    if variable.default is None:
        default += "; required without `./ma`"
    return name, default, markdown.plain(variable.values), variable.unit, said[variable.name].meaning


def read_guide() -> dict[str, Said]:
    """The rows of the guide's tables, by variable. Rows of several variables may have a default for each."""
    found: dict[str, Said] = {}
    for names, rest in ROW.findall(GUIDE.read_text("utf-8")):
        default, _, meaning = map(str.strip, rest.partition(" | "))
        known = [name.removesuffix("_FILE") for name in NAME.findall(names)]
        defaults = default.split(", ") if default.count(", ") + 1 == len(known) else [default] * len(known)
        found |= {name: Said(each, meaning) for name, each in zip(known, defaults, strict=True) if meaning}
    return found


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
        case ast.Call(func=ast.Name(id="TlsFiles"), args=names):
            for each in names:
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and _is_name(each.value):
                    yield Variable(each.value, "", "a file in PEM format")
        case ast.Assign(targets=[ast.Name(id="ALLOWED")], value=ast.Constant(value=str(name))):
            yield Variable(name, "", ", ".join(KINDS))
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
