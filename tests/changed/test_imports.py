"""The import graph of this repository and of small ones."""

from pathlib import Path
from typing import Any

import grimp
import pytest
from grimp.exceptions import SourceSyntaxError

from tests.changed.imports import distances, naming


def test_a_file_of_tests_is_as_far_as_its_imports() -> None:
    found = distances(["contract", "dlq"], ["tests/changed/functions.py"])
    here = Path(__file__).parent.relative_to(Path.cwd())

    assert found[str(here / "test_functions.py")] == 1
    assert found[str(here / "test_main.py")] == 2, "through changes"
    assert found[str(here / "test_recorder.py")] == 2
    assert str(Path("tests", "conftest.py")) not in found


def test_what_is_no_module_or_is_gone_reaches_nothing() -> None:
    assert distances(["contract"], ["locale/ru/LC_MESSAGES/django.po", "contract/gone.py"]) == {}


def test_a_source_that_is_no_python_leaves_the_order_to_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_packages: str, **_options: Any) -> None:
        raise SourceSyntaxError(filename="contract/breaker.py", lineno=1, text="def (")

    monkeypatch.setattr(grimp, "build_graph", fail)
    assert distances(["contract"], ["contract/breaker.py"]) == {}


def test_a_template_stands_for_modules_that_name_it_or_what_includes_it(tmp_path: Path) -> None:
    for path, text in {
        "templates/dlq/page.html": '{% include "dlq/part.html" %}',
        "templates/dlq/part.html": "part",
        "templates/dlq/other.html": "other",
        "dlq/page.py": 'render(request, "dlq/page.html")',
        "dlq/other.py": "render(request, 'dlq/other.html')",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    assert naming(tmp_path, ["dlq"], ["templates/dlq/part.html"]) == ["dlq/page.py"]
    assert naming(tmp_path, ["dlq"], ["templates/dlq/other.html", "dlq/page.py"]) == ["dlq/other.py"]
    assert naming(tmp_path, ["dlq"], ["dlq/page.py"]) == []
