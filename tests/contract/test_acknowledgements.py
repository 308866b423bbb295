"""Actions as people write them, and ids that nobody can make without the run's secret."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.acknowledgements import (
    END_OF,
    Action,
    AnswerReply,
    EndState,
    IdParts,
    make_id,
    parse_action,
    read_id,
    verify,
)

SECRET, OTHER = "ab" * 32, "cd" * 32
RUN = UUID("11111111-2222-3333-4444-555555555555")
NONCE = bytes(range(16))


@pytest.mark.parametrize("text", ["COMMIT", "commit", "Commit", "JBXCommit", "jbxcommit", "JBXCOMMIT"])
def test_a_commit_is_understood_in_any_letter_case(text: str) -> None:
    assert parse_action(text) is Action.COMMIT


@pytest.mark.parametrize("text", ["ROLLBACK", "rollback", "JBXRollback", "jbxROLLBACK"])
def test_a_rollback_is_understood_in_any_letter_case(text: str) -> None:
    assert parse_action(text) is Action.ROLLBACK


@pytest.mark.parametrize(
    "text", ["", "ack", "COMMIT ", "JBX", "commıt", "ROLLBAC\N{KELVIN SIGN}", "accept" * 100, None, 7]
)
def test_anything_else_is_refused_and_told_what_there_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"COMMIT \(JBXCommit\) or ROLLBACK \(JBXRollback\)") as refused:
        parse_action(text)
    assert len(str(refused.value)) < 200


@given(
    st.text("abcäж.-", min_size=1, max_size=20),
    st.uuids(),
    st.integers(0, 2**31),
    st.binary(min_size=16, max_size=16),
)
def test_an_id_says_whose_it_is_and_is_proved_by_its_secret(
    server: str, activation: UUID, epoch: int, nonce: bytes
) -> None:
    made = make_id(SECRET, server, activation, epoch, nonce)
    assert made.isascii() and not set(made) - set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
    )
    assert read_id(made) == IdParts(server, activation, epoch, nonce)
    assert verify(SECRET, made) and not verify(OTHER, made)


@given(st.data())
def test_an_id_that_was_changed_anywhere_is_none_or_is_not_proved(data: st.DataObject) -> None:
    made = make_id(SECRET, "srv-1", RUN, 3, NONCE)
    at = data.draw(st.integers(0, len(made) - 1))
    other = data.draw(st.sampled_from("aB9-_. é").filter(lambda sign: sign != made[at]))
    changed = made[:at] + other + made[at + 1 :]
    try:
        assert not verify(SECRET, changed)
    except ValueError as refused:
        assert "not an acknowledgement id" in str(refused)


@pytest.mark.parametrize(
    "text", ["", ".", "....", "a.b.c.d.e", "x" * 300, None, make_id(SECRET, "s", RUN, 1, NONCE) + "."]
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an acknowledgement id"):
        read_id(text)


def test_a_refusal_shows_what_came_and_no_more_than_is_good_to_read() -> None:
    for wrong, shown in (("ack", "ack"), ("accept" * 100, "accept" * 10), (7, "int")):
        with pytest.raises(ValueError, match=f"^'{shown}' is not an action"):
            parse_action(wrong)  # type: ignore[arg-type]


def test_the_words_of_answers_and_ends_are_those_of_the_interface() -> None:
    assert {action.value: END_OF[action].value for action in Action} == {
        "COMMIT": "committed",
        "ROLLBACK": "rolled_back",
    }
    assert [state.value for state in EndState] == ["committed", "rolled_back", "expired", "lost"]
    assert AnswerReply("pending") == AnswerReply(state="pending", reason="")


MADE = make_id(SECRET, "srv-1", RUN, 3, NONCE)
SERVER, ACTIVATION, EPOCH, NONCE_TEXT, MAC = MADE.split(".")


@pytest.mark.parametrize(
    ("part", "other"),
    [
        *[
            (ACTIVATION, other)
            for other in (ACTIVATION.upper().replace("1", "A"), str(RUN), f"{{{ACTIVATION}}}", "")
        ],
        *[
            (EPOCH, other)
            for other in ("03", "-3", "+3", "3_0", "", "x", "\N{ARABIC-INDIC DIGIT THREE}", str(2**63))
        ],
        (NONCE_TEXT, NONCE_TEXT[:20]),  # 15 bytes
        (NONCE_TEXT, NONCE_TEXT[:21] + "x"),  # the same bytes, spelled in another way
        (NONCE_TEXT, NONCE_TEXT[:11] + "!" + NONCE_TEXT[11:]),
        (NONCE_TEXT, NONCE_TEXT[:-1] + "é"),
        (MAC, MAC[:-1]),
        (MAC, MAC[:42]),  # 31 bytes
        (SERVER, "/w"),
        (SERVER, "_w"),  # no UTF-8
    ],
)
def test_an_id_has_one_spelling(part: str, other: str) -> None:
    parts = [other if each == part else each for each in MADE.split(".")]
    with pytest.raises(ValueError, match="not an acknowledgement id"):
        read_id(".".join(parts))


def test_epochs_end_where_the_numbers_of_a_database_end() -> None:
    assert read_id(make_id(SECRET, "s", RUN, 2**63 - 1, NONCE)).epoch == 2**63 - 1
    assert read_id(make_id(SECRET, "s", RUN, 0, NONCE)).epoch == 0


def test_the_longest_name_of_a_server_fits() -> None:
    assert len(make_id(SECRET, "s" * 63, RUN, 2**63 - 1, NONCE)) <= 255
    longest = make_id(SECRET, "s" * 114, RUN, 10, NONCE)
    assert len(longest) == 255 and read_id(longest).epoch == 10
    with pytest.raises(ValueError, match="not an acknowledgement id"):
        read_id(longest.replace(".10.", ".100."))
    with pytest.raises(ValueError, match="too long"):
        make_id(SECRET, "s" * 114, RUN, 100, NONCE)


def test_a_nonce_has_its_length() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        make_id(SECRET, "s", RUN, 1, b"short")
