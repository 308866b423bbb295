"""What a KMA reports as codes: said in English here, in the reader's language by the site."""

import string
from typing import Any

import pytest
from django.utils import translation

import agents.reasons  # noqa: F401  # declares what the site says
from console import reasons as site
from contract import reasons
from contract.reasons import SENTENCES, Reason


def test_a_reason_says_its_parameters_in_its_sentence() -> None:
    assert str(reasons.HANDLING_SLOW(seconds=48.0, limit=60.5)) == (
        "processing has taken 48 s; the limit is 60.5 s"
    )
    assert str(reasons.AGENT_RAISED_AT_START(type="KeyError", text="'key'")) == "KeyError: 'key'"
    assert str(reasons.BROKER_LOST(detail="100% gone")) == "no connection to the broker: 100% gone"


def test_a_code_of_another_version_shows_itself() -> None:
    assert str(Reason("run.of_tomorrow", {"a": "50%"})) == "run.of_tomorrow {'a': '50%'}"


def test_a_sentence_of_the_version_before_is_said_as_it_is() -> None:
    assert str(site.Reason.reported(Reason(reasons.LEGACY, {"text": "disk is slow"}))) == "disk is slow"


def test_a_long_parameter_is_cut() -> None:
    assert reasons.NO_PROCESS(detail="x" * 5000).params == {"detail": "x" * 1000}
    assert reasons.BATCH_NOT_TAKEN(n=3, detail="y").params == {"n": 3, "detail": "y"}


@pytest.mark.parametrize("code", SENTENCES)
def test_the_site_says_each_code_in_the_same_words_and_in_russian(code: str) -> None:
    values: dict[str, Any] = {
        name: f"<{name}>" for _, name, _, _ in string.Formatter().parse(_braced(code)) if name
    }
    told = site.Reason.reported(Reason(code, values))
    with translation.override("en"):
        assert str(told) == str(Reason(code, values))
    with translation.override("ru"):
        assert all(value in str(told) for value in values.values())
        words = str(told) != str(Reason(code, values))
    assert words or code == "run.agent_raised_at_start"


def _braced(code: str) -> str:
    """The sentence with its parameters as `str.format` knows them."""
    return SENTENCES[code].replace("%(", "{").replace(")s", "}")


def test_what_a_server_reports_is_kept_within_bounds() -> None:
    hostile = Reason(
        "c" * 99, {f"{n}" * 99: value for n, value in enumerate(("x" * 9999, 1e300, [1], True, 7))}
    )
    kept = site.Reason.reported(hostile)
    assert kept.code == "c" * site.LONGEST_NAME
    assert [len(name) for name in kept.params] == [site.LONGEST_NAME] * 5
    assert list(kept.params.values()) == ["x" * site.LONGEST_REPORTED, "1e+300", "[1]", "True", 7]
    many = Reason("run.crashed", {str(n): n for n in range(99)})
    assert len(site.Reason.reported(many).params) == site.MOST_PARAMS
    assert site.Reason.reported(Reason("a\0", {"b\0": "c\0"})).as_json() == {
        "code": "a␀", "params": {"b␀": "c␀"},
    }  # fmt: skip
