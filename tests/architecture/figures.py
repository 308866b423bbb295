"""Figures of the product's code: what they count, they may only get better (test_figures.py)."""

import ast
import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import grimp
from grimp import ImportGraph

SHORT, LONG = 60, 350
# Of ruff: complexity, arguments, private access, blind excepts, names, models, instants without a zone,
# paths.
RULES = ("C901", "PLR0913", "SLF001", "BLE", "N", "DJ", "DTZ", "PTH")


class Sources:
    """The files of packages below `root`, without migrations; `tests` are counted by their lines only."""

    def __init__(self, root: Path, packages: Sequence[str]) -> None:
        self.root, self.packages = root, packages
        found = (path for package in packages for path in sorted((root / package).rglob("*.py")))
        self.texts = {
            path.relative_to(root): path.read_text("utf-8")
            for path in found
            if "migrations" not in path.parts
        }
        self.trees = {path: ast.parse(text) for path, text in self.texts.items()}

    @cached_property
    def lines(self) -> dict[Path, int]:
        return {path: len(text.splitlines()) for path, text in self.texts.items()}

    @cached_property
    def modules(self) -> list[Path]:
        """Without those that only make a folder a package."""
        return [path for path in self.texts if path.name != "__init__.py"]

    @cached_property
    def functions(self) -> list[int]:
        """Lines of each, sorted."""
        nodes = (node for tree in self.trees.values() for node in ast.walk(tree))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return sorted((node.end_lineno or 0) - node.lineno + 1 for node in nodes if isinstance(node, kinds))

    @cached_property
    def graph(self) -> ImportGraph:
        """Imports inside functions and for the type checker count too."""
        return grimp.build_graph(*self.packages, cache_dir=None)


def figures(sources: Sources, tests: Path) -> dict[str, int]:
    imports = import_map(sources.graph)
    parts = components(imports)
    chains = depths(imports, parts)
    return {
        "lines": sum(sources.lines.values()),
        "files": len(sources.modules),
        f"modules under {SHORT} lines": sum(sources.lines[path] < SHORT for path in sources.modules),
        f"modules above {LONG} lines": sum(sources.lines[path] > LONG for path in sources.modules),
        "module, longest": max(sources.lines.values()),
        "modules of the fullest folder": max(Counter(path.parent for path in sources.modules).values()),
        "function, median": round(statistics.median(sources.functions)),
        "function, 95 of 100": sources.functions[len(sources.functions) * 95 // 100],
        "function, longest": sources.functions[-1],
        **{
            f"import chain, longest of {package}": max(
                length for module, length in chains.items() if module.partition(".")[0] == package
            )
            for package in sources.packages
        },
        "import circles": sum(len(part) > 1 for part in parts),
        "folders that import both ways": len(both_ways(imports, sources)),
        "collections that modules fill later": sum(map(empty_collections, sources.trees.values())),
        "questions for the vendor outside console/database": sum(
            text.count(".vendor")
            for path, text in sources.texts.items()
            if not path.is_relative_to("console/database")
        ),
        "public names that an app defines twice": len(names_defined_twice(sources)),
        "lines of tests": sum(len(path.read_text("utf-8").splitlines()) for path in tests.rglob("*.py")),
    } | {f"ruff {rule}": count for rule, count in complaints(sources).items()}


def import_map(graph: ImportGraph) -> dict[str, set[str]]:
    """Without a package's import by what lies in it: Python makes that one by itself."""
    return {
        module: {
            found
            for found in graph.find_modules_directly_imported_by(module)
            if not module.startswith(f"{found}.")
        }
        for module in graph.modules
    }


def components(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Modules that reach each other, those first that others import (Tarjan, 1972)."""
    index, low, stack, found = dict[str, int](), dict[str, int](), list[str](), list[list[str]]()

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for imported in imports[module]:
            if imported not in index:
                visit(imported)
            if imported in stack:
                low[module] = min(low[module], low[imported])
        if low[module] == index[module]:
            place = stack.index(module)
            found.append(stack[place:])
            del stack[place:]

    for module in sorted(imports):
        if module not in index:
            visit(module)
    return found


def depths(imports: Mapping[str, Iterable[str]], parts: Sequence[Sequence[str]]) -> dict[str, int]:
    """Of each module the modules on the longest way down from it, itself among them; a circle counts
    whole."""
    deep = dict[str, int]()
    for part in parts:
        below = [deep[imported] for module in part for imported in imports[module] if imported not in part]
        deep |= dict.fromkeys(part, len(part) + max(below, default=0))
    return deep


def both_ways(imports: Mapping[str, Iterable[str]], sources: Sources) -> set[tuple[Path, Path]]:
    """Pairs of folders, neither of which lies in the other one."""
    folders = {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): path.parent for path in sources.texts
    }
    edges = {
        (folders[module], folders[imported])
        for module, some in imports.items()
        for imported in some
        if module in folders and imported in folders
    }
    apart = ((a, b) for a, b in edges if not a.is_relative_to(b) and not b.is_relative_to(a))
    return {(a, b) for a, b in apart if a < b and (b, a) in edges}


def empty_collections(tree: ast.Module) -> int:
    """Lists and dicts at the level of the module that are empty there: registries, callbacks, caches."""
    values = (node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign))
    some = (value for value in values if isinstance(value, ast.List | ast.Dict))
    return sum(not (value.elts if isinstance(value, ast.List) else value.keys) for value in some)


def names_defined_twice(sources: Sources) -> list[tuple[str, str]]:
    """(app, name) of classes and functions, without commands, which Django finds by the name `Command`, and
    the `main` of programs."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    names = Counter(
        (path.parts[0], node.name)
        for path, tree in sources.trees.items()
        for node in tree.body
        if isinstance(node, kinds) and not node.name.startswith("_") and node.name not in ("Command", "main")
    )
    return [name for name, count in names.items() if count > 1]


def complaints(sources: Sources) -> dict[str, int]:
    options = ("--select", ",".join(RULES), "--output-format", "json", "--exit-zero", "--no-cache")
    command = [str(Path(sys.executable).with_name("ruff")), "check", *options, *sources.packages]
    done = subprocess.run(command, cwd=sources.root, capture_output=True, text=True, check=True)
    codes = [entry["code"] for entry in json.loads(done.stdout)]
    return {rule: sum(code.startswith(rule) for code in codes) for rule in RULES}
