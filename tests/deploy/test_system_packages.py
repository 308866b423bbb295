from pathlib import Path

import pytest

from deploy.console import DeployError
from deploy.installing import artemis_download, system_packages
from deploy.installing.system_packages import Need

PRESENT = Need("the sun", ("sun",), lambda: True)
ABSENT = Need("the moon", ("no-such-package-moon",), lambda: False)


def refuse_to_speak(text: str) -> None:
    raise AssertionError(text)


def test_where_everything_is_there_nothing_is_installed_or_said(tmp_path: Path) -> None:
    system_packages.ensure_installed((PRESENT,), tmp_path / "log", refuse_to_speak)
    assert not (tmp_path / "log").exists()


def test_without_the_right_to_install_one_message_names_exactly_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_packages, "_as_root", lambda: None)
    with pytest.raises(DeployError) as caught:
        system_packages.ensure_installed((PRESENT, ABSENT), tmp_path / "log", refuse_to_speak)
    assert str(caught.value) == (
        "This machine lacks the moon. On Debian: sudo apt-get install no-such-package-moon"
    )


@pytest.mark.process
def test_an_installation_that_fails_is_one_problem_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_packages, "_as_root", lambda: ["false"])
    said: list[str] = []
    with pytest.raises(DeployError, match="apt-get install failed with exit code 1; all of it is in"):
        system_packages.ensure_installed((ABSENT,), tmp_path / "log", said.append)
    assert said == ["installing no-such-package-moon"]


@pytest.mark.process
def test_everything_that_a_start_needs_is_found_on_a_machine_that_runs_these_tests() -> None:
    needs = (
        system_packages.needs_of_start(broker=True, virtual_environment=False)
        + system_packages.needs_of_tests()
    )
    assert [need.what for need in needs if not need.found()] == []


def test_compilers_are_only_asked_for_while_python_packages_have_to_be_built() -> None:
    before = {need.what for need in system_packages.needs_of_start(broker=True, virtual_environment=True)}
    after = {need.what for need in system_packages.needs_of_start(broker=True, virtual_environment=False)}
    assert "a C compiler" in before - after


def test_maven_is_only_asked_for_while_the_broker_has_to_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(broker: bool) -> bool:
        needs = system_packages.needs_of_start(broker=broker, virtual_environment=False)
        return "Maven" in {need.what for need in needs}

    monkeypatch.setattr(artemis_download, "archive", lambda: tmp_path / "not there")
    assert asked(broker=True) and not asked(broker=False)
    monkeypatch.setattr(artemis_download, "archive", lambda: tmp_path)
    assert not asked(broker=True)
