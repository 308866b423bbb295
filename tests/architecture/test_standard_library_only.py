"""What has to run on a bare Python imports nothing but Python's own library and itself."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.config import REPOSITORY


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("package", ["contract", "deploy"])
def test_the_package_imports_the_standard_library_and_itself(package: str) -> None:
    files = sorted((REPOSITORY / package).rglob("*.py"))
    foreign = {
        f"{file.relative_to(REPOSITORY)}: {name}"
        for file in files
        for name in imported(file)
        if name != package and name not in sys.stdlib_module_names
    }
    assert files
    assert not foreign


def test_the_script_itself_imports_only_the_deployment() -> None:
    assert set(imported(REPOSITORY / "ma")) == {"sys", "deploy"}
