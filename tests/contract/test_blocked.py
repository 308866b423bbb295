"""What blocks an ordered subscription is told by the KMA and read by the MA, whatever the message is
called."""

import pytest
from django.utils import translation

from agents.templatetags.console import run_problem
from contract.blocked import GIVEN_UP, Blocked, blocked_in, digest_of, was_given_up

HOSTILE = "ID:a; b after attempt 9; it is tried again %(key)s <script>"


@pytest.mark.parametrize("seconds", ["", "0", "0.5", "5", "86400", "1e-05"])
@pytest.mark.parametrize("key", ["ID:1", HOSTILE, "", "two\nlines"])
def test_what_is_told_is_read(key: str, seconds: str) -> None:
    told = Blocked(key, 3, seconds)
    assert blocked_in(f"broker: away; {told}; disk") == ("broker: away; ", told, "; disk")


def test_without_a_time_a_person_is_waited_for() -> None:
    assert Blocked("ID:1", 3) == Blocked("ID:1", 3, seconds="")


def test_a_wish_names_the_message_by_the_sha_256_of_its_key() -> None:
    digest = "395e5e2ec7ba0c9c8d424377d00b99808b5d1a870296ce4063c8a2ef009c1e5d"
    assert Blocked("ID:1", 3).digest == digest_of("ID:1") == digest


@pytest.mark.parametrize(
    ("outcome", "text", "given_up"),
    [
        ("noted", "Sent to the dead letters because a person asked for it. KeyError", True),
        ("noted", GIVEN_UP, True),
        ("raised", f"{GIVEN_UP}KeyError", False),  # an agent may raise any text
        ("noted", "KeyError", False),
    ],
)
def test_only_the_container_says_that_a_message_was_given_up(outcome: str, text: str, given_up: bool) -> None:
    assert was_given_up(outcome, text) is given_up


def test_other_problems_stay_as_they_are() -> None:
    assert blocked_in("broker: away") is None
    assert run_problem("broker: away") == "broker: away"


def test_it_is_read_in_the_language_of_the_reader() -> None:
    with translation.override("ru"):
        assert run_problem(f"broker: away; {Blocked('ID:1', 2, '5')}") == (
            "broker: away; ждёт из-за сообщения ID:1 после попытки 2; новая попытка каждые 5 с"
        )
        assert HOSTILE in run_problem(str(Blocked(HOSTILE, 2)))
    with translation.override("en"):
        assert run_problem(str(Blocked("ID:1", 2, "5"))) == str(Blocked("ID:1", 2, "5"))
