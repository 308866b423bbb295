"""The wire form of everything that KMA and MA exchange: round trips, and refusals that say where."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.errors import ContractError
from contract.messages import KINDS, DesiredRun, Heartbeat, HeartbeatReply, MessageIdentity, Record, RecordBatch
from contract.text import head_and_tail, storable
from contract.wire import dump, load

RUN = UUID(int=7)


plain = st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.booleans(), st.integers(), st.text()), max_size=3)
st.register_type_strategy(datetime, st.datetimes(timezones=st.just(UTC)))
st.register_type_strategy(MessageIdentity, st.builds(MessageIdentity, properties=plain))
st.register_type_strategy(Record, st.builds(Record, content=plain))
st.register_type_strategy(DesiredRun, st.builds(DesiredRun, parameters=plain))


@pytest.mark.db  # as dear: many examples
@pytest.mark.parametrize("kind", [*KINDS.values(), Heartbeat, HeartbeatReply, RecordBatch])
@given(data=st.data())
def test_every_message_survives_a_round_trip(kind: type, data: st.DataObject) -> None:
    value = data.draw(st.from_type(kind))
    assert dump(load(kind, dump(value))) == dump(value)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ([], "body"),
        ({"server": "s", "spool": str(RUN)}, "records"),
        ({"server": 7, "spool": str(RUN), "records": []}, "server"),
        ({"server": "s", "spool": "x", "records": []}, "spool"),
        ({"server": "s", "spool": str(RUN), "records": [{"number": True}]}, "records[0].number"),
        ({"server": "s", "spool": str(RUN), "records": [{"number": 1, "id": 3}]}, "records[0].id"),
    ],
)
def test_a_refusal_names_the_path(data: object, path: str) -> None:
    with pytest.raises(ContractError) as refused:
        load(RecordBatch, data)
    assert str(refused.value).startswith(path)


def test_unknown_keys_of_a_newer_side_are_ignored() -> None:
    data = {"number": 1, "id": str(RUN), "kind": "protocol", "content": {}, "news": 1}
    assert load(Record, data).number == 1


def test_an_instant_without_offset_is_refused() -> None:
    with pytest.raises(ContractError, match="occurred_at"):
        load(KINDS["recovered"], {"run": {}, "message": {}, "occurred_at": "2026-01-01T00:00:00"} | _run())


def _run() -> dict[str, object]:
    run = {"setting": "s", "activation": str(RUN), "epoch": 1, "server": "srv-1", "agent": "a"}
    return {"run": run}


@given(st.text(st.characters(exclude_categories=()), max_size=50))
def test_storable_text_is_utf8_without_nul(text: str) -> None:
    assert "\0" not in storable(text)
    storable(text).encode("utf-8")


def test_a_long_text_keeps_head_and_tail() -> None:
    cut = head_and_tail("a" * 500 + "b" * 500, 100)
    assert cut.startswith("a" * 33) and cut.endswith("b" * 67) and "900 characters left out" in cut
