"""/healthz/: what works, without a login and without secrets."""

from collections.abc import Callable
from datetime import datetime

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from agents.models import Server
from agents.models.server import lost_before
from agents.services.broker import management
from agents.services.expected import expected_servers
from agents.services.signs import seconds_since
from broker.errors import BrokerError
from ma_site.redis_check import ping

log = structlog.get_logger(__name__)

OK, DEGRADED, DOWN = "ok", "degraded", "down"

# Of beat's 5 s and the feed's own interval: past these something stands still.
LATE_SECONDS = {"beat": 30.0, "feed": 30.0}


@never_cache
def health(request: HttpRequest) -> JsonResponse:
    """200 while the site can do its work, 503 when it cannot; each part in one word."""
    now = timezone.now()
    try:
        servers: dict[str, float | None] = _servers(now)
        missing = _missing(now)
        signs = {name: _sign(name, now) for name in LATE_SECONDS}
        database = OK
    except (DatabaseError, InterfaceError) as error:
        log.error("database does not answer", reason=str(error))
        servers, missing, signs, database = {}, False, dict.fromkeys(LATE_SECONDS, "unknown"), DOWN
    parts = {"database": database, "redis": _word(_redis), "broker": _word(_broker), **signs}
    status = _status(parts, missing)
    return JsonResponse({"status": status, "parts": parts, "servers": servers}, status=503 if status == DOWN else 200)


def _status(parts: dict[str, str], missing: bool) -> str:
    if parts["database"] == DOWN:
        return DOWN
    return DEGRADED if missing or any(word != OK for word in parts.values()) else OK


def _missing(now: datetime) -> bool:
    """Whether a server that somebody counts on is silent or was never heard."""
    return expected_servers().exclude(last_seen_at__gt=lost_before(now)).exists()


def _servers(now: datetime) -> dict[str, float | None]:
    seen = Server.objects.values_list("name", "last_seen_at")
    return {name: None if at is None else round((now - at).total_seconds(), 1) for name, at in seen}


def _sign(name: str, now: datetime) -> str:
    seconds = seconds_since(name, now)
    return OK if seconds is not None and seconds <= LATE_SECONDS[name] else DOWN


def _word(check: Callable[[], None]) -> str:
    try:
        check()
    except (BrokerError, OSError) as error:
        log.info("health check failed", check=check.__name__, reason=str(error))
        return DOWN
    return OK


def _redis() -> None:
    ping(settings.MA_REDIS_URL)


def _broker() -> None:
    management().attribute("broker", "Started")
