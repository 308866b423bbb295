"""Lists that are whole in memory: searched, sorted by a column that somebody chose, in pages by number."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, QueryDict

from console.lists.keyset import PAGE
from console.ui.page import Text

R = TypeVar("R")
SORT, SEARCH, NUMBER = "sort", "q", "page"
LONGEST_SEARCH = 100


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """`by`: what its rows are ordered by; None of it is the last either way, without it nobody sorts.
    `largest_first`: the order of the first click. `classes` are those of its cells."""

    name: str
    label: Text
    by: Callable[[R], Any] | None = None
    largest_first: bool = False
    classes: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """A head of a table. `query` leads to its order; empty: it has none. `sorted` is a value of aria-sort."""

    label: Text
    classes: str
    query: str = ""
    sorted: str = ""


@dataclass(frozen=True, slots=True)
class Listing(Generic[R]):
    """`found`: all rows that match. `kept`: what of the address a link to another page keeps, `hidden`: what
    the search form keeps."""

    found: Sequence[R]
    pages: Page[R]
    heads: Sequence[Head]
    search: str
    kept: str
    hidden: Sequence[tuple[str, str]]

    @property
    def rows(self) -> Sequence[R]:
        return list(self.pages.object_list)


def address_of(query: QueryDict, *without: str) -> str:
    """Returns the query without these parameters."""
    kept = query.copy()
    for name in without:
        kept.pop(name, None)
    return kept.urlencode()


def search_in(query: QueryDict) -> str:
    return query.get(SEARCH, "").strip()[:LONGEST_SEARCH]


def matching(rows: Iterable[R], text: str, texts: Callable[[R], Iterable[str]]) -> list[R]:
    """Returns the rows with `text` as a part of one of their texts, in any case."""
    wanted = text.casefold()
    return [row for row in rows if not wanted or any(wanted in each.casefold() for each in texts(row))]


def listing(request: HttpRequest, rows: Sequence[R], columns: Sequence[Column[R]]) -> Listing[R]:
    """A page of `rows`, which are in the order that nobody has to ask for. An order that nobody knows is
    that one."""
    query = request.GET
    name, descending = _order_in(query)
    column = next((each for each in columns if each.name == name and each.by), None)
    found = in_order(rows, column, descending) if column else rows
    return Listing(
        found=found,
        pages=Paginator(found, PAGE).get_page(query.get(NUMBER)),
        heads=[_head(each, query, column, descending) for each in columns],
        search=search_in(query),
        kept=address_of(query, NUMBER),
        hidden=[(key, str(value)) for key, value in query.items() if key not in (SEARCH, NUMBER) and value],
    )


def in_order(rows: Sequence[R], column: Column[R], descending: bool) -> list[R]:
    """Equals keep their order."""
    by = column.by
    assert by is not None
    known = [row for row in rows if by(row) is not None]
    return [
        *sorted(known, key=by, reverse=descending),
        *(row for row in rows if by(row) is None),
    ]


def _order_in(query: QueryDict) -> tuple[str, bool]:
    text = query.get(SORT, "")
    return text.removeprefix("-"), text.startswith("-")


def _head(column: Column[R], query: QueryDict, chosen: Column[R] | None, descending: bool) -> Head:
    if column.by is None:
        return Head(column.label, column.classes)
    here = column is chosen
    turned = not descending if here else column.largest_first
    wanted = f"-{column.name}" if turned else column.name
    address = address_of(query, NUMBER, SORT)
    return Head(
        column.label,
        column.classes,
        f"{address}&{SORT}={wanted}" if address else f"{SORT}={wanted}",
        ("descending" if descending else "ascending") if here else "",
    )
