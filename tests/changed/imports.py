"""The import graph, from what changed up to the files of tests."""

import re
from collections.abc import Collection
from pathlib import Path

import grimp
from grimp.exceptions import SourceSyntaxError


def distances(packages: Collection[str], changed: Collection[str]) -> dict[str, int]:
    """Imports between each file of tests and the nearest changed module. Files that are not reached have
    none, and none has one while a source is no Python: ruff says so."""
    try:
        # Its cache is also lint-imports', which runs at the same time; without one it takes a second.
        graph = grimp.build_graph(*sorted({*packages, "tests"}), cache_dir=None)
    except SourceSyntaxError:
        return {}
    edge = {_module(path) for path in changed if path.endswith(".py")}
    found, distance = dict[str, int](), 0
    while edge := {module for module in edge if module in graph.modules and module not in found}:
        found |= dict.fromkeys(edge, distance)
        edge = {above for module in edge for above in graph.find_modules_that_directly_import(module)}
        distance += 1
    paths = {module.replace(".", "/") + ".py": steps for module, steps in found.items()}
    return {path: steps for path, steps in paths.items() if path.startswith("tests/") and steps}


def naming(repository: Path, packages: Collection[str], changed: Collection[str]) -> list[str]:
    """Modules that name a changed template, or a template that includes or extends it."""
    templates = {
        str(path.relative_to(repository / "templates")): path.read_text("utf-8")
        for path in (repository / "templates").rglob("*.html")
    }
    wanted = {path.removeprefix("templates/") for path in changed if path.startswith("templates/")}
    if not wanted:
        return []
    while more := {name for name, text in templates.items() if _names_any(text, wanted)} - wanted:
        wanted |= more
    sources = [path for package in packages for path in (repository / package).rglob("*.py")]
    return [
        str(path.relative_to(repository)) for path in sources if _names_any(path.read_text("utf-8"), wanted)
    ]


def _names_any(text: str, templates: Collection[str]) -> bool:
    return re.search("|".join(f"[\"']{re.escape(name)}[\"']" for name in sorted(templates)), text) is not None


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
