"""What git says of a repository."""

import subprocess
from pathlib import Path

import pytest

from tests.changed import changes
from tests.changed.changes import Change
from tests.changed.functions import WHOLE

pytestmark = pytest.mark.process

SOURCE = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"


def git(repository: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, *arguments], cwd=repository, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for name in ("rule.py", "gone.py", "old.py", "page.html"):
        (tmp_path / name).write_text(SOURCE)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_each_kind_of_change_is_found(repository: Path) -> None:
    (repository / "rule.py").write_text(SOURCE.replace("return 2", "return 3"))
    (repository / "page.html").write_text("<p>")
    (repository / "new one.py").write_text(SOURCE)
    (repository / "gone.py").unlink()
    git(repository, "mv", "old.py", "renamed.py")

    revision, found = changes.find(repository)

    assert revision == "HEAD"
    assert {change.path: set(change.functions) for change in found} == {
        "rule.py": {"second"},
        "page.html": {WHOLE},
        "new one.py": {WHOLE},
        "gone.py": {"first", "second"},
        "old.py": {"first", "second"},
        "renamed.py": {"first", "second"},
    }


def test_lines_that_were_removed_change_the_function_that_they_stood_in(repository: Path) -> None:
    (repository / "rule.py").write_text("def first():\n    return 1\n")

    assert changes.find(repository)[1] == [Change("rule.py", {"second": 0b11})]


def test_inserted_lines_stand_where_the_line_before_them_is(repository: Path) -> None:
    (repository / "rule.py").write_text(SOURCE.replace("def second():\n", "def second():\n    print()\n"))
    assert changes.find(repository)[1] == [Change("rule.py", {"second": 0b1})]

    (repository / "rule.py").write_text(f"def new():\n    return 3\n\n\n{SOURCE}")
    assert changes.find(repository)[1] == [Change("rule.py", {"new": 0})]


def test_a_clean_work_tree_is_compared_with_the_commit_before_or_the_given_one(repository: Path) -> None:
    for name in ("gone.py", "rule.py"):
        (repository / name).write_text("")
        git(repository, "commit", "-qam", name)

    assert [change.path for change in changes.find(repository)[1]] == ["rule.py"]
    assert {change.path for change in changes.find(repository, "HEAD~2")[1]} == {"gone.py", "rule.py"}


def test_no_repository_is_an_error_that_names_git(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError, match="git"):
        changes.find(tmp_path)
