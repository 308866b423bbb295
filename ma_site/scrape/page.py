"""/metrics of the site: who may read it, and what is answered while the rows cannot be read.

Who may read it is never decided by the address that a request comes from: behind a proxy on this machine all
come from loopback. What was read is kept for a moment; while the database is away, or takes long, it is
answered with its age.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from console.models import ApiToken
from contract import __version__
from exposition.declared import CONTENT_TYPE, Sample, Samples, text
from exposition.listener import has_token
from ma_site.scrape import rows
from ma_site.scrape.declared import OF_SITE

log = structlog.get_logger(__name__)

# Names of settings and servers, and what they do.
NEEDED = ("agents.view_launchsetting", "agents.view_server")
PLAIN = "text/plain; charset=utf-8"
SAFE = ("GET", "HEAD")


@never_cache
@csrf_exempt
def with_slash(request: HttpRequest) -> HttpResponse:
    """Where a browser's habit put a slash: the pages of the site end with one."""
    answer = HttpResponse("/metrics\n", status=301, content_type=PLAIN)
    answer.headers["Location"] = reverse("metrics")
    return answer


@never_cache
@csrf_exempt
def metrics(request: HttpRequest) -> HttpResponse:
    """For the token of MA_METRICS_TOKEN, an API token or a session of a person with the permissions. The
    first needs no database: it is asked while that is away."""
    if request.method not in SAFE:
        plain = "Only GET and HEAD are answered.\n"
        return HttpResponse(plain, status=405, content_type=PLAIN, headers={"Allow": ", ".join(SAFE)})
    status = _refused(request)
    if status:
        answer = HttpResponse("A bearer token is needed.\n", status=status, content_type=PLAIN)
        if status == 401:
            answer.headers["WWW-Authenticate"] = "Bearer"
        return answer
    return HttpResponse(scraped(timezone.now()), content_type=CONTENT_TYPE)


def _refused(request: HttpRequest) -> int:
    """401 or 403; 0 for whoever may read."""
    header = request.headers.get("Authorization", "")
    if has_token(header, settings.MA_METRICS_TOKEN):
        return 0
    if header:
        kind, _space, secret = header.partition(" ")
        token = ApiToken.find(secret.strip(), now=timezone.now()) if kind.lower() == "bearer" else None
        if token is None:
            return 401
        return 0 if token.user.has_perms(NEEDED) else 403
    if not request.user.is_authenticated:
        return 401
    return 0 if request.user.is_staff and request.user.has_perms(NEEDED) else 403


# -- what is answered ----------------------------------------------------------------------------------------


# Two scrapers, or one that asks each second, cost no more than one.
FRESH = timedelta(seconds=5)
# Whoever comes while another one reads waits so long for it.
PATIENCE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`seconds`: how long reading it took."""

    at: datetime
    seconds: float
    samples: Sequence[Sample]


_reading = Lock()
_known: Snapshot | None = None


def scraped(now: datetime) -> bytes:
    snapshot, up = current(now)
    samples = Samples(OF_SITE)
    samples.add("ma_build_info", 1, __version__)
    samples.add("ma_database_up", up)
    if snapshot is not None:
        samples.add("ma_rows_age_seconds", snapshot.at)
        samples.add("ma_rows_read_seconds", snapshot.seconds)
        samples.found += snapshot.samples
    return text(OF_SITE, samples.found, now)


def current(now: datetime) -> tuple[Snapshot | None, bool]:
    """What is known, and whether the database answered; None: this process has read nothing yet."""
    global _known
    if not _reading.acquire(timeout=PATIENCE_SECONDS):
        return _known, False  # it does not answer the one who reads
    try:
        if _known is None or not timedelta(0) <= now - _known.at < FRESH:
            began = time.monotonic()
            samples = rows.read_rows(now)
            _known = Snapshot(now, time.monotonic() - began, samples)
        return _known, True
    except (DatabaseError, InterfaceError) as error:
        log.error("database does not answer", reason=str(error))
        return _known, False
    finally:
        _reading.release()


def forget() -> None:
    """As in a process that has just started."""
    global _known
    _known = None
