"""Pages of saved filters: the bar above a list, the list of them, saving, changing and deleting one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from console.models import SavedFilter
from console.operations.web import FormPage
from console.saved_filters.operations import MOST, ChangeFilter, DeleteFilter, SavedFilters, SaveFilter
from console.ui.page import Text, View, add_page, link, page

# Names above a list; all of them have a page.
IN_BAR = 20
PLACES = {SaveFilter: "save/", ChangeFilter: "<int:pk>/change/", DeleteFilter: "<int:pk>/delete/"}


@dataclass(frozen=True, slots=True)
class SavedFilterRow:
    """`words`: label and value of each field that is set; `problem`: why it finds nothing any more."""

    saved: SavedFilter
    url: str
    mine: bool
    words: list[tuple[str, str]]
    problem: str
    change_url: str
    delete_url: str


class SavedFilterPage(FormPage):
    """Page of the list whose `filters` they are."""

    filters: SavedFilters | None = None

    def _object(self, address: Mapping[str, Any]) -> SavedFilter:
        assert self.filters is not None
        user: Any = self.request.user
        if "pk" not in address:
            return SavedFilter(list=self.filters.word, owner=user)
        return get_object_or_404(self.filters.usable(user), pk=address["pk"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFilterPages:
    """Those of one list. `guard` lets in who may see it; `name` is what the names of their addresses begin
    with. `section` and `listed`: label and name of the address of what they belong to, and of the list."""

    filters: SavedFilters
    guard: Callable[[View], View]
    route: str
    name: str
    title: Text
    about: Text
    how: Text
    section: tuple[Text, str]
    listed: tuple[Text, str]

    def register(self) -> None:
        add_page(self.route, require_safe(self.guard(self.index)), f"{self.name}s")
        for operation, place in PLACES.items():
            view = SavedFilterPage.view_of(operation, self.guard, filters=self.filters, home=f"{self.name}s")
            add_page(self.route + place, view, f"{self.name}_{operation.verb()}")

    def bar(self, request: HttpRequest, query: QueryDict) -> dict[str, Any]:
        """Returns what `ma/saved_bar.html` shows above the list that shows the filter `query`."""
        own, there = _as_set(query), [*self.filters.usable(request.user)[: IN_BAR + 1]]
        return {
            "saved": [
                (each, self.filters.url_of(each), bool(own) and _as_set(QueryDict(each.query)) == own)
                for each in there[:IN_BAR]
            ],
            "more_saved": len(there) > IN_BAR,
            "to_save": query.urlencode(),
            "save_back": request.get_full_path(),
            "saved_url": link(f"{self.name}s"),
            "save_url": link(f"{self.name}_save"),
        }

    def index(self, request: HttpRequest) -> HttpResponseBase:
        (above, above_url), (listed, listed_url) = self.section, self.listed
        return page(
            request,
            "ma/saved_filters.html",
            title=self.title,
            section=above_url,
            crumbs=[(above, link(above_url))],
            about=self.about,
            how=self.how,
            list_url=link(listed_url),
            list_name=listed,
            rows=[self._row(request, each) for each in self.filters.usable(request.user)[: 2 * MOST]],
            back=request.get_full_path(),
        )

    def _row(self, request: HttpRequest, saved: SavedFilter) -> SavedFilterRow:
        words, problem = self.filters.words(saved, request.user)
        urls = (link(f"{self.name}_{action}", saved.pk) for action in ("change", "delete"))
        mine = saved.owner_id == request.user.pk
        return SavedFilterRow(saved, self.filters.url_of(saved), mine, words, problem, *urls)


def _as_set(query: QueryDict) -> frozenset[tuple[str, tuple[str, ...]]]:
    """Two filters that differ in the order of their parts are one."""
    return frozenset((name, tuple(values)) for name, values in query.lists())
