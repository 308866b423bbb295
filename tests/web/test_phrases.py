"""Phrases in quotes: the same words next to each other, in this order, in dead letters and in failures."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict

from console.database.texts import has_all, parted
from console.operations.refusals import WronglyAsked
from contract.typed import Typed
from dlq.models import DeadLetter
from dlq.replay.scopes import matching
from dlq.search import newest as searching
from dlq.search.visibility import found, newest_found
from failures.models import FailureProtocol
from failures.protocols.filter import ProtocolFilter
from failures.protocols.search import newest
from tests.web import letters, reports
from tests.web.test_failures_properties import stored as protocol

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

TEXTS = {
    "as typed": "order A-123 is late",
    "alone": "A-123",
    "other case": "ORDER a-123",
    "in brackets": "(A-123)",
    "longer": "A-1234",
    "longer before": "BA-123",
    "other order": "123-A",
    "apart": "A, then 123",
    "spaces": "A 123",
}
HAVE_IT = ["as typed", "alone", "other case", "in brackets"]


@pytest.fixture
def admin() -> User:
    return User.objects.create_superuser("admin")


def dead_letters(texts: dict[str, str]) -> dict[int, str]:
    reports.setting()
    return {
        letters.dead("orders", number, body=Typed("string", text)).pk: name
        for number, (name, text) in enumerate(texts.items(), 1)
    }


def places(user: User, text: str, **more: Any) -> list[int]:
    filters, _rows = found(urlencode({"text": text, **more}), user)
    assert filters.is_valid(), filters.problem
    some = newest_found(filters, user, size=50)
    return some.places


def test_dead_letters_with_it_are_found_and_no_others(admin: User) -> None:
    names = dead_letters(TEXTS)

    assert sorted(names[pk] for pk in places(admin, '"A-123"')) == sorted(HAVE_IT)
    assert sorted(names[pk] for pk in places(admin, "A-123")) == sorted(
        {*HAVE_IT, "other order", "apart", "spaces"}
    )
    assert [names[pk] for pk in places(admin, '"A-123" late')] == ["as typed"]
    assert [names[pk] for pk in places(admin, '"is late" "order A-123"')] == ["as typed"]
    assert places(admin, '"late is"') == []


def test_failures_with_it_are_found_and_no_others() -> None:
    for number, text in enumerate(TEXTS.values()):
        row = protocol(number + 1, {})
        FailureProtocol.objects.filter(pk=row.pk).update(exception_text=f"no such\n{text}\n")

    def failures(text: str) -> list[str]:
        filters = ProtocolFilter(QueryDict(urlencode({"text": text})))
        assert not filters.problem
        names = list(TEXTS)
        return [names[(place.key.int >> 64) - 1] for place in newest(filters.asked, 50)[0].places]

    assert sorted(failures('"A-123"')) == sorted(HAVE_IT)
    assert failures('"A-123" late') == ["as typed"]
    assert failures("order A-123 is") == ["as typed"]
    assert failures('"such order"') == ["as typed", "other case"][::-1]


@pytest.mark.parametrize("hostile", ['"a.b"', '"[x"', '"(x)"', '"\\\\d"', '"a*b+c?"', '"Ж é"', '"$x^"'])
def test_nothing_in_it_is_a_pattern(hostile: str, admin: User) -> None:
    inner = hostile.strip('"')
    names = dead_letters({"it": f"so {inner} there", "other": "so aXb x d 7 there"})
    for number, text in enumerate((f"so {inner} there", "so aXb x d 7 there"), 1):
        row = protocol(number, {})
        FailureProtocol.objects.filter(pk=row.pk).update(exception_text=text)

    filters = ProtocolFilter(QueryDict(urlencode({"text": hostile})))
    assert not filters.problem
    assert [place.key.int >> 64 for place in newest(filters.asked, 50)[0].places] == [1]
    assert [names[pk] for pk in places(admin, hostile)] == ["it"]


def test_what_is_masked_is_no_part_of_it(admin: User) -> None:
    reports.setting(masked_properties=["card"])
    letters.dead("orders", 1, properties={"card": Typed("string", "4111 2222")})

    assert places(admin, '"4111 2222"') == []


def test_a_search_that_runs_out_of_time_goes_on_from_there(
    admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = dead_letters({str(number): "A-123" if number % 2 else "123-A" for number in range(9)})
    filters, _rows = found(urlencode({"text": '"A-123"'}), admin)
    monkeypatch.setattr(searching, "TOGETHER", 2)
    monkeypatch.setattr(searching, "BUDGET", 0.0)
    seen, before = [], None
    while True:
        some = newest_found(filters, admin, before=before, size=50)
        seen += [names[pk] for pk in some.places]
        if some.stopped_at is None:
            break
        assert some.more and (before is None or some.stopped_at < before)
        before = some.stopped_at

    assert seen == ["7", "5", "3", "1"]


def test_pages_have_each_of_them_once(admin: User) -> None:
    names = dead_letters({str(number): "A-123" for number in range(7)})
    filters, _rows = found(urlencode({"text": '"A-123"'}), admin)
    seen, before = [], None
    while places := newest_found(filters, admin, before=before, size=3).places:
        seen += [names[pk] for pk in places]
        before = places[-1]

    assert seen == ["6", "5", "4", "3", "2", "1", "0"]


def test_a_value_is_that_of_a_whole_property(admin: User) -> None:
    reports.setting(masked_properties=["card"])
    for number, (name, value) in enumerate(
        [("order", "A-123"), ("order", "A-123 4"), ("note", "a-123"), ("ref", "A-123"), ("card", "A-123")], 1
    ):
        letters.dead("orders", number, properties={name: Typed("string", value)})
    letters.dead("orders", 9, body=Typed("string", "A-123"))
    filters, _rows = found(urlencode({"value": "A-123"}), admin)
    assert filters.is_valid()

    found_ones = DeadLetter.objects.filter(pk__in=newest_found(filters, admin, size=50).places)

    assert sorted(found_ones.values_list("orig_message_id", flat=True)) == [1, 4]


@pytest.mark.parametrize("query", [{"text": '"A-123"'}, {"value": "A-123"}])
def test_no_action_takes_what_only_has_the_words(query: dict[str, str], admin: User) -> None:
    dead_letters(TEXTS)
    key = DeadLetter.objects.values_list("setting_key", flat=True)[0]

    with pytest.raises(WronglyAsked, match="quoted phrases"):
        matching("give_back", key, "filter", urlencode(query), admin)


@pytest.mark.parametrize(
    ("text", "phrases", "rest"),
    [
        ('"A-1"', ("A-1",), ""),
        ('x "a  b" y', ("a b",), "x   y"),
        ("“A-1” «Б 2»", ("A-1", "Б 2"), ""),
        ('5" screen', (), '5" screen'),
        ('"" "-"', (), '"" "-"'),
    ],
)
def test_quotes_part_it(text: str, phrases: tuple[str, ...], rest: str) -> None:
    assert parted(text) == (phrases, rest)


def test_one_text_has_it_whole() -> None:
    assert has_all(["a b", "c"], ["a b"]) and not has_all(["a", "b"], ["a b"])
    assert has_all(["ﬁle Straße"], ["FILE STRASSE"])
