"""Pages that need neither the database nor a person, and the answer while the database is away: 503, and when
to come again."""

import sys
from collections.abc import Sequence

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.csrf import requires_csrf_token

from console.rest.errors import body
from console.ui.errors import missing_permissions, request_id


def plain_page(
    title: str,
    lines: Sequence[str],
    *,
    status: int,
    again_in: int = 0,
    onwards: tuple[str, str] | None = None,
) -> HttpResponse:
    """Renders in the language of the reader's cookie or browser. With `again_in` (seconds) it asks again by
    itself.

    `onwards`: address and words of the link to go on with."""
    page = render_to_string(
        "plain.html",
        {
            "title": title,
            "lines": lines,
            "again_in": again_in,
            "onwards": onwards,
            "error_id": request_id() if status >= 400 else "",
        },
    )
    answer = HttpResponse(page, status=status)
    answer.headers["Cache-Control"] = "no-store"
    return answer


# -- answer while the database is away: 503 with a page that is made without it ------------------------------


RETRY_AFTER_SECONDS = 10


def database_away(request: HttpRequest) -> HttpResponse:
    """Renders in the language of the reader's cookie or browser. Whoever reads a page sees it come back by
    itself."""
    if request.path_info.startswith("/api/"):
        detail = body("database_away", "The database is unavailable.", "", "Try again later.")
        answer: HttpResponse = JsonResponse(detail, status=503)
    else:
        answer = plain_page(
            _("Database unavailable"), _lines(request), status=503, again_in=_seconds(request)
        )
    answer.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return answer


def _seconds(request: HttpRequest) -> int:
    """What was sent is not sent again by itself."""
    return RETRY_AFTER_SECONDS if request.method in ("GET", "HEAD") else 0


def _lines(request: HttpRequest) -> list[str]:
    seconds = _seconds(request)
    again = ngettext(
        "This page reloads automatically every %(n)s second.",
        "This page reloads automatically every %(n)s seconds.",
        seconds,
    ) % {"n": seconds}
    return [
        _("Messages and records are safe: the broker and the servers keep them until the database is back."),
        again
        if seconds
        else _(
            "Your request failed or was only partly carried out. Go back and check which changes "
            "were made before you try again."
        ),
        _("For site administrators: ./ma status, ./ma logs web."),
    ]


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponse:
    """The project's `handler500`: middleware may lose the database too, such as when it stores a session."""
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return database_away(request)
    if request.path_info.startswith("/api/"):
        again = "Search the log of the web process for the id."
        return JsonResponse(body("internal", "Internal error of the MA.", "", again), status=500)
    lines = [
        _(
            "MA could not process this request. If you submitted a form, check whether the action "
            "was completed."
        ),
        _("Try again. If the error recurs, give the error ID to an administrator."),
        _("For site administrators: use the error ID to find the cause in ./ma logs web."),
    ]
    return plain_page(_("Something went wrong"), lines, status=500, onwards=("/", _("Open overview")))


@requires_csrf_token
def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The project's `handler403`: Django's own hands on the words of the exception alone."""
    shown = {"reason": str(exception), "missing": missing_permissions(exception)}
    return HttpResponse(render_to_string("403.html", shown, request), status=403)
