"""The order for this repository, and what a run says at its end."""

from pathlib import Path

import pytest

from deploy.config import REPOSITORY
from tests.changed import __main__ as program
from tests.changed.changes import Change
from tests.changed.execution_map import Known
from tests.changed.order import Ranking, portions
from tests.changed.run import Run


def first(path: str, count: int = 12) -> list[str]:
    """Without a map, as in a new clone."""
    files = program.files()
    ranking = program.ranking_of(files, [Change(path)], Known())
    return [portion.file for portion in portions(ranking)][:count]


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("contract/breaker.py", "breaker"),
        ("templates/dlq/replay.html", "replay"),
        ("dlq/pages/groups.py", "groups"),
    ],
)
def test_a_new_clone_has_a_sensible_order(path: str, word: str) -> None:
    assert (REPOSITORY / path).exists() and any(word in Path(file).stem for file in first(path)), first(path)


def test_a_changed_file_of_tests_is_first() -> None:
    this = str(Path(__file__).relative_to(REPOSITORY))
    assert first(this)[0] == this


def test_tests_below_a_changed_conftest_come_before_others() -> None:
    assert {file.split("/")[1] for file in first("tests/web/conftest.py")} <= {"web", "architecture"}


def test_the_approved_surface_is_there() -> None:
    assert program.ranking_of(program.files(), [], Known()).approved


def test_the_end_says_what_failed_and_what_was_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MA_TEST_CACHE", str(tmp_path))
    ranking = Ranking(
        ("t/a/test_x.py", "t/b/test_y.py"),
        touching={"t/a/test_x.py::test_a": (-1, 1), "t/a/test_x.py::test_b": (-1, 1)},
        tests={"t/b/test_y.py": 7},
    )
    run = Run(program.say, lambda: 0.0)
    run.hear({"collected": "t/a/test_x.py", "names": ["t/a/test_x.py::test_a", "t/a/test_x.py::test_b"]})
    run.hear({"done": "t/a/test_x.py::test_a"})
    assert program.report(run, ranking) == 0
    run.fail("ruff", "line too long")
    run.unfinished.append("mypy")
    assert program.report(run, ranking) == 1

    said = capsys.readouterr().out
    assert "1 of the 2 tests that execute the change are among them" in said
    assert "left out for lack of time: 8 tests (t/b 7, t/a 1)" in said
    assert f"@{tmp_path / 'left-out.txt'}" in said and "cut off: mypy" in said and "FAILED ruff" in said
    assert (tmp_path / "left-out.txt").read_text() == "t/a/test_x.py\nt/b/test_y.py\n"
