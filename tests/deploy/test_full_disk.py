"""A disk that is really full: status and doctor say which, what may be deleted, and what must not be."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.config import REPOSITORY

pytestmark = pytest.mark.process

MB = 1024 * 1024


def on_full_disk(folder: Path, case: str) -> dict[str, Any]:
    folder.mkdir()
    program = [sys.executable, "-m", "tests.deploy.on_full_disk", str(folder), case]
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", *program],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"needs namespaces of users (unshare -rm):\n{done.stderr}"
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_status_says_which_disk_is_full_and_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "full"
    told = on_full_disk(folder, "status")
    text = told["text"]["out"]
    assert "web" in text and "running" in text, "what stands"
    assert f"disk: {folder} is full: 0 MB free of 2 MB" in text
    assert f"rm -f {folder}/data/log/*.log.[0-9]*" in text and f"du -xsh {folder}/data/* | sort -h" in text
    forbidden = text.partition("never delete:")[2]
    assert all(f"{folder}/data/{name}" in forbidden for name in ("kma", "broker", "db.sqlite3*"))
    assert told["text"]["code"] == 1
    (disk,) = json.loads(told["json"]["out"])["disks"]
    assert (disk["mounted_at"], disk["free"], disk["problem"]) == (str(folder), 0, "full: 0 MB free of 2 MB")


def test_a_command_whose_output_finds_no_room_says_so_in_its_own_words(tmp_path: Path) -> None:
    told = on_full_disk(tmp_path / "full", "status")["into_it"]
    assert told["code"] == 1
    assert "Traceback" not in told["err"]
    assert told["err"].startswith("ma: the disk is full: ")
    assert "never delete:" in told["err"]


def test_doctor_says_which_folder_and_what_may_be_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "full"
    told = on_full_disk(folder, "doctor")
    findings = {found["check"]: found for found in json.loads(told["out"])["findings"]}
    assert told["code"] == 1
    disk = findings.get("disk", {"detail": "", "what_to_do": ""})
    assert "full: 0 MB free of 64 MB" in disk["detail"]
    assert f"{folder}/data (data folder, " in disk["detail"] and "database" in disk["detail"]
    assert f"rm -f {folder}/data/log/*.log.[0-9]*" in disk["what_to_do"]
    assert "Never delete" in disk["what_to_do"] and "spools" in disk["what_to_do"]
    assert not findings["database"]["ok"]
    assert "migrate" not in findings["database"]["what_to_do"], "nothing is wrong with the schema"


@pytest.mark.parametrize(
    ("free", "total", "files", "says"),
    [
        (99 * MB, 10_000 * MB, 5, "full: 99 MB free of 10000 MB"),
        (5_000 * MB, 10_000 * MB, 0, "full: no free inodes"),
        (499 * MB, 10_000 * MB, 5, "nearly full: 499 MB"),
        (500 * MB, 10_000 * MB, 5, ""),
        (0, 0, 0, ""),
    ],
)
def test_status_and_doctor_call_the_same_full(free: int, total: int, files: int, says: str) -> None:
    from deploy.disk import problem
    from ma_site.checks.host import problem as problem_for_doctor

    for decide in (problem, problem_for_doctor):
        assert decide(free, total, files).startswith(says) and bool(decide(free, total, files)) is bool(says)


def test_a_folder_with_a_blank_is_quoted_in_commands(tmp_path: Path) -> None:
    from ma_site.checks.host import what_to_do

    data = tmp_path / "a folder"
    (data / "pipeline").mkdir(parents=True)
    said = what_to_do(data)
    assert f"rm -f '{data}'/log/*.log.[0-9]*" in said and f"rm -rf '{data}'/pipeline/*" in said
