"""Which Python is taken, and what is said where there is none."""

import os
import sys
from pathlib import Path

import pytest

from deploy.console import DeployError
from deploy.installing import system_packages
from tests.newer_django import pythons

MACHINE = ("#!/bin/sh\n# A shim of pyenv without a version behind it.\nexit 127\n", "#!/bin/sh\nexit 0\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """It has what a test puts there."""
    for name in ("first", "second", "pyenv/versions/3.14.0/bin"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.delenv(pythons.CHOSEN, raising=False)
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "nothing"))
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / name) for name in ("first", "second")))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def put(place: Path, *, works: bool = True) -> Path:
    place.write_text(MACHINE[works])
    place.chmod(0o755)
    return place


@pytest.mark.process
def test_the_oldest_that_works_is_taken(machine: Path) -> None:
    assert pythons.find() is None
    newest = put(machine / "pyenv/versions/3.14.0/bin/python3.14")
    assert pythons.find() == newest
    put(machine / "first/python3.13", works=False)
    put(machine / "first/python3.11")
    behind = put(machine / "second/python3.13")
    assert pythons.find() == behind
    put(machine / "first/python3.12", works=False)
    assert pythons.find() == behind
    assert put(machine / "second/python3.12") == pythons.find()


@pytest.mark.process
def test_one_that_was_chosen_is_the_only_one(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(machine / "first/python3.12")
    monkeypatch.setenv(pythons.CHOSEN, str(machine / "away"))
    assert pythons.find() is None
    monkeypatch.setenv(pythons.CHOSEN, sys.executable)
    assert (pythons.find() is not None) == (sys.version_info >= (3, pythons.MINORS[0]))


@pytest.mark.process
def test_where_apt_has_none_it_is_said_and_nothing_goes_on(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(needs: tuple[system_packages.Need, ...], *_: object) -> None:
        asked.extend(need.packages[0] for need in needs if not need.found())
        raise DeployError("apt-get install failed with exit code 100")

    monkeypatch.setattr(system_packages, "ensure_installed", refuse)
    with pytest.raises(DeployError, match=r"needs Python 3\.12 or newer.*Debian 12 has 3\.11 only"):
        pythons.ensure(machine / "log")
    assert asked == ["python3.12-venv", "python3.12-dev"]
    monkeypatch.setattr(system_packages, "ensure_installed", lambda *_: None)
    with pytest.raises(DeployError, match="Install one"):
        pythons.ensure(machine / "log")
