"""Sample agents write and send nowhere but in the demo: whoever may edit a setting chooses what they do."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kma.samples import bench, orders, scripted, standalone
from kma.testing import Outcome, Result, as_json, run_agent, run_standalone

ORDER = {"order": "A-1", "kind": "standard", "lines": [{"sku": "LAMP-2", "quantity": 1, "price": 1.0}]}


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of a KMA outside tests."""
    data = tmp_path / "kma"
    data.mkdir()
    monkeypatch.delenv("KMA_SAMPLES_ANYWHERE", raising=False)
    monkeypatch.setenv("KMA_DATA", str(data))
    return data


def start(truth: str | Path) -> Result:
    parameters = {"script": {"do": "ok", "note": "$(id)"}, "truth_file": str(truth)}
    return run_standalone(standalone.ScriptedStandalone, parameters=parameters)


def attempt(truth: str | Path) -> Result:
    return run_agent(
        scripted.Scripted, as_json({"do": "ok", "note": "$(id)"}), parameters={"truth_file": str(truth)}
    )


def refused(result: Result) -> bool:
    return result.failure is not None and result.failure.exception_type.endswith("OutsideLimits")


@pytest.mark.parametrize("run", [start, attempt])
def test_no_file_outside_the_truth_folder_is_written(run: Any, tmp_path: Path, data: Path) -> None:
    profile = tmp_path / "profile"
    profile.write_text("export A=1\n")
    for named in (
        profile,
        tmp_path / "new",
        "../profile",
        "../../profile",
        f"{data}/truth/../../profile",
        data / "x",
    ):
        result = run(named)
        assert profile.read_text() == "export A=1\n", f"{named} reached a file of somebody else"
        assert result.outcome is Outcome.RAISED and refused(result)
    assert {path.name for path in tmp_path.iterdir()} == {"kma", "profile"}


@pytest.mark.parametrize("run", [start, attempt])
def test_a_link_or_a_pipe_leads_nowhere(run: Any, tmp_path: Path, data: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    truth = data / "truth"
    truth.mkdir()
    (truth / "link").symlink_to(target)
    (truth / "folder").symlink_to(tmp_path, target_is_directory=True)
    os.link(target, truth / "hard")
    os.mkfifo(truth / "pipe")
    for named in ("link", "folder/target", "hard", "pipe", truth / "link"):
        result = run(named)
        assert target.read_text() == "", f"{named} reached a file of somebody else"
        assert result.outcome is Outcome.RAISED and refused(result)


def test_a_truth_folder_that_is_a_link_is_not_followed(tmp_path: Path, data: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (data / "truth").symlink_to(other, target_is_directory=True)
    assert refused(start("file")) and list(other.iterdir()) == []


def test_a_file_below_the_truth_folder_is_written_by_its_name_and_by_its_whole_path(data: Path) -> None:
    assert start("starts").ok and start(data / "truth" / "starts").ok
    lines = [json.loads(line) for line in (data / "truth" / "starts").read_text().splitlines()]
    assert [line["start"] for line in lines] == [1, 2]
    (data / "truth" / "inner").mkdir()
    assert attempt("inner/attempts").ok
    assert (data / "truth" / "inner" / "attempts").stat().st_mode & 0o777 == 0o600


def test_the_agent_of_the_benchmarks_writes_no_file_elsewhere_either(tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    folder.mkdir()
    result = run_agent(bench.trip, "x", parameters={"folder": str(folder), "seconds": 0})
    assert list(folder.iterdir()) == [] and refused(result)


def test_sample_agents_send_only_to_addresses_of_the_demo() -> None:
    for address in ("shop.orders", "MA.DLA", "demo.orders::orders", "DLQ.orders", ""):
        sent = run_agent(scripted.Scripted, as_json({"do": "send", "destination": address, "body": "x"}))
        assert sent.sent == () and refused(sent), address
    assert run_agent(orders.Orders, as_json(ORDER), parameters={"invoices": "shop.invoices"}).sent == ()
    assert run_standalone(standalone.NightlyReport, parameters={"reports": "shop.reports"}).sent == ()
    assert run_agent(scripted.Scripted, as_json({"do": "send", "destination": "demo.x", "body": "x"})).ok
