"""All mutants of one module. Words for people, decorators, annotations and docstrings are no rule: they
stay."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

Key = tuple[str, int]  # co_qualname and co_firstlineno of the outermost function

OPPOSITES: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OTHERS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
TRANSLATING = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "pgettext"}
UNCHANGED = {"decorator_list", "annotation", "returns", "bases"}
NAMES_UNCHANGED = {"__all__", "__slots__", "__match_args__"}


@dataclass(frozen=True)
class Mutant:
    """`function` is None where only a new import shows the change."""

    name: str
    line: int
    function: Key | None
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST | None

    def apply(self) -> None:
        """Changes the tree for good: for a process of its own."""
        if self.index is None:
            setattr(self.parent, self.field, self.new)
        else:
            getattr(self.parent, self.field)[self.index] = self.new


@dataclass(frozen=True)
class Place:
    """Where a node stands. `words`: within what a person reads, an error or a translated text."""

    qualname: str
    function: Key | None
    words: bool = False


def mutants_of(tree: ast.Module) -> list[Mutant]:
    found, seen = [], Counter[str]()
    for mutant in _within(tree, Place("", None)):
        seen[mutant.name] += 1
        number = f" #{seen[mutant.name]}" if seen[mutant.name] > 1 else ""
        found.append(replace(mutant, name=mutant.name + number))
    return found


def _within(parent: ast.AST, place: Place) -> Iterator[Mutant]:
    for field, value in ast.iter_fields(parent):
        if field in UNCHANGED or (isinstance(parent, ast.ClassDef) and field == "keywords"):
            continue
        around = place
        if field == "body" and isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([parent.lineno, *(each.lineno for each in parent.decorator_list)])
            around = Place(place.qualname, place.function or (place.qualname, first))
        nodes = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, node in nodes:
            if isinstance(node, ast.AST) and not _stays(node):
                for line, old, new in _changes(node, parent, field, around):
                    before = ast.unparse(old).splitlines()[0]
                    after = "nothing" if new is None else ast.unparse(new).splitlines()[0]
                    name = f"{around.qualname or 'module'}: {before} -> {after}"
                    yield Mutant(name, line, around.function, parent, field, index, new)
                yield from _within(node, _inside(node, around))


def _inside(node: ast.AST, place: Place) -> Place:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return Place(f"{place.qualname}.{node.name}".lstrip("."), place.function)
    translated = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TRANSLATING
    )
    return Place(place.qualname, place.function, place.words or translated or isinstance(node, ast.Raise))


def _stays(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring, an ellipsis
    if (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in NAMES_UNCHANGED
    ):
        return True
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _changes(
    node: ast.AST, parent: ast.AST, field: str, place: Place
) -> Iterator[tuple[int, ast.AST, ast.AST | None]]:
    """Line, what is changed, and what takes its place."""
    line = getattr(node, "lineno", 0)
    replacements: Sequence[ast.AST]
    if isinstance(node, ast.stmt):
        replacements = list(_statements(node))
    elif isinstance(node, ast.expr):
        replacements = [*_expressions(node, place), *_conditions(node, parent, field)]
        if isinstance(parent, ast.Slice) and field in ("lower", "upper"):
            yield line, node, None
    else:
        return
    for new in replacements:
        ast.copy_location(new, node)
        ast.fix_missing_locations(new)
        yield line, node, new


def _statements(node: ast.stmt) -> Iterator[ast.stmt]:
    simple = isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete | ast.Assert)
    stores = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    calls = isinstance(node, ast.Expr)
    if simple or stores or calls:
        yield ast.Pass()
    match node:
        case ast.Return(value=ast.expr() as value):
            if not (
                isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool))
            ):
                yield ast.Return(ast.Constant(None))
        case ast.AugAssign(op=operator) if type(operator) in OTHERS:
            yield ast.AugAssign(node.target, OTHERS[type(operator)](), node.value)
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()


def _conditions(node: ast.expr, parent: ast.AST, field: str) -> Iterator[ast.expr]:
    chosen = isinstance(parent, ast.If | ast.IfExp) and field == "test"
    filtered = isinstance(parent, ast.comprehension) and field == "ifs"
    if isinstance(node, ast.Constant):
        return
    if chosen or filtered or field == "guard":
        yield ast.Constant(True)
    if chosen or filtered or field == "guard" or (isinstance(parent, ast.While) and field == "test"):
        yield ast.Constant(False)


def _expressions(node: ast.expr, place: Place) -> Iterator[ast.expr]:
    match node:
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as number):
            yield ast.Constant(number + 1)
            yield ast.Constant(number - 1)
        case ast.Constant(value=str() | bytes() as text) if not place.words:
            other = "mutant" if isinstance(text, str) else b"mutant"
            yield ast.Constant(type(text)() if text else other)
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                for kind in OPPOSITES[type(operator)]:
                    yield ast.Compare(
                        node.left, [*node.ops[:index], kind(), *node.ops[index + 1 :]], node.comparators
                    )
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
            for index in range(len(node.values)):
                rest = [*node.values[:index], *node.values[index + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.BinOp(op=binary) if type(binary) in OTHERS:
            yield ast.BinOp(node.left, OTHERS[type(binary)](), node.right)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            yield ast.Call(ast.Name(CALLS[name], ast.Load()), node.args, node.keywords)
