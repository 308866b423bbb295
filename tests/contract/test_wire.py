"""The wire form of everything that KMA and MA exchange: round trips, and refusals that say where."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.messages import DesiredRun, Heartbeat, HeartbeatReply, Record, RecordBatch
from contract.reasons import Reason
from contract.records import KINDS, MessageIdentity
from contract.typed import head_and_tail, storable
from contract.wire import DEEPEST, ContractError, deeper_than, dump, load, unknown

RUN = UUID(int=7)
AT = datetime(2026, 1, 1, tzinfo=UTC)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    size: int
    note: str = ""


@dataclass(frozen=True)
class Whole:
    """A field of each kind that the wire knows."""

    name: str
    part: Part
    parts: tuple[Part, ...] = ()
    at: datetime | None = None
    ratio: float = 0.5
    on: bool = False
    colour: Colour = Colour.RED
    id: UUID | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    spare: Part | None = None
    anything: Any = None


LEAST = {"name": "n", "part": {"size": 1}}

plain = st.dictionaries(
    st.text(max_size=5), st.one_of(st.none(), st.booleans(), st.integers(), st.text()), max_size=3
)
st.register_type_strategy(datetime, st.datetimes(timezones=st.just(UTC)))
st.register_type_strategy(MessageIdentity, st.builds(MessageIdentity, properties=plain))
st.register_type_strategy(Record, st.builds(Record, content=plain))
st.register_type_strategy(DesiredRun, st.builds(DesiredRun, parameters=plain))
st.register_type_strategy(Reason, st.builds(Reason, params=plain))


class Word(StrEnum):
    RED = "red"


class Rank(IntEnum):
    FIRST = 1


class Named(str):
    """As Django's SafeString is one."""


@pytest.mark.parametrize(
    ("value", "plain"),
    [(Word.RED, "red"), (Rank.FIRST, 1), (Named("a\0"), "a␀"), ("a\0", "a␀"), (True, True), (None, None)],
)
def test_values_are_written_as_plain_ones(value: Any, plain: Any) -> None:
    written = dump(value)
    assert written == plain and (type(written) is type(plain))


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
    assert cut.startswith("a" * 33) and cut.endswith("b" * 67) and "900 characters omitted" in cut


def test_each_kind_of_value_has_its_form() -> None:
    berlin = timezone(timedelta(hours=2))
    whole = Whole(
        "é\0", Part(1), (Part(2, "x"),), datetime(2026, 1, 1, 2, tzinfo=berlin), 1.5, True, Colour.RED, RUN,
        {"a\0": 3}, None, [(1, None), {7: RUN}],
    )  # fmt: skip
    assert dump(whole) == {
        "name": "é␀", "part": {"size": 1, "note": ""}, "parts": [{"size": 2, "note": "x"}],
        "at": "2026-01-01T00:00:00+00:00", "ratio": 1.5, "on": True, "colour": "red", "id": str(RUN),
        "sizes": {"a␀": 3}, "spare": None, "anything": [[1, None], {"7": str(RUN)}],
    }  # fmt: skip
    assert load(Whole, json.loads(json.dumps(dump(whole)))) == Whole(
        "é␀", Part(1), (Part(2, "x"),), AT, 1.5, True, Colour.RED, RUN, {"a␀": 3}, None, [[1, None],
        {"7": str(RUN)}],
    )  # fmt: skip


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, Part, object()])
def test_what_is_no_value_of_the_wire_is_not_sent(value: object) -> None:
    with pytest.raises(TypeError, match="not a wire type"):
        dump(value)


def test_a_missing_key_takes_the_default_and_a_present_one_never_does() -> None:
    assert load(Whole, LEAST) == Whole("n", Part(1))
    given_null = load(Whole, {**LEAST, "at": None, "id": None, "spare": None, "anything": None})
    assert given_null == Whole("n", Part(1))
    assert load(Whole, {**LEAST, "spare": {"size": 9}}).spare == Part(9)


def test_a_value_is_read_as_the_type_that_its_field_has() -> None:
    found = load(Whole, {**LEAST, "name": "a\0é\ud800", "ratio": 2, "at": "2026-01-01T02:00:00+02:00"})
    assert (found.name, found.ratio, type(found.ratio)) == (storable("a\0é\ud800"), 2.0, float)
    assert found.at is not None and (found.at, found.at.tzinfo) == (AT, UTC)
    assert load(Whole, {**LEAST, "name": "a\0"}).name == "a␀"
    assert load(Whole, {**LEAST, "name": "é\ud800"}).name == storable("é\ud800") != "é\ud800"
    assert load(Whole, {**LEAST, "sizes": {7: 1}}).sizes == {"7": 1}


@pytest.mark.parametrize(
    ("changed", "path", "problem"),
    [
        ({"name": None}, "name", "must be str: got NoneType"),
        ({"part": []}, "part", "must be an object"),
        ({"part": {}}, "part.size", "is missing"),
        ({"part": {"size": True}}, "part.size", "must be int: got bool"),
        ({"part": {"size": 1.0}}, "part.size", "must be int: got float"),
        ({"part": {"size": "1"}}, "part.size", "must be int: got str"),
        ({"parts": {"size": 1}}, "parts", "must be a list"),
        ({"parts": [{"size": 1}, {"size": 2}, {"size": 3, "note": 4}]}, "parts[2].note",
        "must be str: got int"),
        ({"at": 7}, "at", "must be datetime: got int"),
        ({"at": "2026-01-01T00:00:00"}, "at", "must be datetime: a timestamp needs a UTC offset"),
        ({"ratio": True}, "ratio", "must be float: got bool"),
        ({"ratio": "1"}, "ratio", "must be float: got str"),
        ({"on": 1}, "on", "must be bool: got int"),
        ({"id": 7}, "id", "must be UUID: got int"),
        ({"sizes": []}, "sizes", "must be an object"),
        ({"sizes": {"a": 1, "b": "x"}}, "sizes.b", "must be int: got str"),
        ({"spare": {"note": ""}}, "spare.size", "is missing"),
    ],
)  # fmt: skip
def test_a_refusal_says_where_and_what(changed: dict[str, Any], path: str, problem: str) -> None:
    for before in ("", "records[3]"):
        with pytest.raises(ContractError) as refused:
            load(Whole, LEAST | changed, before)
        assert (refused.value.path, refused.value.problem) == (f"{before}.{path}".removeprefix("."), problem)


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"colour": "blue"}, ValueError), ({"colour": []}, ValueError), ({"ratio": 10**400}, OverflowError),
        ({"id": "x"}, ValueError), ({"at": "soon"}, ValueError), ({"at": "0001-01-01T00:00:00+09:00"},
        OverflowError),
    ],
)  # fmt: skip
def test_whatever_a_value_is_its_refusal_is_of_the_contract(
    changed: dict[str, Any], cause: type[Exception]
) -> None:
    with pytest.raises(ContractError, match=f"^{next(iter(changed))}: must be ") as refused:
        load(Whole, LEAST | changed)
    assert isinstance(refused.value.__cause__, cause)


def test_what_is_no_object_has_the_path_of_the_whole() -> None:
    for path, said in (("", "body: must be an object"), ("records[3]", "records[3]: must be an object")):
        with pytest.raises(ContractError) as refused:
            load(Part, [], path)
        assert str(refused.value) == said


@pytest.mark.parametrize(
    ("kind", "data", "paths"),
    [
        (Part, {"size": 1, "note": ""}, []),
        (Part, {"size": 1, "note": "", "new": 1}, ["new"]),
        (Part, {"size": 1, "colour": 1, 7: 2}, ["colour", "7"]),
        (Part, [{"size": 1}, {"new": 1}, 7, {"newer": 1}], ["new", "newer"]),
        (Part, "size", []),
        (Whole, {"new": 1, "part": {"new": 1}}, ["new", "part.new"]),
        (Whole, {"parts": [{"size": 1}, {"new": 1}]}, ["parts.new"]),
        (Whole, {"spare": {"new": 1}}, ["spare.new"]),
        (Whole, {"spare": None, "anything": {"new": 1}, "sizes": {"new": 1}}, []),
    ],
)  # fmt: skip
def test_keys_of_a_newer_side_are_named(kind: type, data: object, paths: list[str]) -> None:
    assert list(unknown(kind, data)) == paths
    assert list(unknown(kind, data, "protocol")) == [f"protocol.{path}" for path in paths]


# -- how deep a value nests, counted level by level ----------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "depth"),
    [
        (None, 0),
        ("[[[", 0),
        (7, 0),
        ([], 1),
        ({}, 1),
        ([1, "a", None], 1),
        ({"a": 1}, 1),
        ([[]], 2),
        ({"a": {}}, 2),
        ([1, {"a": [2]}, []], 3),
        ({"a": 1, "b": [[1], {"c": []}]}, 4),
    ],
)
def test_lists_and_mappings_count_and_nothing_else(value: Any, depth: int) -> None:
    assert [deeper_than(value, most) for most in range(6)] == [most < depth for most in range(6)]


def test_a_value_too_deep_for_any_recursion_is_known_as_deep() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    assert deeper_than(value, DEEPEST)
    while value:  # taken apart: freeing it whole would recurse as deep
        value = value.pop()


def test_the_bound_is_far_above_what_is_ours() -> None:
    assert DEEPEST == 100
