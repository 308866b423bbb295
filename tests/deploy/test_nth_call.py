"""Each call of what writes files of the installation fails once: the old file or the new one is there, and no
draft."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.servers.admission import write_draft
from contract.messages import DesiredState
from deploy import cli, secret_files
from deploy.services import artemis
from deploy.services.artemis import BrokerPorts
from kma.host import desired_state
from kma.spool.journal import Journal
from tests.kit.failing_calls import SHORT, Fault, each_nth, run

pytestmark = pytest.mark.process

ENDLESS = "-Xms1G -Xmx2G " + "x" * 20_000
PROFILE = f"ARTEMIS_HOME='/a' {ENDLESS}"
PASSWORDS = {"kma": "a", "publisher": "b", "ma-ops": "c"}
FAULTS = [
    Fault("open", errno.ENOSPC),
    Fault("write", errno.ENOSPC),
    Fault("write", errno.EIO, lasting=True),
    Fault("write", SHORT),
    Fault("rename", errno.EIO),
]
SYNC = Fault("sync", errno.EIO)
Writer = Callable[[Path], Any]


def write_twice(write: Callable[[Path, str], Any]) -> Writer:
    def both(folder: Path) -> None:
        write(folder / "one", "old")
        write(folder / "one", "new" * 5000)

    return both


def broker(folder: Path) -> None:
    artemis.write_broker_files(folder, BrokerPorts(21, 22, 23), PASSWORDS)


def before_broker(folder: Path) -> None:
    (folder / "etc").mkdir()
    (folder / "etc" / "artemis.profile").write_text(PROFILE)
    artemis.measured_copy(folder).write_text("<journal-buffer-timeout>7<")


def states(folder: Path) -> None:
    for version in ("1", "2" * 9000):
        desired_state.store(folder / "one", DesiredState("srv-1", version, ()))


def tokens(folder: Path) -> None:
    for secret in ("old", "new" * 5000):
        write_draft(folder / "one", secret).replace(folder / "one")


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


WRITERS: dict[str, tuple[Writer, Writer]] = {
    "secret": (write_twice(secret_files.write), lambda folder: None),
    "token": (tokens, lambda folder: None),
    "desired": (states, lambda folder: None),
    "broker": (broker, before_broker),
}


@pytest.mark.parametrize("fault", [*FAULTS, SYNC], ids=str)
@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_is_the_old_one_or_the_new_one(tmp_path: Path, kind: str, fault: Fault) -> None:
    write, prepare = WRITERS[kind]

    def scenario(folder: Path, repair: Callable[[], None]) -> tuple[str, dict[str, str]]:
        error = ""
        try:
            write(folder)
        except OSError as found:
            error = str(found)
        after = contents(folder)
        repair()
        write(folder)
        return error, after

    for outcome in each_nth(tmp_path, fault, scenario, before=prepare):
        assert outcome.error is None, outcome
        error, after = outcome.result
        assert bool(error) is (bool(outcome.failed) and fault.error != SHORT), outcome
        whole = contents(outcome.folder)
        # Theirs has one name: the next write takes it, and a token that has no file yet is only there.
        kept = {"one.new"} if kind in ("desired", "token") else set()
        assert set(after) - set(whole) <= kept, f"a draft is left: {outcome}"
        if kind == "broker":
            assert after["etc/artemis.profile"] in (PROFILE, whole["etc/artemis.profile"]), outcome
            assert "-Xmx2G" not in whole["etc/artemis.profile"]
        elif "one" in after:
            small, large = sorted((after["one"], whole["one"]), key=len)
            assert small == large or len(small) < 200, f"half of it: {outcome}"


def test_a_journal_that_finds_no_room_leaves_no_file(tmp_path: Path) -> None:
    def scenario(folder: Path, repair: Callable[[], None]) -> list[str]:
        with pytest.raises(OSError, match="No space"):
            Journal.create(folder / "a.journal", {}, 4)
        left = [path.name for path in folder.iterdir()]
        repair()
        Journal.create(folder / "a.journal", {}, 4).close()
        return left

    outcome = run_once(tmp_path, Fault("room", errno.ENOSPC), scenario)
    assert outcome == []


def run_once(place: Path, fault: Fault, scenario: Callable[[Path, Callable[[], None]], Any]) -> Any:
    outcome = run(place, fault, 1, scenario)
    assert outcome.failed and outcome.error is None, outcome
    return outcome.result


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_a_command_says_that_the_disk_fails(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_given: object) -> int:
        raise OSError(number, "it does not work", "/data/run/up.lock")

    monkeypatch.setattr(cli, "_command", fails)
    assert cli.main(["status"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("ma: disk error: ") and "/data/run/up.lock" in said and "Traceback" not in said
