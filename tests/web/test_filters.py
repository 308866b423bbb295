"""Filters of lists, whichever list it is; what pages and programs read of an address beside them."""

from datetime import datetime
from uuid import UUID

import pytest

from agents.pages.acknowledgements import AnswerFilter
from agents.pages.activations import ActivationFilter
from agents.pages.trips import TripFilter
from alerts.pages.alerts import AlertFilter
from console.audit.web import AuditFilter
from console.filters import ListFilter, SearchFilter
from console.lists.keyset import BIGGEST_KEY, Found, number_in, pieces
from console.rest.lists import parameters_of
from dlq.pages.replay import ReplayFilter
from dlq.search.filter import LetterFilter
from failures.pages.fingerprints import FingerprintFilter
from failures.protocols.filter import ProtocolFilter

FILTERS = (
    ActivationFilter, AlertFilter, AnswerFilter, AuditFilter, FingerprintFilter, LetterFilter, ProtocolFilter,
    ReplayFilter, TripFilter,
)  # fmt: skip


@pytest.mark.parametrize("kind", FILTERS)
def test_what_a_filter_says_of_its_fields_names_fields_that_it_has(kind: type[ListFilter]) -> None:
    fields = set(kind.base_filters)

    assert {*kind.quiet, *kind.rarely, *kind.several, *kind.holds_anyway} <= fields
    assert not kind.page_own & fields
    if issubclass(kind, SearchFilter):
        assert {name for pair in kind.ranges for name in pair} <= fields


def test_rest_describes_the_filter_of_the_page_field_by_field() -> None:
    letters = {each.name: each for each in parameters_of(LetterFilter, largest_page=500)}
    protocols = {each.name: each for each in parameters_of(ProtocolFilter, largest_page=500)}

    assert list(letters) == [*LetterFilter.base_filters, "page_size"]
    names = ("text", "since", "activation", "delivered_from")
    assert [letters[name].type for name in names] == [str, datetime, UUID, int]
    assert letters["prop"].many and not letters["text"].many
    assert letters["muted"].enum == ["no", "yes"]
    assert protocols["setting"].enum is None, "what was deleted can be asked for"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("", None),
        ("0", None),
        ("-7", None),
        ("x", None),
        ("²", None),
        ("٧", None),
        ("7" * 5000, None),
    ],
)
def test_a_number_of_an_address_is_one_that_a_row_can_have(text: str, number: int | None) -> None:
    assert number_in(text) == number


def test_the_largest_number_of_a_row_is_one() -> None:
    assert number_in(str(BIGGEST_KEY)) == BIGGEST_KEY and number_in(str(BIGGEST_KEY + 1)) is None


def test_what_a_search_finds_goes_on_where_it_stopped_and_where_a_piece_ended() -> None:
    def step(before: int | None, size: int) -> Found[int]:
        if before is None:
            return Found([], stopped_at=15)
        return Found([number for number in range(14, 9, -1) if number < before][:size])

    assert list(pieces(step, 2)) == [[], [14, 13], [12, 11], [10]]
