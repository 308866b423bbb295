"""Describes what is refused by its head alone: bodies that are too large, that have no length, or that a
stranger sends."""

from collections.abc import Mapping
from importlib import import_module

import structlog
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.db import DatabaseError, InterfaceError, close_old_connections
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.http.cookie import parse_cookie
from django.urls import Resolver404, resolve
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.servers.admission import find_server_token
from console.client_address import client_address
from console.models import SERVER_PREFIX, ApiToken
from console.rest.body_limits import SMALL, limit_of
from console.rest.errors import body
from console.ui.amounts import size
from ma_site.requests.plain import database_away, plain_page

log = structlog.get_logger(__name__)

# Set by the worker that reads requests, on one whose sender the database could not name. Whoever sends it
# gets a 503.
NOBODY_KNOWS = "MA-SENDER-UNKNOWN"


def limit_of_path(path: str) -> int:
    try:
        return limit_of(resolve(path).func)
    except Resolver404:
        return SMALL


def refusal(request: HttpRequest) -> HttpResponseBase | None:
    """The answer to a request whose body is not read: 411, 413 or 503. None where it may be read."""
    if NOBODY_KNOWS in request.headers:
        return database_away(request)
    if request.META.get("HTTP_TRANSFER_ENCODING"):
        return _answer(
            request,
            411,
            body(
                "length_required",
                "A body needs its length.",
                "Content-Length",
                "Send it whole, not in chunks.",
            ),
            _("Request length is missing"),
        )
    try:
        length = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return None
    if length <= SMALL or length <= (limit := limit_of_path(request.path_info)):
        return None
    return _answer(
        request,
        413,
        body(
            "too_large", f"The body is larger than {limit} bytes.", "body", "Send less at once.", limit=limit
        ),
        _("Request is too large"),
    )


def _answer(request: HttpRequest, code: int, problem: dict[str, object], title: str) -> HttpResponseBase:
    log.info("body refused", path=request.path, status=code, address=client_address(request))
    if request.path_info.startswith("/api/"):
        return JsonResponse(problem, status=code)
    limit = problem.get("limit")
    if not isinstance(limit, int):
        return plain_page(title, [_("Nothing was changed.")], status=code)
    lines = [
        _("This page accepts at most %(size)s.") % {"size": size(limit)},
        _("Nothing was changed. Go back and send less data at once."),
    ]
    return plain_page(title, lines, status=code)


def is_known_sender(headers: Mapping[str, str]) -> bool:
    """Returns whether a token or a session comes with the head of a request: for a thread, before a large
    body is read.

    Raises DatabaseError, InterfaceError: nobody knows then, and no answer may say that the sender is at
    fault."""
    close_old_connections()
    try:
        return _has_token(headers.get("AUTHORIZATION", "")) or _has_session(headers.get("COOKIE", ""))
    except (DatabaseError, InterfaceError) as error:
        log.error("database does not answer", reason=str(error))
        raise
    finally:
        close_old_connections()


def _has_token(authorization: str) -> bool:
    kind, _space, secret = authorization.strip().partition(" ")
    if kind.lower() != "bearer":
        return False
    find = find_server_token if secret.startswith(SERVER_PREFIX) else ApiToken.find
    return find(secret.strip(), now=timezone.now()) is not None


def _has_session(cookies: str) -> bool:
    key = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)
    if not key:
        return False
    return SESSION_KEY in import_module(settings.SESSION_ENGINE).SessionStore(key)
