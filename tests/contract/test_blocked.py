"""What blocks an ordered subscription is told by the KMA and read by the MA, whatever the message is called."""

import pytest
from django.utils import translation

from agents.templatetags.console import run_problem
from contract.blocked import Blocked, blocked_in

HOSTILE = "ID:a; b after attempt 9; it is tried again %(key)s <script>"


@pytest.mark.parametrize("seconds", ["", "0", "0.5", "5", "86400", "1e-05"])
@pytest.mark.parametrize("key", ["ID:1", HOSTILE, "", "two\nlines"])
def test_what_is_told_is_read(key: str, seconds: str) -> None:
    told = Blocked(key, 3, seconds)
    assert blocked_in(f"broker: away; {told}; disk") == ("broker: away; ", told, "; disk")


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
