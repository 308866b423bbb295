"""One run after the other over a small archive: what is new is added, nothing is counted twice."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline import jobs_of_run
from pipeline.plan import PlanError, read
from pipeline.run import Run
from tests.pipeline.archived import Archived, states
from tests.pipeline.rows import frame

DAY = datetime(2026, 3, 30, 12, tzinfo=UTC)


def activation(archived: Archived, number: int, start: datetime) -> None:
    """Two failures in a row after three, and a message that recovered: all of it a block per kind."""
    of = {"activation": f"a{number}"}
    seconds = [timedelta(seconds=each) for each in (0, 10, 20, 30, 40)]
    session = archived.session
    rows = [
        {**of, "occurred_at": start + each, "message_key": f"m{number}", "properties": '{"region": "EU"}'}
        for each in seconds
    ]
    rows[3]["successes_before"] = 4
    archived.block(frame(session, "protocols", *rows), "protocols")
    archived.block(
        frame(
            session,
            "recovered",
            {**of, "occurred_at": start + timedelta(minutes=2), "message_key": f"m{number}"},
        ),
        "recovered",
    )
    archived.block(
        frame(
            session,
            "activations",
            {"id": f"a{number}", "started_at": start, "ended_at": start + timedelta(hours=1)},
        ),
        "activations",
    )
    run = {**of, "handled": 30, "failed": 5, "created_at": start, "closed_at": start + timedelta(hours=1)}
    archived.block(frame(session, "runs", run), "runs")


BACKTEST = ("breaker_backtest",)


def test_two_runs_find_what_one_over_everything_finds(session: SparkSession, tmp_path: Path) -> None:
    twice, once = Archived(session, tmp_path / "twice"), Archived(session, tmp_path / "once")
    activation(twice, 1, DAY)
    first = twice.run()
    assert set(states(first).values()) == {"done", "skipped"}
    assert {each["table"]: each["replaces"] for each in first["results"]}["failure_trends"] == {"all": True}
    twice.mark(first)
    hours = twice.table("failure_trends")
    # In the same hour, and one a day before.
    activation(twice, 2, DAY + timedelta(minutes=5))
    activation(twice, 3, DAY - timedelta(days=1))
    second = twice.run()
    for number, start in ((1, DAY), (2, DAY + timedelta(minutes=5)), (3, DAY - timedelta(days=1))):
        activation(once, number, start)
    once.run()

    replaced = {each["table"]: each["replaces"] for each in second["results"]}
    assert replaced["failure_trends"] == {"column": "hour", "values_file": "replaced/failure_trends"}
    assert replaced["failure_days"] == {"column": "day", "from": "2026-03-29"}
    assert len(hours) == 1
    assert twice.table("failure_trends") == once.table("failure_trends")
    assert twice.table("failure_days") == once.table("failure_days")
    assert twice.table("breaker_backtest") == once.table("breaker_backtest")
    assert twice.table("odd_servers") == once.table("odd_servers")
    assert [row[3] for row in once.table("breaker_backtest")] == [3] * 56
    assert {row[0] for row in twice.table("activation_health")} == {"a2", "a3"}
    assert set(twice.table("activation_health")) < set(once.table("activation_health"))

    # With nothing new everything stays as it is.
    twice.mark(second)
    third = twice.run()
    assert third["results"] == []
    assert set(states(third).values()) == {"skipped"}


def test_what_a_run_left_that_the_ma_never_took_counts_once(session: SparkSession, tmp_path: Path) -> None:
    """It is told the same blocks as new: parts of them that are there are void."""
    archived = Archived(session, tmp_path)
    activation(archived, 1, DAY)
    jobs = ("failure_trends", *BACKTEST)
    archived.run(jobs)
    backtest = archived.table("breaker_backtest")
    days = archived.table("failure_days")
    archived.run(jobs)

    assert archived.table("breaker_backtest") == backtest
    assert archived.table("failure_days") == days
    assert len(list((tmp_path / "archive/derived/backtest").glob("*.json"))) == 1


def test_an_activation_that_is_looked_at_again_counts_once(session: SparkSession, tmp_path: Path) -> None:
    """A late failure came: now a sixth one in its first row, so its trips saved one more."""
    archived = Archived(session, tmp_path)
    activation(archived, 1, DAY)
    archived.mark(archived.run(BACKTEST))
    before = {row[1:3]: row for row in archived.table("breaker_backtest")}
    late = {"activation": "a1", "occurred_at": DAY + timedelta(seconds=50), "number": 9}
    archived.block(frame(session, "protocols", late), "protocols")
    archived.mark(archived.run(BACKTEST))
    after = {row[1:3]: row for row in archived.table("breaker_backtest")}

    assert before[3, "any"][3:7] == (1, 1, 4, 1)
    assert after[3, "any"][3:7] == (1, 1, 5, 1)
    # Asked for again without anything new.
    report = archived.run(BACKTEST, since=DAY - timedelta(days=1))
    assert set(states(report).values()) == {"done"}
    assert {row[1:3]: row for row in archived.table("breaker_backtest")} == after


def test_what_is_computed_anew_takes_the_place_of_all_that_was_summed_up(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of parts that were merged: these no longer name their blocks."""
    monkeypatch.setattr("pipeline.derived.MOST_PARTS", 1)
    archived = Archived(session, tmp_path)
    jobs = ("failure_trends", "breaker_backtest", "poison_profile")
    for number in (1, 2, 3):
        activation(archived, number, DAY + timedelta(minutes=number))
        archived.mark(archived.run(jobs))
    assert list((tmp_path / "archive/derived/poison_counts").glob("*-m-*.json"))
    tables = ("failure_days", "breaker_backtest", "poison_profile")
    before = {name: archived.table(name) for name in tables}
    # A run with the same blocks as new, but without the word, would count what was merged a second time.
    archived.computed.clear()
    archived.mark(archived.run(jobs, anew=True))

    assert {name: archived.table(name) for name in tables} == before
    assert [row[3] for row in before["breaker_backtest"]] == [3] * 56
    for name in ("day_counts", "backtest", "poison_counts"):
        assert len(list((tmp_path / "archive/derived" / name).glob("*.json"))) == 1


def test_one_job_that_fails_takes_no_other_one_down(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(run: Run) -> bool:
        raise RuntimeError("no room")

    archived = Archived(session, tmp_path)
    activation(archived, 1, DAY)
    monkeypatch.setattr("pipeline.application.JOBS", {**jobs_of_run.JOBS, "activation_health": fails})
    report = archived.run()
    told = {each["stage"]: each for each in report["stages"]}

    assert told["activation_health"]["state"] == "failed"
    assert told["activation_health"]["error"] == "RuntimeError: no room"
    assert {told[name]["state"] for name in ("failure_trends", "breaker_backtest", "odd_servers")} == {"done"}
    assert "activation_health" not in {each["table"] for each in report["results"]}
    lines = [json.loads(line) for line in (tmp_path / "run-1/progress.jsonl").read_text().splitlines()]
    assert lines[0] == {"stages": list(jobs_of_run.JOBS)}
    assert {(line["stage"], line["state"]) for line in lines[1:]} >= {
        ("activation_health", "failed"),
        ("odd_servers", "done"),
    }


def test_a_file_that_cannot_be_read_is_put_aside_and_the_others_count(
    session: SparkSession, tmp_path: Path
) -> None:
    archived = Archived(session, tmp_path)
    activation(archived, 1, DAY)
    activation(archived, 2, DAY)
    broken = next((tmp_path / "archive/data/protocols").rglob("block-000002-*/*.parquet"))
    size = broken.stat().st_size
    broken.write_bytes(b"x" * size)
    report = archived.run(("failure_trends",))

    assert set(states(report).values()) == {"done"}
    assert [each["block"] for each in report["quarantined"]] == [2]
    assert [row[4] for row in archived.table("failure_trends")] == [5]


def plan(**more: Any) -> dict[str, Any]:
    return {"run": "r", "now": "2026-03-31T02:30:00+00:00", "archive": "/a", "results": "/r", **more}


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        (plan(zone="Mars/Olympus"), "unknown time zone 'Mars/Olympus'"),
        (plan(now="yesterday"), "Invalid isoformat string"),
        (plan(since="2026-03-31T00:00:00"), "has no time zone"),
        (plan(since="2026-03-31T00:00:00+00:00", until="2026-03-30T00:00:00+00:00"), "must be before until"),
        ({"run": "r"}, "KeyError"),
    ],
)
def test_a_plan_that_cannot_be_done_says_what_is_wrong(
    tmp_path: Path, told: dict[str, Any], wrong: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(told))

    with pytest.raises(PlanError, match=wrong):
        read(path)
