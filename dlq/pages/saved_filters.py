"""Filters under a name: a list of them, and saving, changing and deleting one."""

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

from agents.pages.consoles import link, page
from dlq.finding import saved as filters
from dlq.letters_for import found
from dlq.models import LetterState, SavedFilter
from dlq.pages.access import sees_letters
from dlq.pages.refusals import say

# Names above a list; all of them have a page.
IN_BAR = 20


@dataclass(frozen=True, slots=True)
class Named:
    """`words`: label and value of each field that is set; `problem`: why it finds nothing any more."""

    saved: SavedFilter
    url: str
    mine: bool
    words: list[tuple[str, str]]
    problem: str


def url_of(saved: SavedFilter) -> str:
    """Of one setting: the list of the setting, where letters can be chosen and given back."""
    query = QueryDict(saved.query).copy()
    key = query.get("setting", "")
    if not key or "/" in key:
        return f"{link('all_dead_letters')}?{saved.query}"
    query.pop("setting")
    return f"{link('dead_letters_of', key)}?{query.urlencode()}"


def filter_words(bound: Any) -> list[tuple[str, str]]:
    """Label and value of each field of a valid filter that is set, as people read them."""
    words = []
    for name, value in bound.form.cleaned_data.items():
        field = bound.form.fields[name]
        if value in (None, "", []) or value == LetterState.DEAD:
            continue
        chosen = dict(getattr(field, "choices", ())).get(value, value) if not isinstance(value, list) else value
        if isinstance(chosen, list):
            chosen = ", ".join("=".join(pair) for pair in chosen)
        words.append((str(field.label), str(chosen)))
    return words


def bar_of(request: HttpRequest, key: str, query: str) -> dict[str, Any]:
    """What a list shows of saved filters. `query` is the filter that it shows; `key` the setting that it is of."""
    kept = filters.filter_part(QueryDict(query))
    if key and kept:
        kept["setting"] = key
    own = kept.urlencode()
    usable = list(filters.saved_for(request.user)[: IN_BAR + 1])
    return {
        "saved": [(each, url_of(each), bool(own) and _as_set(each.query) == _as_set(own)) for each in usable[:IN_BAR]],
        "more_saved": len(usable) > IN_BAR,
        "to_save": own,
        "save_back": request.get_full_path(),
    }


def _as_set(query: str) -> frozenset[tuple[str, tuple[str, ...]]]:
    return frozenset((name, tuple(values)) for name, values in QueryDict(query).lists())


@require_safe
@sees_letters
def saved_filters(request: HttpRequest) -> HttpResponseBase:
    rows = [_named(request, each) for each in filters.saved_for(request.user)[: 2 * filters.MOST]]
    return page(
        request,
        "dlq/saved_filters.html",
        title=_("Saved filters"),
        section="dead_letters",
        crumbs=[(_("Dead letters"), link("dead_letters"))],
        rows=rows,
        back=request.get_full_path(),
    )


def _named(request: HttpRequest, saved: SavedFilter) -> Named:
    bound, _rows = found(saved.query, request.user)
    words = [] if bound.problem else filter_words(bound)
    return Named(saved, url_of(saved), saved.owner_id == request.user.pk, words, bound.problem)


@require_POST
@sees_letters
def save_page(request: HttpRequest) -> HttpResponseBase:
    def act() -> str:
        given = request.POST
        filters.save(
            given.get("name", ""),
            given.get("query", ""),
            shared=_is_shared(request),
            by=request.user,
            now=timezone.now(),
        )
        return _("The filter is saved.")

    return _acted(request, act)


@require_POST
@sees_letters
def change_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    saved = get_object_or_404(filters.saved_for(request.user), pk=pk)

    def act() -> str:
        name = request.POST.get("name", "")
        filters.change(saved, name=name, shared=_is_shared(request), by=request.user, now=timezone.now())
        return _("The filter is changed.")

    return _acted(request, act)


@require_POST
@sees_letters
def delete_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    saved = get_object_or_404(filters.saved_for(request.user), pk=pk)

    def act() -> str:
        filters.delete(saved, by=request.user, now=timezone.now())
        return _("The filter is deleted. What it found stays as it is.")

    return _acted(request, act)


def _is_shared(request: HttpRequest) -> bool:
    return request.POST.get("shared") == "1"


def _acted(request: HttpRequest, act: Callable[[], str]) -> HttpResponseBase:
    try:
        messages.success(request, act())
    except filters.FilterRefused as refused:
        if refused.code == "not_owner":
            raise PermissionDenied(refused.reason) from refused
        say(request, refused)
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(wanted if safe else link("saved_filters"))
