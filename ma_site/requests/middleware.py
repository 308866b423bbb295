"""Headers, a guard and a log line for every request; and what is refused by its head alone."""

import time
from collections.abc import Callable, Mapping
from importlib import import_module

import structlog
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.http.cookie import parse_cookie
from django.urls import Resolver404, resolve
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.log import log_response
from django.utils.translation import gettext as _

from agents.servers.admission import find_server_token
from console.client_address import client_address
from console.models import SERVER_PREFIX, ApiToken
from console.rest.body_limits import SMALL, limit_of
from console.rest.errors import body
from console.ui.amounts import size
from console.ui.errors import new_request_id
from ma_site.requests.plain import database_away, plain_page
from ma_site.requests.stack import with_room

Handler = Callable[[HttpRequest], HttpResponseBase]
log = structlog.get_logger(__name__)

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class SecurityHeaders:
    """Nothing inline, nothing from another host, nobody frames us."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    @with_room  # the outermost: templates nest deeply, and call much there
    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        if request.path_info.startswith("/api/"):
            # What a token may read is nobody else's: no cache on the way keeps it.
            response.headers.setdefault("Cache-Control", "no-store")
            patch_vary_headers(response, ["Authorization"])
        return response


class RequestId:
    """Each request has an id: in every line of its log, in what an error shows, and in X-Request-Id."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with new_request_id() as request_id:
            response = self.get_response(request)
            if (
                isinstance(response, HttpResponse) and response.status_code >= 400
            ):  # else Django does, when the id is no more
                log_response(
                    "%s: %s", response.reason_phrase, request.path, response=response, request=request
                )
        response.headers["X-Request-Id"] = request_id
        return response


class RefuseUnstorableUrls:
    """A NUL in a path or query would reach the database as an error of its driver."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\0" not in request.path_info and "%00" not in request.META.get("QUERY_STRING", ""):
            return self.get_response(request)
        if request.path_info.startswith("/api/"):
            problem = body("bad_url", "The URL contains a NUL character.", "url", "Remove it.")
            return JsonResponse(problem, status=400)
        return HttpResponse(
            "The URL contains a NUL character.", status=400, content_type="text/plain; charset=utf-8"
        )


class BodyBounds:
    """Before anything reads the body."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return refusal(request) or self.get_response(request)


class DatabaseAway:
    """503 where a view lost the database; `ma_site.requests.plain.server_error` has what fails outside of
    views."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        if not isinstance(exception, OperationalError | InterfaceError):
            return None
        log.error("database does not answer", path=request.path, reason=str(exception))
        return database_away(request)


class RequestLog:
    """One line per request that changed something, failed, or was slow."""

    SLOW_SECONDS = 1.0

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.monotonic()
        response = self.get_response(request)
        seconds = time.monotonic() - started
        if response.status_code >= 400 or seconds > self.SLOW_SECONDS:
            log.info(
                "request",
                method=request.method,
                path=request.path,
                status=response.status_code,
                seconds=round(seconds, 3),
            )
        return response


# -- what is refused by its head alone -----------------------------------------------------------------------
# Bodies that are too large, that have no length, or that a stranger sends.


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
                "The request has no Content-Length.",
                "Content-Length",
                "Send the body with Content-Length, not chunked.",
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
            "too_large",
            f"The body is larger than {limit} bytes.",
            "body",
            "Send less data per request.",
            limit=limit,
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
        _("This page accepts requests of up to %(size)s.") % {"size": size(limit)},
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
