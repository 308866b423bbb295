"""Pages of saved filters: the bar above a list, the list of them, saving, changing and deleting one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from console.audit.refusals import audited
from console.saved_filters.models import SavedFilter
from console.saved_filters.operations import MOST, FilterRefused, SavedFilters
from console.ui.page import Text, View, add_page, link, page

# Names above a list; all of them have a page.
IN_BAR = 20
ACTIONS = {"save": "save/", "change": "<int:pk>/change/", "delete": "<int:pk>/delete/"}


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
        for action, place in ACTIONS.items():
            act = require_POST(self.guard(getattr(self, action)))
            add_page(self.route + place, audited(f"{action}_filter")(act), f"{self.name}_{action}")

    def bar(self, request: HttpRequest, query: QueryDict) -> dict[str, Any]:
        """What `ma/saved_bar.html` shows above the list that shows the filter `query`."""
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

    def save(self, request: HttpRequest) -> HttpResponseBase:
        name, query = (request.POST.get(each, "") for each in ("name", "query"))
        return self._done(
            request,
            lambda: self.filters.save(name, query, shared=_is_shared(request), **_who(request)),
            _("The filter is saved."),
        )

    def change(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        saved, name = self._one(request, pk), request.POST.get("name", "")
        return self._done(
            request,
            lambda: self.filters.change(saved, name=name, shared=_is_shared(request), **_who(request)),
            _("The filter is changed."),
        )

    def delete(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        saved = self._one(request, pk)
        return self._done(
            request,
            lambda: self.filters.delete(saved, **_who(request)),
            _("The filter is deleted. What it found stays as it is."),
        )

    def _one(self, request: HttpRequest, pk: int) -> SavedFilter:
        return get_object_or_404(self.filters.usable(request.user), pk=pk)

    def _row(self, request: HttpRequest, saved: SavedFilter) -> SavedFilterRow:
        words, problem = self.filters.words(saved, request.user)
        urls = (link(f"{self.name}_{action}", saved.pk) for action in ("change", "delete"))
        mine = saved.owner_id == request.user.pk
        return SavedFilterRow(saved, self.filters.url_of(saved), mine, words, problem, *urls)

    def _done(self, request: HttpRequest, act: Callable[[], object], done: str) -> HttpResponseBase:
        """Does it, or says why not, and goes where the form came from, else to the list of them."""
        try:
            act()
            messages.success(request, done)
        except FilterRefused as refused:
            if refused.code == "not_owner":
                raise PermissionDenied(refused.reason) from refused
            messages.error(request, " ".join(filter(None, (refused.reason, refused.what_to_do))))
        back, hosts = request.POST.get("next", ""), {request.get_host()}
        safe = url_has_allowed_host_and_scheme(back, hosts, require_https=request.is_secure())
        return HttpResponseRedirect(back if safe else link(f"{self.name}s"))


def _as_set(query: QueryDict) -> frozenset[tuple[str, tuple[str, ...]]]:
    """Two filters that differ in the order of their parts are one."""
    return frozenset((name, tuple(values)) for name, values in query.lists())


def _who(request: HttpRequest) -> dict[str, Any]:
    return {"by": request.user, "now": timezone.now()}


def _is_shared(request: HttpRequest) -> bool:
    return request.POST.get("shared") == "1"
