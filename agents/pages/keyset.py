"""Cursors of lists that are walked by an instant and a key, newest first: an index answers, however long they are."""

from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from agents.pages.lists import BEFORE, PAGE, Page, page_of

Row = TypeVar("Row", bound=Model)


def keyset_page(request: HttpRequest, rows: QuerySet[Any], instant: str, size: int = PAGE) -> Page:
    """A page of `rows`, which are ordered by (`-instant`, `-pk`). A cursor that nobody wrote begins at the newest."""
    cursor = _read(request.GET.get(BEFORE, ""))
    if cursor:
        at, key = cursor
        try:
            rows = rows.filter(**{f"{instant}__lte": at}).filter(Q(**{f"{instant}__lt": at}) | Q(pk__lt=key))
            found = list(rows[: size + 1])
        except (ValueError, TypeError, OverflowError):  # a key of another kind of row
            found = []
    else:
        found = list(rows[: size + 1])
    return page_of(request, found, lambda row: f"{getattr(row, instant).isoformat()}_{row.pk}", size)


def _read(text: str) -> tuple[datetime, str] | None:
    instant, _separator, key = text.rpartition("_")
    try:
        parsed = datetime.fromisoformat(instant)
    except ValueError:
        return None
    return (parsed, key) if parsed.tzinfo else None
