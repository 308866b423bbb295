"""Sizes, chains and circles may only get better. MA_TEST_APPROVE=1 keeps the figures of today."""

from pathlib import Path

import pytest

from tests.architecture.figures import Sources, both_ways, components, depths, figures, import_map
from tests.architecture.ratchet import OF_THE_SITE, approved, assert_no_worse
from tests.architecture.test_house import PACKAGES, ROOT


@pytest.mark.process
def test_no_figure_of_the_house_gets_worse() -> None:
    found = figures(Sources(ROOT, PACKAGES), ROOT / "tests")
    assert_no_worse(found)
    assert approved().keys() == {*found, *OF_THE_SITE}, "each line is a figure that something counts"


def test_a_figure_that_gets_worse_or_is_new_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MA_TEST_APPROVE", raising=False)
    file = tmp_path / "figures.txt"
    file.write_text("files: 7\nlines: 12\n")
    assert_no_worse({"files": 6, "lines": 12, "circles": 0}, file)
    for worse in ({"files": 8}, {"circles": 1}):
        with pytest.raises(AssertionError):
            assert_no_worse(worse, file)
    monkeypatch.setenv("MA_TEST_APPROVE", "1")
    assert_no_worse({"files": 8, "circles": 1}, file)
    assert file.read_text() == "files: 8\nlines: 12\ncircles: 1\n"


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
