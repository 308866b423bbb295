from pathlib import Path

from coverage import CoverageData

from tests.changed.branches import PART, fallen, measure, read, write

SOURCE = "def rule(n):\n    if n:\n        return 1\n    return 2\n"


def test_parts_of_all_workers_count_and_files_that_nothing_imports(tmp_path: Path) -> None:
    where = tmp_path / "map"
    for package in ("seen", "unseen"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "rule.py").write_text(SOURCE)
    (tmp_path / "seen" / "more.py").write_text(SOURCE)
    where.mkdir()
    for number, arc in enumerate(((2, 3), (2, 4))):
        data = CoverageData(basename=str(where / f"{PART}{number}"))
        data.add_arcs({str(tmp_path / "seen" / "rule.py"): [(-1, 1), (-1, 2), arc, (arc[1], -1)]})
        data.write()

    assert measure(where, tmp_path, ["seen", "unseen"]) == {"seen": 50.0, "unseen": 0.0}
    (where / f"{PART}1").unlink()
    assert measure(where, tmp_path, ["seen", "unseen"])["seen"] == 25.0


def test_a_share_below_the_approved_one_is_named(tmp_path: Path) -> None:
    place = tmp_path / "coverage.txt"
    write(place, {"dlq": 80.5, "agents": 70.0, "gone": 1.0})

    assert place.read_text() == "agents 70.0\ndlq 80.5\ngone 1.0\n"
    assert fallen({"dlq": 80.0, "agents": 70.5}, read(place)) == [
        "dlq: 80.0 % of the branches, 80.5 % are approved"
    ]
    assert read(tmp_path / "none") == {}
