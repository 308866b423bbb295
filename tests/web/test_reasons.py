"""Reasons that rows keep as codes: what is stored and what is said."""

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from agents import reasons
from agents.models import Pool, StateChange
from console.reasons import NO_REASON, Reason, ReasonKind, said
from contract import reasons as reported
from dlq import reasons as of_dlq
from insights import reasons as of_insights
from tests.web.launching import delayed

ROOT = Path(__file__).resolve().parents[2]
# Chosen by a table, and given with all that any kind of it says.
BY_TABLE = {
    "STOPPED_THERE",
    "NO_SERVER", "NONE_ALIVE", "NONE_OFFERS", "ALL_CORDONED", "NONE_OBEYS", "RUN_BEFORE_STOPS",
    "SAME_TYPE_IN_A_ROW", "FAILURES_IN_A_ROW", "TRIAL_FAILED",
    "SUBSCRIPTION_HOLDS", "DEAD_LETTERS_HELD", "HELD_BACK",
}  # fmt: skip


# -- values


def test_it_is_said_in_the_language_of_the_reader() -> None:
    why = reasons.MEMBER_REFUSED(key="orders", why=reasons.GROUP_RUNS(step=1, count=3))
    assert str(why) == (
        "orders could not be started: The previous group run is still in progress: member 1 of 3."
    )
    with translation.override("ru"):
        assert str(why).endswith("Предыдущий запуск группы ещё не завершился: выполняется участник 1 из 3.")


def test_a_value_of_choices_is_said_by_its_label() -> None:
    with translation.override("ru"):
        assert str(reasons.MEMBER_ENDED(key="one", state="interrupted")) == (
            "one завершилась неуспешно: прервана"
        )
    assert str(reasons.MEMBER_ENDED(key="one", state="of tomorrow")) == "one did not succeed: of tomorrow"


def test_what_a_later_version_stored_is_shown_with_all_that_it_holds() -> None:
    assert str(Reason("of.tomorrow", {"n": 3})) == "of.tomorrow (n: 3)"
    assert str(Reason("of.tomorrow")) == "of.tomorrow"
    assert str(Reason("run.epoch")) == "start …", "a parameter that is missing spoils no page"


def test_words_of_people_are_no_format() -> None:
    assert str(said("100 % (n)s %(pool)s")) == "100 % (n)s %(pool)s"
    assert said("") == NO_REASON and not NO_REASON and str(NO_REASON) == ""


def test_a_code_is_declared_once() -> None:
    with pytest.raises(ValueError, match="two kinds"):
        ReasonKind("run.epoch", "again")


def is_kind(value: Any) -> bool:
    return isinstance(value, ReasonKind | reported.Kind)


def names_in(text: str) -> set[str]:
    return set(re.findall(r"%\((\w+)\)s", text))


@pytest.mark.parametrize("kind", list(ReasonKind.known.values()), ids=lambda kind: kind.code)
def test_every_kind_says_the_same_parameters_in_both_languages(kind: ReasonKind) -> None:
    english = str(kind.text)
    with translation.override("ru"):
        russian = str(kind.text)
    assert names_in(russian) == names_in(english)
    assert "…" not in str(kind(**dict.fromkeys(names_in(english), "x")))


@pytest.mark.parametrize(
    ("where", "kinds", "by_table"),
    [
        ("agents", {name: str(kind.text) for name, kind in vars(reasons).items() if is_kind(kind)}, BY_TABLE),
        ("kma", {name: kind.sentence for name, kind in vars(reported).items() if is_kind(kind)}, set()),
        (
            "dlq",
            {name: str(kind.text) for name, kind in vars(of_dlq).items() if is_kind(kind)},
            {"TRIPPED", "DISABLED", "FAILING", "BREAKER_COUNTS", "UNKNOWN", "HOLD_STOPPED"},
        ),
        (
            "insights",
            {name: str(kind.text) for name, kind in vars(of_insights).items() if is_kind(kind)},
            set(),
        ),
    ],
    ids=["agents", "kma", "dlq", "insights"],
)
def test_every_reason_that_is_given_has_the_parameters_of_its_kind(
    where: str, kinds: dict[str, str], by_table: set[str]
) -> None:
    given = Counter[str]()
    for path in ROOT.glob(f"{where}/**/*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in kinds and name.isupper():
                given[name] += 1
                wanted = names_in(kinds[name])
                assert {each.arg for each in call.keywords} == wanted, (path, call.lineno)
    assert given.keys() | by_table == kinds.keys(), "a kind that nobody gives says nothing"


@pytest.mark.parametrize("stored", [None, "", [], 3, {}, {"code": 7}, {"params": {}}], ids=str)
def test_what_is_no_reason_counts_as_none(stored: Any) -> None:
    assert Reason.from_json(stored) == NO_REASON


# -- rows


@pytest.mark.both_databases
@pytest.mark.django_db
def test_a_row_keeps_a_reason_in_a_reason(pool: Pool) -> None:
    setting = delayed(pool)
    why = reasons.OF_MEMBER(
        key="orders", why=reasons.SAME_TYPE_IN_A_ROW(type="E\0\ud800", servers=["a", "b"])
    )
    StateChange.objects.create(setting=setting, what="setting", new="disabled", reason=why)
    kept = StateChange.objects.get(reason=why)
    shown = "E\N{SYMBOL FOR NULL}\N{REPLACEMENT CHARACTER}"
    assert str(kept.reason) == f"orders: breaker tripped: consecutive failures of one type ({shown}) on a, b"
    assert StateChange.objects.filter(reason__code="group.of_member").count() == 1
    assert list(StateChange.objects.values_list("reason__code", flat=True)) == ["group.of_member"]
    assert StateChange.objects.create(what="setting").reason == NO_REASON
    assert StateChange.objects.get(reason=NO_REASON).reason is NO_REASON, "not decoded: lists read hundreds"
    StateChange.objects.create(what="server", reason=reasons.TIME_OVER())
    assert StateChange.objects.values_list("reason__params", flat=True).get(what="server") == {}
    with pytest.raises(TypeError, match="takes a Reason"):
        StateChange.objects.filter(reason=why).update(reason="a text")
