"""Sizes, chains and circles may only get better. MA_TEST_APPROVE=1 keeps the figures of today."""

import os
from pathlib import Path

import pytest

from tests.architecture.approval import FOLDER
from tests.architecture.figures import Sources, both_ways, components, depths, figures, import_map
from tests.architecture.test_house import PACKAGES, ROOT

FILE = FOLDER / "figures.txt"


@pytest.mark.process
def test_no_figure_of_the_house_gets_worse() -> None:
    found = figures(Sources(ROOT, PACKAGES), ROOT / "tests")
    if os.environ.get("MA_TEST_APPROVE") == "1":
        FILE.write_text("".join(f"{name}: {figure}\n" for name, figure in found.items()), "utf-8")
    lines = (line.rpartition(": ") for line in FILE.read_text("utf-8").splitlines())
    approved = {name: int(figure) for name, _colon, figure in lines}
    for name, figure in found.items():
        print(f"{name:45}{approved.get(name, 0):8}{figure:8}")
    assert {name: figure for name, figure in found.items() if figure > approved.get(name, 0)} == {}


IMPORTS: dict[str, set[str]] = {
    "top": {"a"},
    "a": {"b"},
    "b": {"c"},
    "c": {"a", "low"},
    "low": set(),
    "alone": set(),
}


def test_a_circle_is_one_part_and_counts_whole_in_a_chain() -> None:
    parts = components(IMPORTS)
    assert [sorted(part) for part in parts if len(part) > 1] == [["a", "b", "c"]]
    assert depths(IMPORTS, parts) == {"alone": 1, "low": 1, "a": 4, "b": 4, "c": 4, "top": 5}


def test_folders_that_import_each_other_are_found(tmp_path: Path) -> None:
    for name in ("one", "two", "one/inner"):
        (tmp_path / "app" / name).mkdir(parents=True)
        (tmp_path / "app" / name / "module.py").write_text("")
    imports = {
        "app.one.module": {"app.two.module", "app.one.inner.module"},
        "app.two.module": {"app.one.module"},
    }
    imports |= {"app.one.inner.module": {"app.one.module"}}
    assert both_ways(imports, Sources(tmp_path, ["app"])) == {(Path("app/one"), Path("app/two"))}


def test_the_graph_is_that_of_the_product() -> None:
    imports = import_map(Sources(ROOT, ["contract"]).graph)
    assert "contract.breaker" in imports and "contract" not in imports["contract.wire"]
