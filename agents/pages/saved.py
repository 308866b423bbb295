"""Pages of saved filters, whatever list they are of."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.utils.http import url_has_allowed_host_and_scheme

from agents.services.saved import FilterRefused

# Names above a list; all of them have a page.
IN_BAR = 20


@dataclass(frozen=True, slots=True)
class Named:
    """`words`: label and value of each field that is set; `problem`: why it finds nothing any more."""

    saved: Any
    url: str
    mine: bool
    words: list[tuple[str, str]]
    problem: str
    change_url: str
    delete_url: str


def as_set(query: str) -> frozenset[tuple[str, tuple[str, ...]]]:
    """Two filters that differ in the order of their parts are one."""
    return frozenset((name, tuple(values)) for name, values in QueryDict(query).lists())


def bar_of(
    request: HttpRequest,
    usable: Iterable[Any],
    own: str,
    url_of: Callable[[Any], str],
    *,
    saved_url: str,
    save_url: str,
) -> dict[str, Any]:
    """What `ma/saved_bar.html` shows. `usable`: IN_BAR and one more of them; `own`: the filter of the
    list."""
    there = list(usable)
    return {
        "saved": [
            (each, url_of(each), bool(own) and as_set(each.query) == as_set(own)) for each in there[:IN_BAR]
        ],
        "more_saved": len(there) > IN_BAR,
        "to_save": own,
        "save_back": request.get_full_path(),
        "saved_url": saved_url,
        "save_url": save_url,
    }


def acted(request: HttpRequest, act: Callable[[], str], back: str) -> HttpResponseBase:
    """Does it, says what became of it, and goes where the form came from, else to `back`."""
    try:
        messages.success(request, act())
    except FilterRefused as refused:
        if refused.code == "not_owner":
            raise PermissionDenied(refused.reason) from refused
        messages.error(request, " ".join(filter(None, (refused.reason, refused.what_to_do))))
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(wanted if safe else back)
