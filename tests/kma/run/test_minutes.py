"""What a run says of its minutes, in each mode and whatever ends a handling: one count for each attempt that
began."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from broker.amqp.codec import decode, encode
from contract.histogram import merged, unpacked
from contract.messages import Mode
from contract.records import MinuteFigures
from contract.wire import load
from kma.run import minutes
from tests.kma.conftest import Make
from tests.kma.fakes import FIGURES, Stage, eventually, message
from tests.kma.standalone.standalone_stage import StandaloneStage

OK, RAISE = {"do": "ok"}, {"do": "raise"}
SEND = {"do": "send", "destination": "demo.invoices"}
COMMIT, ROLLBACK = ({"do": "acknowledge", "action": action} for action in ("COMMIT", "ROLLBACK"))
MIXED: list[Any] = [
    *[OK] * 20,
    {"do": "raise", "first": 1},
    {"do": "temporary", "first": 1},
    {"do": "exit", "first": 1},
    {"do": "kill", "first": 1},
    RAISE,
    [SEND, OK],
    {"do": "sleep", "seconds": 0.1},
]


def truth(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def figures(one: Stage | StandaloneStage) -> MinuteFigures:
    """Of all minutes of a run together: a test may take two."""
    found = [load(MinuteFigures, each) for each in one.records(FIGURES)]
    for name in ("processing", "critical"):
        told = map(sum, zip(*(getattr(each, name) for each in one.durations), strict=True))
        reported = merged(unpacked(getattr(each, name)) for each in found)
        assert {index: number for index, number in enumerate(told) if number} == reported
    sums = {
        name: sum(getattr(each, name) for each in found)
        for name in ("succeeded", "failed", "temporary", "recovered", "bytes", "no_timestamp", "before_sent")
    }
    return MinuteFigures(
        run=found[0].run,
        occurred_at=found[0].occurred_at,
        until=found[-1].until,
        busy_seconds=sum(each.busy_seconds for each in found),
        processing=" ".join(each.processing for each in found),
        critical=" ".join(each.critical for each in found),
        concurrency=found[0].concurrency,
        children_bytes=max(each.children_bytes for each in found),
        **sums,
    )


def over(one: Stage) -> MinuteFigures:
    one.run.stop(close=True, reason="test")
    one.run.join(40)
    assert not one.run.alive and one.records("closing") != []
    kinds = [record.kind for record in one.spool.head(10_000, 1 << 30)]
    assert kinds[-2:] == [FIGURES, "closing"], "nothing comes after the closing record"
    return figures(one)


@pytest.mark.parametrize(
    ("mode", "fields"),
    [
        (Mode.AUTO, {}),
        (Mode.TRANSACTED, {}),
        (Mode.DUPS_OK, {"dups_ok_messages": 7, "dups_ok_seconds": 0.2}),
        (Mode.AUTO, {"ordered": True, "concurrency": 1, "blocked_seconds": 0.05}),
    ],
    ids=["auto", "transacted", "dups_ok", "ordered"],
)
def test_each_attempt_that_began_is_counted_once(
    stage: Make, tmp_path: Path, mode: Mode, fields: dict[str, Any]
) -> None:
    file, scripts = tmp_path / "truth", [message(one) for one in MIXED]
    begins = {"concurrency": 3, "mode": mode, "max_attempts": 3, "parameters": {"truth_file": str(file)}}
    one = stage(scripts, **{**begins, **fields})
    eventually(lambda: len(one.link.settled) >= 26 and len(truth(file)) == 33, "all ends")
    eventually(lambda: not one.link.outstanding, "all settlements")
    told = over(one)
    assert len(truth(file)) == 33
    assert (told.succeeded, told.failed, told.temporary, told.recovered) == (26, 6, 1, 4)
    assert (one.run.report().handled, one.run.report().failed, one.run.report().temporary) == (26, 6, 1)
    assert sum(unpacked(told.processing).values()) == 33
    assert sum(unpacked(told.critical).values()) == 26 and told.no_timestamp == told.before_sent == 0
    assert told.busy_seconds >= 0.1 and told.bytes > sum(map(len, scripts))
    assert told.concurrency == begins["concurrency"] or fields


def test_the_memory_of_all_children_is_told(stage: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minutes, "FIRST_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(minutes, "LOOK_SECONDS", 0.01)
    one = stage([message({"do": "sleep", "seconds": 0.5})] * 4, concurrency=2)
    one.settled(4)
    assert over(one).children_bytes > 20_000_000


def test_a_handling_is_counted_by_its_own_end_where_its_delivery_goes_on(stage: Make, tmp_path: Path) -> None:
    """Mode CLIENT: committed or rolled back from within, returned unanswered, failed."""
    file = tmp_path / "truth"
    scripts = [OK, COMMIT, ROLLBACK, RAISE, [COMMIT, RAISE], [ROLLBACK, RAISE], {"do": "exit"}]
    one = stage(
        [message(script) for script in scripts],
        mode=Mode.CLIENT,
        max_attempts=1,
        concurrency=2,
        parameters={"truth_file": str(file)},
    )
    eventually(lambda: len(one.records("acknowledgement_opened")) >= 1, "a delivery that waits")
    eventually(lambda: sum("answered" not in line for line in truth(file)) == 7, "all begun")
    eventually(lambda: one.run.report().in_progress == 0, "all ended")
    told = over(one)
    assert (told.succeeded, told.failed, told.temporary) == (3, 4, 0)


def test_a_transaction_that_the_broker_refuses_is_a_failure(stage: Make) -> None:
    one = stage([], mode=Mode.TRANSACTED, max_attempts=1)
    one.link.refuse_sends = "no such address"
    one.link.put(message([SEND, OK]))
    eventually(lambda: one.records("protocol") != [], "its protocol")
    told = over(one)
    assert (told.succeeded, told.failed) == (0, 1)
    assert sum(unpacked(told.processing).values()) == 1 and told.critical.strip() == ""


def test_what_returned_is_counted_also_where_its_delivery_is_gone(stage: Make) -> None:
    """In doubt: a transaction under way when the link is lost, and a handling that returns after that."""
    one = stage([], concurrency=2)
    one.link.held = []
    one.link.put(message({"do": "sleep", "seconds": 0.5}), message([SEND, OK]))
    eventually(lambda: bool(one.link.held) and one.run.report().in_progress == 1, "a transaction")
    one.link.lose()
    one.link.held = None
    eventually(lambda: one.run.report().handled == 2, "both again")
    told = over(one)
    assert (told.succeeded, told.failed) == (4, 0)


def test_clocks_and_senders_that_say_nothing_are_said(stage: Make) -> None:
    plain = decode(message(OK))
    unsaid = encode(replace(plain, created_at=None))
    ahead = encode(replace(plain, created_at=datetime(2099, 1, 1, tzinfo=UTC)))
    one = stage([unsaid, ahead, ahead, message(OK)])
    one.settled(4)
    told = over(one)
    assert (told.succeeded, told.no_timestamp, told.before_sent) == (4, 1, 2)
    assert sum(unpacked(told.critical).values()) == 1


def test_an_idle_run_tells_no_figures(stage: Make) -> None:
    one = stage([])
    eventually(lambda: one.run.report().connected, "a link")
    one.run.stop(close=True)
    one.run.join(20)
    assert [record.kind for record in one.spool.head(10, 10**6)] == ["closing"]


@pytest.mark.parametrize(("script", "succeeded"), [(OK, 1), (RAISE, 0), ({"do": "kill"}, 0)])
def test_a_standalone_run_is_one_handling_without_a_message(
    child_processes: None, tmp_path: Path, script: Any, succeeded: int
) -> None:
    one = StandaloneStage(tmp_path, script).start()
    try:
        one.over()
        told = figures(one)
        assert (told.succeeded, told.failed) == (succeeded, 1 - succeeded)
        assert (told.bytes, told.critical, told.no_timestamp, told.concurrency) == (0, "", 0, 1)
        assert sum(unpacked(told.processing).values()) == 1
    finally:
        one.end()
