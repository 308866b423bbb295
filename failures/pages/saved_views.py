"""Filters of protocols under a name: a list of them, and saving, changing and deleting one."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from agents.pages.saved import IN_BAR, Named, acted, bar_of
from agents.services.saved import MOST
from console.ui.page import link, needs, page
from failures.finding.filters import ProtocolFilter
from failures.models import SavedView
from failures.saved import views

VIEW = "failures.view_failureprotocol"


def url_of(saved: SavedView) -> str:
    return f"{link('protocols')}?{saved.query}"


def views_bar(request: HttpRequest, query: QueryDict) -> dict[str, Any]:
    """What the list shows of them. `query` is the filter that it shows."""
    usable = views.usable(request.user)[: IN_BAR + 1]
    urls = {"saved_url": link("saved_views"), "save_url": link("saved_view_save")}
    return bar_of(request, usable, query.urlencode(), url_of, **urls)


@require_safe
@needs(VIEW)
def saved_views(request: HttpRequest) -> HttpResponseBase:
    return page(
        request,
        "ma/saved_filters.html",
        title=_("Saved filters of protocols"),
        section="protocols",
        crumbs=[(_("Protocols"), link("protocols"))],
        about=_("Filters of protocols under a name: yours, and those that others share."),
        how=_("Choose something to look for in the list of protocols, then “Save this filter…”."),
        list_url=link("protocols"),
        list_name=_("Protocols"),
        rows=[_named(request, each) for each in views.usable(request.user)[: 2 * MOST]],
        back=request.get_full_path(),
    )


def _named(request: HttpRequest, saved: SavedView) -> Named:
    filters = ProtocolFilter(QueryDict(saved.query))
    urls = (link("saved_view_change", saved.pk), link("saved_view_delete", saved.pk))
    words = [] if filters.problem else filter_words(filters)
    return Named(saved, url_of(saved), saved.owner_id == request.user.pk, words, filters.problem, *urls)


def filter_words(filters: ProtocolFilter) -> list[tuple[str, str]]:
    """Label and value of each field of a valid filter that is set, as people read them."""
    fields = filters.form.fields
    words = []
    for name, value in filters.form.cleaned_data.items():
        if value not in (None, ""):
            chosen = {str(key): label for key, label in getattr(fields[name], "choices", ())}
            words.append((str(fields[name].label), str(chosen.get(str(value), value))))
    return words


@require_POST
@needs(VIEW)
def save_page(request: HttpRequest) -> HttpResponseBase:
    def act() -> str:
        name, query = request.POST.get("name", ""), request.POST.get("query", "")
        views.save(name, query, shared=_is_shared(request), by=request.user, now=timezone.now())
        return _("The filter is saved.")

    return acted(request, act, link("saved_views"))


@require_POST
@needs(VIEW)
def change_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    saved = get_object_or_404(views.usable(request.user), pk=pk)

    def act() -> str:
        name = request.POST.get("name", "")
        views.change(saved, name=name, shared=_is_shared(request), by=request.user, now=timezone.now())
        return _("The filter is changed.")

    return acted(request, act, link("saved_views"))


@require_POST
@needs(VIEW)
def delete_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    saved = get_object_or_404(views.usable(request.user), pk=pk)

    def act() -> str:
        views.delete(saved, by=request.user, now=timezone.now())
        return _("The filter is deleted. What it found stays as it is.")

    return acted(request, act, link("saved_views"))


def _is_shared(request: HttpRequest) -> bool:
    return request.POST.get("shared") == "1"
