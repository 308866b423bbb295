"""Long lists: pages by key instead of by number, counts that stop early."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import django_filters
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.pages.amounts import number

COUNTED = 10_000
PAGE = 50
BEFORE = "before"


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


SPANS = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "7d": timedelta(days=7)}
SPAN_LABELS = [("1h", _("last hour")), ("1d", _("last 24 hours")), ("7d", _("last 7 days"))]


class SpanFilter(django_filters.ChoiceFilter):
    """`?span=1h`: rows whose `field_name` is not older than that."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=SPAN_LABELS, empty_label=_("any time"), label=_("Time"), **options)

    def filter(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        if value not in SPANS:
            return rows
        return rows.filter(**{f"{self.field_name}__gte": timezone.now() - SPANS[value]})
