"""Which letters an address or a form speaks of: chosen ones, what a filter finds, a group, or all of a
setting."""

from dataclasses import dataclass

from django.http import HttpRequest, QueryDict

from console.filters import filter_part
from dlq.models import Scope
from dlq.replay.creation import LARGEST_SELECTION
from dlq.replay.requests import listed_scope
from dlq.search.filter import PAGE_OWN


@dataclass(frozen=True, slots=True)
class Chosen:
    """`letters` for the scopes one and selection, `query` for group and matching."""

    scope: Scope
    letters: tuple[int, ...] = ()
    query: str = ""

    @property
    def listed(self) -> str:
        return ",".join(map(str, self.letters))


def chosen(request: HttpRequest) -> Chosen | None:
    """`all=1`; `match=1` with a filter, and `group=1` where that filter is a group; else `letter=7&letter=8`
    or `letters=7,8`. A POST carries the filter as one field `query`. None: nothing is named."""
    data = request.POST if request.method == "POST" else request.GET
    if data.get("all") == "1":
        return Chosen(Scope.ALL)
    if data.get("match") == "1" or data.get("group") == "1":
        query = data.get("query", "") if request.method == "POST" else filter_of(data)
        return Chosen(Scope.GROUP if data.get("group") == "1" else Scope.MATCHING, query=query)
    ids = numbers([*data.getlist("letter"), *data.get("letters", "").split(",")])
    return Chosen(listed_scope(ids), tuple(ids)) if ids else None


def numbers(texts: list[str]) -> list[int]:
    """One more than are taken at most: then there are too many."""
    found = {int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) < 19}
    return sorted(found)[: LARGEST_SELECTION + 1]


def filter_of(query: QueryDict) -> str:
    return filter_part(query, PAGE_OWN).urlencode()
