"""Cursors of lists that are walked by an instant and a key, newest first: an index answers, however long they
are."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from agents.pages.lists import BEFORE, PAGE, Page, page_of

BIGGEST_KEY = 2**63 - 1


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
