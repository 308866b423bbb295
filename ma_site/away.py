"""The answer while the database is away: 503, when to come again, and a page that is made without it."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.decorators.csrf import requires_csrf_token
from django.views.defaults import server_error as something_went_wrong

from agents.api.errors import body

RETRY_AFTER_SECONDS = 10


def database_away(request: HttpRequest) -> HttpResponse:
    """In the language of the reader's cookie or browser. Whoever reads a page sees it come back by itself."""
    if request.path_info.startswith("/api/"):
        detail = body("database_away", "The database did not do its work.", "", "Try again later.")
        answer: HttpResponse = JsonResponse(detail, status=503)
    else:
        seconds = RETRY_AFTER_SECONDS if request.method in ("GET", "HEAD") else 0
        answer = HttpResponse(render_to_string("503.html", {"seconds": seconds}), status=503)
    answer.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponse:
    """The project's `handler500`: middleware may lose the database too, such as when it stores a session."""
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return database_away(request)
    return something_went_wrong(request)
