"""What is tried on a page and not allowed is in the audit too."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase

from console.ui import page
from console.ui.page import View
from dlq.auditing import HIDDEN, REFUSALS, attempt, is_kept, letter_in, mark_kept, record_refused

# A look is no attempt: only what would change something is.
LOOKS = ("GET", "HEAD", "OPTIONS")


def audited(action: str) -> Callable[[View], View]:
    """Outermost around a view that does something: a POST that ends with PermissionDenied, 403 or 409 leaves
    an entry with result=refused. What a view answers with a message and a redirect it watches itself
    (`dlq.auditing.attempt`).
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def watched(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method in LOOKS:
                return view(request, *args, **kwargs)
            about: dict[str, Any] = {
                "by": request.user,
                "target": f"page:{request.path}",
                **_named(request, kwargs),
            }
            try:
                with attempt(action, **about):
                    response = view(request, *args, **kwargs)
            except Http404 as error:  # what others may see is not there for this person
                if not is_kept(error):
                    record_refused(action, why=HIDDEN, **about)
                    mark_kept(error)
                raise
            if response.status_code in REFUSALS and not is_kept(response):
                record_refused(action, why=response.reason_phrase, **about)
                mark_kept(response)
            return response

        return watched

    return decorate


def add_page(route: str, view: View, name: str) -> None:
    """Every page of dlq is registered with this: whatever is checked where, a refused POST is kept once."""
    page.add_page(route, audited(name)(view), name)


def _named(request: HttpRequest, kwargs: dict[str, Any]) -> dict[str, Any]:
    """What the address names: a setting by its key, a letter by its number."""
    return {"setting_key": str(kwargs.get("key", "")), "letter": letter_in(request.path, kwargs)}
