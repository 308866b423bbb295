"""The letters before and after one, within the list that it was opened from."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest

from console.ui.page import link
from dlq.models import DeadLetter

# The query of the list, carried by every link from it to a letter.
LIST = "in"
LONGEST_QUERY = 2000


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Addresses; empty where there is none. `back` is the list itself."""

    newer: str
    older: str
    back: str


def list_query(request: HttpRequest) -> str:
    text = request.GET.get(LIST, "")
    return text if len(text) <= LONGEST_QUERY else ""


def neighbours_of(letter: DeadLetter, rows: QuerySet[DeadLetter], query: str, back: str) -> Neighbours:
    """`rows` are those of the list, whatever order they have: a list is newest first, by number."""
    found = rows.order_by()
    newer = found.filter(pk__gt=letter.pk).order_by("pk").values_list("pk", flat=True).first()
    older = found.filter(pk__lt=letter.pk).order_by("-pk").values_list("pk", flat=True).first()
    carried = f"?{urlencode({LIST: query})}" if query else ""

    def url(pk: Any) -> str:
        return link("letter", pk) + carried if pk else ""

    return Neighbours(url(newer), url(older), back + (f"?{query}" if query else ""))
