"""Long lists: pages by an instant and a key, or by a number, so that an index answers however long they are;
counts that stop early."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase

from console.ui.amounts import count_or_more
from console.ui.page import page

COUNTED = 10_000
PAGE = 50
BEFORE = "before"
BIGGEST_KEY = 2**63 - 1
P = TypeVar("P")


def count_up_to(rows: QuerySet[Any], most: int) -> int:
    """Returns how many rows, never reading more than one more than `most` of them."""
    return rows.order_by()[: most + 1].count()


def counted(rows: QuerySet[Any]) -> str:
    """`1,234` or `10,000+`."""
    return count_or_more(count_up_to(rows, COUNTED), COUNTED)


# -- what a search finds -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Found(Generic[P]):
    """`places` of a page, newest first. `stopped_at`: in the time there was, no further was looked."""

    places: list[P] = field(default_factory=list)
    stopped_at: P | None = None


def pieces(step: Callable[[P | None, int], Found[P]], size: int) -> Iterator[list[P]]:
    """All that is found, newest first: `step` is asked for what lies below a place until nothing is left."""
    before: P | None = None
    while True:
        found = step(before, size)
        yield found.places
        if found.stopped_at is None and len(found.places) < size:
            return
        before = found.places[-1] if found.stopped_at is None else found.stopped_at


# -- places in a list, as texts of an address ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Between two rows in the order of an instant: what is older lies below. The key orders what happened at
    one instant."""

    at: datetime
    key: Any

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.key}"


def place_in(text: str, model: type[Model]) -> Place | None:
    """Returns what `str` wrote. None for anything else: the list begins at its end."""
    instant, _separator, key = text.rpartition("_")
    assert model._meta.pk is not None
    try:
        at, known = datetime.fromisoformat(instant), model._meta.pk.to_python(key)
    except (ValueError, ValidationError):
        return None
    if at.tzinfo is None or (isinstance(known, int) and not 0 < known <= BIGGEST_KEY):
        return None
    return Place(at, known)


def number_in(text: str) -> int | None:
    """The number of a row; None for anything else."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
    return number if 0 < number <= BIGGEST_KEY else None


# -- pages ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """`older`, `newest` and `newer` are query strings, empty where there is nothing to go to."""

    rows: list[Any]
    older: str
    newest: str
    newer: str = ""


def page_of(
    request: HttpRequest,
    rows: list[Any],
    cursor: Callable[[Any], Any],
    size: int = PAGE,
    *,
    stopped_at: Any = None,
) -> Page:
    """A page of `rows`, of which there may be one more than `size`: then there are older ones.

    `cursor` tells the place of the last row of the page, for `?before=`; or `stopped_at` is the place where
    the next page goes on.
    """
    shown, query = rows[:size], request.GET.copy()
    older = newest = ""
    if stopped_at is None and len(rows) > size:
        stopped_at = cursor(shown[-1])
    if stopped_at is not None:
        query[BEFORE] = str(stopped_at)
        older = query.urlencode()
    if BEFORE in request.GET:
        query.pop(BEFORE, None)
        newest = query.urlencode() or "page=newest"
    return Page(shown, older, newest)


def keyset_page(request: HttpRequest, rows: QuerySet[Any], instant: str, size: int = PAGE) -> Page:
    """A page of `rows`, which are ordered by (`-instant`, `-pk`). A cursor that nobody wrote begins at the
    newest."""
    if place := place_in(request.GET.get(BEFORE, ""), rows.model):
        older = Q(**{f"{instant}__lt": place.at}) | Q(pk__lt=place.key)
        rows = rows.filter(**{f"{instant}__lte": place.at}).filter(older)
    return page_of(request, list(rows[: size + 1]), lambda row: Place(getattr(row, instant), row.pk), size)


def numbered_page(request: HttpRequest, rows: QuerySet[Any], *, oldest_first: bool = False) -> Page:
    """A page of `rows` by their numbers, the newest first unless said otherwise."""
    if number := number_in(request.GET.get(BEFORE, "")):
        rows = rows.filter(**{"pk__gt" if oldest_first else "pk__lt": number})
    ordered = rows.order_by("pk" if oldest_first else "-pk")
    return page_of(request, list(ordered[: PAGE + 1]), lambda row: row.pk)


def list_page(
    request: HttpRequest, template: str, *, filters: Any, listed: Page, **context: Any
) -> HttpResponseBase:
    """A page of the site with a list that `filters`, a `ListFilter`, narrow; `ma/list.html` is its frame."""
    return page(request, template, filters=filters, filtered=filters.is_set, listed=listed, **context)
