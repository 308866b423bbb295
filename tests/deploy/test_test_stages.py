import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy import config as configuration
from deploy.commands import test as commands
from deploy.commands.test import EVERYTHING, POSTGRESQL, WAITS, Result, Stage, stages
from deploy.installing import artemis_download, python_packages
from tests.services import pictures


def test_without_arguments_everything_runs() -> None:
    assert stages(()) == EVERYTHING
    names = [stage.name for stage in EVERYTHING if stage.lane == 0]
    assert names == ["ruff", "format", "mypy", "imports", "tests", "tests, PostgreSQL"]


def test_what_one_stage_leaves_out_another_runs() -> None:
    commands = [stage.command for stage in EVERYTHING]
    left_out = [
        word.removeprefix("--ignore=") for words in commands for word in words if word.startswith("--ignore=")
    ]

    assert left_out == list(WAITS)
    (waits,) = [stage.command for stage in EVERYTHING if stage.lane == 1]
    assert set(left_out) <= set(waits)


def test_what_changed_is_a_stage_of_its_own() -> None:
    assert [stage.command for stage in stages(("--changed",))] == [("python", "-m", "tests.changed")]
    assert [stage.command for stage in stages(("--changed=main",))] == [
        ("python", "-m", "tests.changed", "main")
    ]


def test_the_share_of_branches_is_said_as_the_last_night_measured_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MA_TEST_CACHE", str(tmp_path))
    assert "--night" in commands._branches()
    (tmp_path / "coverage.txt").write_text("agents 70.0\ndlq 80.5\n")
    assert commands._branches().endswith(": agents 70.0 %, dlq 80.5 %")


@pytest.mark.parametrize("lane", [0, 1])
def test_a_stage_of_any_lane_fails_the_whole(
    lane: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = []

    def run(stage: Stage, tell: Callable[[str], None]) -> Result:
        seen.append(stage.name)
        tell("said\n")
        return Result(stage, int(stage.lane == lane), 0, 0, "said")

    monkeypatch.setattr(commands, "_run", run)
    monkeypatch.setattr(commands, "_install", lambda layout: None)
    monkeypatch.setattr(artemis_download, "fetch", lambda log: None)

    assert commands.test(configuration.read({"MA_DATA": str(tmp_path)}), ()) == 1
    assert sorted(seen) == sorted(stage.name for stage in EVERYTHING)
    assert commands.test(configuration.read({"MA_DATA": str(tmp_path)}), ("tests/unit",)) == int(lane == 0)


@pytest.mark.process
def test_what_failed_is_repeated_at_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a long output many a reader has the end only, and the lanes behind print long before it."""
    two = "def test_bad():\n    assert 'this' == 'that'\n\ndef test_good():\n    pass\n"
    (tmp_path / "test_of_two.py").write_text(two)
    bad = Stage(
        "first", ("pytest", "-q", str(tmp_path / "test_of_two.py"), "--rootdir", str(tmp_path)), lane=1
    )
    monkeypatch.setattr(commands, "EVERYTHING", (bad, Stage("second", ("ruff", "--version"))))
    monkeypatch.setattr(commands, "_install", lambda layout: None)
    monkeypatch.setattr(artemis_download, "fetch", lambda log: None)

    assert commands.test(configuration.read({"MA_DATA": str(tmp_path)}), ()) == 1
    end = capsys.readouterr().out.partition("== failures of first\n")[2]
    assert "AssertionError: assert 'this' == 'that'" in end and "test_of_two.py::test_bad" in end
    assert "second" in end, "the table stands below"


def test_arguments_go_to_pytest_alone() -> None:
    (stage,) = stages(("tests/unit", "-k", "breaker"))
    assert stage.command == ("pytest", "tests/unit", "-k", "breaker")
    assert stage.settings == {}


def test_what_runs_on_one_database_only_runs_on_the_other_one_at_night() -> None:
    by_day = [stage for stage in EVERYTHING if stage.settings == POSTGRESQL]
    assert [stage.command[-2:] for stage in by_day] == [("-m", "both_databases and not night")]
    at_night = [
        word for stage in stages(("--night",)) for word in stage.command if stage.settings == POSTGRESQL
    ]
    assert {"tests", *WAITS} <= set(at_night) and "-m" not in at_night


def test_the_next_django_is_tried_at_night() -> None:
    """Its tests fail where there is no Python that it runs on: tests/newer_django/test_installation.py."""
    assert ("python", "-m", "tests.newer_django") in [stage.command for stage in stages(("--night",))]


def test_long_campaigns_have_no_time_limit() -> None:
    mutants, campaigns = stages(("--long",))
    by_mode, until_the_hours_are_over = (
        "tests/campaigns/test_kills_by_mode.py",
        "tests/campaigns/test_kills.py",
    )
    assert campaigns.command == ("pytest", "--timeout=0", by_mode, until_the_hours_are_over)
    assert campaigns.settings == {"MA_TEST_LONG": "1"}
    assert mutants.command == ("python", "-m", "tests.mutation")


def test_a_long_campaign_can_be_chosen() -> None:
    (stage,) = stages(("--long", "-k", "kills"))
    assert stage.command == ("pytest", "--timeout=0", "-k", "kills")


def test_stages_beside_each_other_keep_their_pictures_apart() -> None:
    """One counts its pictures at the end: those of another in the same folder fail it."""
    kept = [
        line
        for file in (configuration.REPOSITORY / "tests").rglob("test_*.py")
        for line in file.read_text().splitlines()
        if line.startswith("PICTURES = ")
    ]
    assert kept and all(line.endswith("pictures(__name__)") for line in kept), kept
    assert pictures("tests.browser.test_one") != pictures("tests.browser.test_two")


@pytest.mark.parametrize(("arguments", "folder"), [((), "data/docs"), (("site",), "site")])
def test_the_site_of_the_documentation_is_built_in_the_data_folder_unless_told_otherwise(
    arguments: tuple[str, ...], folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = configuration.read({"MA_DATA": str(tmp_path / "data")})
    begun: list[list[str]] = []

    def run(command: list[str], **_options: object) -> "subprocess.CompletedProcess[str]":
        begun.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(python_packages, "installed", lambda lines, stamp: stamp == "docs")
    monkeypatch.setattr(subprocess, "run", run)
    assert commands.docs(config, arguments) == 1
    expected = folder if arguments else str(tmp_path / folder)
    assert [command[1:] for command in begun] == [["-m", "handbook", expected]]
