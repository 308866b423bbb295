"""What a KMA of the version before sends, has spooled or was told, and what it is answered."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from contract import version_3
from contract.messages import DesiredRun, DesiredState, GiveUpRequest, Heartbeat, HeartbeatReply, Record
from contract.records import KINDS
from contract.wire import dump, load, unknown
from tests.web.rows import NOW, heartbeat

ACTIVATION = UUID(int=1)
RUN = {
    "setting": "orders",
    "activation": str(ACTIVATION),
    "epoch": 1,
    "server": "srv-1",
    "agent": "demo.orders",
    "agent_version": "",
}
MESSAGE = {"key": "ID:1", "given_back": True, "letter_queue": "DLQ.orders", "letter_id": 7}
AT = NOW.isoformat()


def of(kind: str, **content: Any) -> Record:
    return Record(1, UUID(int=2), kind, {"run": RUN, "occurred_at": AT, **content})


def read(record: Record) -> Any:
    """Every field is one of version 4."""
    name, content = version_3.record(record.kind, record.content)
    kind = KINDS[name]
    assert list(unknown(kind, content)) == []
    return load(kind, content)


def test_a_message_that_was_given_back_is_one_that_was_replayed() -> None:
    for kind in ("recovered", "letter_outcome"):
        message = read(
            of(kind, message=MESSAGE, **({"result": "failed"} if kind != "recovered" else {}))
        ).message
        assert (message.key, message.replayed) == ("ID:1", True)
        assert (message.dead_letter_queue, message.dead_letter_id) == ("DLQ.orders", 7)


def test_the_limit_of_an_interruption_keeps_its_value() -> None:
    assert read(of("interruption", counts={}, reason="any_type", m=12)).max_failures == 12


def test_the_reason_of_a_closing_record_is_left_out() -> None:
    totals = dict.fromkeys(("records", "handled", "failed", "temporary", "restarts"), 3)
    assert read(of("closing", state="finished", reason="limit", **totals)).handled == 3


@pytest.mark.parametrize("text", ["No acknowledgement arrived within 3 s.", ""])
def test_the_reason_of_an_end_stays_the_sentence_that_it_was(text: str) -> None:
    reason = read(of("acknowledgement_ended", acknowledgement="a.b", state="lost", reason=text)).reason
    assert (reason.code, reason.params) == ("legacy.text", {"text": text}) if text else reason is None


@pytest.mark.parametrize(
    "record",
    [
        of("recovered", message={"key": "ID:1", "replayed": True}),
        of("recovered", message="none"),
        of("recovered"),
        of("acknowledgement_ended", reason={"code": "delivery.released", "params": {}}),
        of("acknowledgement_ended", reason=None),
        of("interruption", max_failures=3),
        of("closing", state="finished"),
        of("of_tomorrow", m=1, reason="x"),
    ],
)
def test_what_is_of_this_version_or_of_none_stays_as_it_is(record: Record) -> None:
    kind, content = version_3.record(record.kind, record.content)
    assert kind == record.kind and content is record.content


def test_a_heartbeat_keeps_its_sentences_as_such() -> None:
    report = {"activation": str(ACTIVATION), "epoch": 1, "setting": "orders", "state": "running"}
    runs = [{**report, "problem": "broker: away"}, {**report, "problem": ""}, report]
    data = dump(heartbeat("srv-1"))
    assert isinstance(data, dict)
    now = version_3.heartbeat({**data, "runs": runs, "problems": ["disk is slow"]})
    assert list(unknown(Heartbeat, now)) == []
    said = load(Heartbeat, now)
    assert [str(one.params["text"]) for one in said.problems] == ["disk is slow"]
    assert [[str(one.params["text"]) for one in run.problems] for run in said.runs] == [
        ["broker: away"],
        [],
        [],
    ]
    assert {one.code for run in said.runs for one in run.problems} == {"legacy.text"}


@pytest.mark.parametrize(
    "data", [None, [], {"problems": 3, "runs": 4}, {"runs": [5]}, {"runs": [{"problem": 6}]}]
)
def test_what_is_no_heartbeat_is_refused_by_its_reader(data: Any) -> None:
    with pytest.raises(ValueError):
        load(Heartbeat, version_3.heartbeat(data))
    assert isinstance(data, dict) or version_3.heartbeat(data) == data


def test_a_problem_that_is_no_sentence_is_refused() -> None:
    data = dump(heartbeat("srv-1"))
    assert isinstance(data, dict)
    assert load(Heartbeat, version_3.heartbeat({k: v for k, v in data.items() if k != "runs"})).runs == ()
    with pytest.raises(ValueError):
        load(Heartbeat, version_3.heartbeat({**data, "problems": [3]}))


def test_what_it_is_to_run_has_the_names_of_both_versions_there_and_back() -> None:
    run = DesiredRun(
        ACTIVATION, 1, "orders", "demo.orders", "t.orders", "orders", max_failures=7, count_message_once=True,
        trial_first=True, retries_requested=3, give_up_request=GiveUpRequest(1, "ab", 2),
    )  # fmt: skip
    state = DesiredState("srv-1", "v", (run, replace(run, epoch=2)))
    answered = version_3.reply(dump(HeartbeatReply(NOW, "v", state)))
    (first, _second) = answered["desired"]["runs"]
    assert answered["version"] == 3
    assert {name: first[name] for name in version_3._DESIRED} == {
        "breaker_m": 7, "count_once": True, "try_one_first": True, "retries_asked": 3,
        "give_up": {"number": 1, "digest": "ab", "attempt": 2},
    }  # fmt: skip
    assert not first.keys() & set(version_3._DESIRED.values())
    assert load(DesiredState, version_3.desired(answered["desired"])) == state
    assert version_3.desired(dump(state)) == dump(state)
    assert version_3.reply(dump(HeartbeatReply(NOW, "v")))["desired"] is None


@pytest.mark.parametrize("stored", [None, [], {"server": "x"}, {"runs": None}, {"runs": [None]}])
def test_a_stored_state_that_is_none_stays_none(stored: Any) -> None:
    assert version_3.desired(stored) == stored
