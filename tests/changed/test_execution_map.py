from pathlib import Path

from tests.changed.changes import Change
from tests.changed.execution_map import Executed, keep, read
from tests.changed.functions import WHOLE

A, B, PAGE = ("dlq/a.py", "find"), ("dlq/a.py", "count"), ("templates/a.html", WHOLE)


def recorded(where: Path) -> Path:
    keep(where, {"t/test_x.py::test_narrow": Executed(1, {A: 0b001})})
    keep(where, {"t/test_x.py::test_wide": Executed(2, {A: 0b011, B: 1, PAGE: 0})})
    return where


def test_the_narrowest_test_of_the_rarest_function_comes_first(tmp_path: Path) -> None:
    where = recorded(tmp_path)

    known = read(where, [Change("dlq/a.py", {"find": 0})])
    assert sorted(known.touching, key=known.touching.__getitem__) == [
        "t/test_x.py::test_narrow",
        "t/test_x.py::test_wide",
    ]
    beside = read(where, [Change("dlq/a.py", {"find": 0, WHOLE: 0})])
    assert min(beside.touching, key=beside.touching.__getitem__) == "t/test_x.py::test_wide", (
        "it executes both"
    )
    whole = read(where, [Change("dlq/a.py")])
    assert min(whole.touching, key=whole.touching.__getitem__) == "t/test_x.py::test_wide"
    assert (known.tests["t/test_x.py"], known.seconds["t/test_x.py"]) == (2, 3)


def test_who_executes_the_changed_line_comes_before_who_only_enters_its_function(tmp_path: Path) -> None:
    known = read(recorded(tmp_path), [Change("dlq/a.py", {"find": 0b010})])

    assert sorted(known.touching, key=known.touching.__getitem__) == [
        "t/test_x.py::test_wide",
        "t/test_x.py::test_narrow",
    ]


def test_a_template_and_what_nothing_executes_are_known_too(tmp_path: Path) -> None:
    where = recorded(tmp_path)

    assert set(read(where, [Change("templates/a.html")]).touching) == {"t/test_x.py::test_wide"}
    assert read(where, [Change("dlq/b.py")]).touching == {}
    assert read(tmp_path / "none", [Change("dlq/a.py")]).tests == {}


def test_a_file_without_a_chosen_test_is_known_to_have_none(tmp_path: Path) -> None:
    keep(recorded(tmp_path), {}, ["t/test_y.py", "t/test_x.py"])
    keep(tmp_path, {}, ["t/test_y.py"])

    assert dict(read(tmp_path, []).tests) == {"t/test_x.py": 2, "t/test_y.py": 0}


def test_a_test_that_is_recorded_again_forgets_what_it_no_longer_executes(tmp_path: Path) -> None:
    where = recorded(tmp_path)
    keep(where, {"t/test_x.py::test_wide": Executed(1, {B: 1})})

    assert read(where, [Change("templates/a.html")]).touching == {}
    assert read(where, [Change("dlq/a.py", {"find": 0})]).touching == {"t/test_x.py::test_narrow": (-1, 1)}


def test_a_file_of_tests_that_moved_is_found_by_its_name_unless_there_are_two(tmp_path: Path) -> None:
    known = read(recorded(tmp_path), [Change("templates/a.html")])

    assert set(known.moved(["t/dlq/test_x.py"]).touching) == {"t/dlq/test_x.py::test_wide"}
    assert known.moved(["t/dlq/test_x.py"]).tests == {"t/dlq/test_x.py": 2}
    assert set(known.moved(["t/a/test_x.py", "t/b/test_x.py"]).touching) == set(known.touching)
