"""Filters under a name: a list of them, and saving, changing and deleting one."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from agents.pages.saved import IN_BAR, Named, acted
from agents.pages.saved import bar_of as saved_bar
from console.ui.page import link, page
from dlq.finding import saved as filters
from dlq.letters_for import found
from dlq.models import LetterState, SavedFilter
from dlq.pages.access import sees_letters


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
        chosen = (
            dict(getattr(field, "choices", ())).get(value, value) if not isinstance(value, list) else value
        )
        if isinstance(chosen, list):
            chosen = ", ".join("=".join(pair) for pair in chosen)
        words.append((str(field.label), str(chosen)))
    return words


def bar_of(request: HttpRequest, key: str, query: str) -> dict[str, Any]:
    """What a list shows of saved filters. `query` is the filter that it shows; `key` the setting that it is
    of."""
    kept = filters.filter_part(QueryDict(query))
    if key and kept:
        kept["setting"] = key
    own = kept.urlencode()
    usable = filters.saved_for(request.user)[: IN_BAR + 1]
    urls = {"saved_url": link("saved_filters"), "save_url": link("saved_filter_save")}
    return saved_bar(request, usable, own, url_of, **urls)


@require_safe
@sees_letters
def saved_filters(request: HttpRequest) -> HttpResponseBase:
    rows = [_named(request, each) for each in filters.saved_for(request.user)[: 2 * filters.MOST]]
    return page(
        request,
        "ma/saved_filters.html",
        title=_("Saved filters"),
        section="dead_letters",
        crumbs=[(_("Dead letters"), link("dead_letters"))],
        about=_(
            "Filters of dead letters under a name: yours, and those that others share. Each finds what you "
            "may see "
            "yourself."
        ),
        how=_("Choose something to look for in a list of dead letters, then “Save this filter…”."),
        list_url=link("all_dead_letters"),
        list_name=_("All dead letters"),
        rows=rows,
        back=request.get_full_path(),
    )


def _named(request: HttpRequest, saved: SavedFilter) -> Named:
    bound, _rows = found(saved.query, request.user)
    words = [] if bound.problem else filter_words(bound)
    urls = (link("saved_filter_change", saved.pk), link("saved_filter_delete", saved.pk))
    return Named(saved, url_of(saved), saved.owner_id == request.user.pk, words, bound.problem, *urls)


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

    return acted(request, act, link("saved_filters"))


@require_POST
@sees_letters
def change_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    saved = get_object_or_404(filters.saved_for(request.user), pk=pk)

    def act() -> str:
        name = request.POST.get("name", "")
        filters.change(saved, name=name, shared=_is_shared(request), by=request.user, now=timezone.now())
        return _("The filter is changed.")

    return acted(request, act, link("saved_filters"))


@require_POST
@sees_letters
def delete_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    saved = get_object_or_404(filters.saved_for(request.user), pk=pk)

    def act() -> str:
        filters.delete(saved, by=request.user, now=timezone.now())
        return _("The filter is deleted. What it found stays as it is.")

    return acted(request, act, link("saved_filters"))


def _is_shared(request: HttpRequest) -> bool:
    return request.POST.get("shared") == "1"
