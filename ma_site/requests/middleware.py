"""Headers, a guard and a log line for every request."""

import time
from collections.abc import Callable

import structlog
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.cache import patch_vary_headers
from django.utils.log import log_response

from console.rest.errors import body
from console.ui.errors import new_request_id
from ma_site.requests.body_bounds import refusal
from ma_site.requests.plain import database_away
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
            problem = body("bad_url", "The URL contains a NUL character.", "url", "Leave it out.")
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
