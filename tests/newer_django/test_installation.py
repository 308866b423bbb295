"""Django alone is another one."""

import pytest
from packaging.requirements import Requirement

from deploy.config import REPOSITORY
from deploy.console import DeployError
from deploy.installing import python_packages
from tests.newer_django import __main__ as command
from tests.newer_django import installation, pythons


def test_everything_but_django_has_its_pinned_version() -> None:
    files = ("requirements.txt", "requirements-test.txt")
    pinned = {line for file in files for line in python_packages.requirements(file)}
    (before,) = pinned - {*installation.requirements()}
    (after,) = {*installation.requirements()} - pinned
    assert Requirement(before).name == Requirement(after).name == "django"
    assert not Requirement(after).specifier.contains(before.removeprefix("django==")), "it is a newer series"
    lines = {*(REPOSITORY / "constraints.txt").read_text().splitlines()}
    (left_out,) = lines - {*installation.constraints().splitlines()}
    assert left_out.lower() == before


def test_without_a_python_the_stage_fails_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(_log: object) -> None:
        raise DeployError("there is none")

    monkeypatch.setattr(pythons, "ensure", nowhere)
    assert command.main(()) == 1
    assert capsys.readouterr().out == "there is none\n"
