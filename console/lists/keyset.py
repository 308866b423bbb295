"""Long lists: pages by an instant and a key instead of by number, so that an index answers however long they
are, and counts that stop early."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from console.ui.amounts import number

COUNTED = 10_000
PAGE = 50
BEFORE = "before"
BIGGEST_KEY = 2**63 - 1


def counted(rows: QuerySet[Any]) -> str:
    """How many rows, never reading more than COUNTED of them: `1,234` or `10,000+`."""
    found = rows.order_by()[: COUNTED + 1].count()
    return f"{number(COUNTED)}+" if found > COUNTED else number(found)


@dataclass(frozen=True, slots=True)
class Page:
    """`older`, `newest` and `newer` are query strings, empty where there is nothing to go to."""

    rows: list[Any]
    older: str
    newest: str
    newer: str = ""


def page_of(request: HttpRequest, rows: list[Any], cursor: Any, size: int = PAGE) -> Page:
    """A page of `rows`, of which there may be one more than `size`: then there are older ones.

    `cursor` makes the text of `?before=` from the last row of the page.
    """
    shown, query = rows[:size], request.GET.copy()
    older = newest = ""
    if len(rows) > size:
        query[BEFORE] = cursor(shown[-1])
        older = query.urlencode()
    if BEFORE in request.GET:
        query.pop(BEFORE, None)
        newest = query.urlencode() or "page=newest"
    return Page(shown, older, newest)


def keyset_page(request: HttpRequest, rows: QuerySet[Any], instant: str, size: int = PAGE) -> Page:
    """A page of `rows`, which are ordered by (`-instant`, `-pk`). A cursor that nobody wrote begins at the
    newest."""
    if cursor := _read(request.GET.get(BEFORE, ""), rows.model):
        at, key = cursor
        rows = rows.filter(**{f"{instant}__lte": at}).filter(Q(**{f"{instant}__lt": at}) | Q(pk__lt=key))
    return page_of(
        request, list(rows[: size + 1]), lambda row: f"{getattr(row, instant).isoformat()}_{row.pk}", size
    )


def _read(text: str, model: type[Model]) -> tuple[datetime, Any] | None:
    instant, _separator, key = text.rpartition("_")
    assert model._meta.pk is not None
    try:
        parsed, known = datetime.fromisoformat(instant), model._meta.pk.to_python(key)
    except (ValueError, ValidationError):
        return None
    if parsed.tzinfo is None or (isinstance(known, int) and not 0 < known <= BIGGEST_KEY):
        return None
    return parsed, known
