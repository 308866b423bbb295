"""What is tried over REST and not allowed is in the audit too."""

from typing import TYPE_CHECKING, Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dlq.auditing import HIDDEN, REFUSALS, is_kept, letter_in, record_refused, words_of

if TYPE_CHECKING:
    Base = APIView
else:
    Base = object

LOOKS = ("GET", "HEAD", "OPTIONS")
# What others may see is not there for this person.
NOT_THERE = 404


class Audited(Base):
    """First among the bases of a view that does something: a refusal (403, 404, 409) leaves an entry.

    `audit_action` is the action of the entry; a view with several sets it before it acts."""

    audit_action = ""

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        request = self.request
        refused = (*REFUSALS, NOT_THERE)
        if request.method not in LOOKS and response.status_code in refused and not is_kept(exc):
            record_refused(
                self.audit_action or type(self).__name__,
                by=request.user,
                target=f"rest:{request.path}",
                why=HIDDEN if response.status_code == NOT_THERE else words_of(exc),
                **_named(request, self.kwargs),
            )
        return response


def _named(request: Request, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The setting of the address or of the body, the letter of the address."""
    key = kwargs.get("key") or _of_body(request)
    return {"setting_key": str(key), "letter": letter_in(request.path, kwargs)}


def _of_body(request: Request) -> str:
    """A body that was never read, or that is no object, names none."""
    try:
        data = request.data
    except Exception:  # whatever is wrong with it was answered already
        return ""
    key = data.get("setting", "") if hasattr(data, "get") else ""
    return key if isinstance(key, str) else ""
