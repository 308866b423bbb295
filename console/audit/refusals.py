"""What is tried on a page or over REST and is not allowed is in the audit too."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from console.audit.log import REFUSALS, attempt, is_kept, mark_kept, record_refused, words_of
from console.ui.page import View, add_page

if TYPE_CHECKING:
    from rest_framework.views import APIView as Base
else:
    Base = object

# A look is no attempt: only what would change something is, or take it away as a file.
LOOKS = ("GET", "HEAD", "OPTIONS")
LOOKS_BESIDE_FILES = ("HEAD", "OPTIONS")
# What others may see is not there for this person.
NOT_THERE = 404
# Why, where somebody acted on that.
HIDDEN = "not found, or not visible to this user"


def audited(action: str, looks: Sequence[str] = LOOKS) -> Callable[[View], View]:
    """Outermost around a view that does something: a POST that ends with PermissionDenied, 403 or 409 leaves
    an entry with result=refused. What a view answers with a message and a redirect it watches itself
    (`console.audit.log.attempt`). `looks`: the methods that are no attempt.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def watched(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method in looks:
                return view(request, *args, **kwargs)
            about = _about("page", request, kwargs, kwargs.get("key", ""))
            try:
                with attempt(action, **about):
                    response = view(request, *args, **kwargs)
            except Http404 as error:
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


def add_audited_page(route: str, view: View, name: str, action: str = "") -> None:
    """Adds a page as `add_page` does: a refused POST is kept once, as this action, wherever it is refused."""
    add_page(route, audited(action or name)(view), name)


class Audited(Base):
    """First among the bases of a view that does something: a refusal (403, 404, 409) leaves an entry.

    `audit_action` is the action of the entry; a view with several sets it before it acts. `looks`: the
    methods that are no attempt."""

    audit_action = ""
    looks: Sequence[str] = LOOKS

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        request = self.request
        refused = (*REFUSALS, NOT_THERE)
        if request.method not in self.looks and response.status_code in refused and not is_kept(exc):
            key = self.kwargs.get("key") or _key_in_body(request)
            about = _about("rest", request, self.kwargs, key)
            why = HIDDEN if response.status_code == NOT_THERE else words_of(exc)
            record_refused(self.audit_action or type(self).__name__, why=why, **about)
        return response


def _about(kind: str, request: HttpRequest | Request, named: Mapping[str, Any], key: Any) -> dict[str, Any]:
    """Who asked for what; the letter is the one that the address names."""
    return {
        "by": request.user,
        "target": f"{kind}:{request.path}",
        "setting_key": str(key),
        "letter": _letter_in(request.path, named),
    }


def _letter_in(path: str, named: Mapping[str, Any]) -> int | None:
    """The letter that an address names by `pk`: a number there may be one of anything else, or none that
    there is."""
    pk = named.get("pk")
    return pk if isinstance(pk, int) and pk < 2**63 and f"letters/{pk}/" in path else None


def _key_in_body(request: Request) -> str:
    """Returns the key of the setting. A body that was never read, or that is no object, names none."""
    try:
        data = request.data
    except Exception:  # whatever is wrong with it was answered already
        return ""
    key = data.get("setting", "") if hasattr(data, "get") else ""
    return key if isinstance(key, str) else ""
