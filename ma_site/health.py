"""/healthz/: what works. Rows only: a broker that hangs holds up nobody who asks."""

import hashlib
import hmac
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from agents.liveness import expected_servers
from agents.models import ComponentState, Server
from console.models import ApiToken
from console.processes import seconds_since

log = structlog.get_logger(__name__)

OK, DEGRADED, DOWN, STALE, UNKNOWN = "ok", "degraded", "down", "stale", "unknown"
VIEW = "agents.view_server"

# Of beat's 5 s and the feed's own interval: past these something stands still.
LATE_SECONDS = {"beat": 30.0, "feed": 30.0}
# A worker measures every 5 s: an older row tells of nobody who measures, not of the component.
MEASURED = ("redis", "broker")
MEASURED_WITHIN = timedelta(seconds=30)


@never_cache
def health(request: HttpRequest) -> JsonResponse:
    """200 while the site can do its work, 503 when it cannot; each part in one word. Names and ages of
    servers are for those who may see servers."""
    now = timezone.now()
    try:
        missing = _missing(now)
        parts = {"database": OK, **_measured(now), **{name: _sign(name, now) for name in LATE_SECONDS}}
        more = {"servers": _servers(now)} if may_see_details(request) else {}
    except (DatabaseError, InterfaceError) as error:
        log.error("database does not answer", reason=str(error))
        missing, more = False, {}
        parts = {"database": DOWN, **dict.fromkeys((*MEASURED, *LATE_SECONDS), UNKNOWN)}
    status = _status(parts, missing)
    return JsonResponse({"status": status, "parts": parts, **more}, status=503 if status == DOWN else 200)


def may_see_details(request: HttpRequest) -> bool:
    """Staff that is signed in, a person's token with the right, or `./ma` on this machine."""
    kind, _space, secret = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        if hmac.compare_digest(secret.encode(), installation_token(settings.SECRET_KEY).encode()):
            return True
        token = ApiToken.find(secret, now=timezone.now())
        return token is not None and token.user.has_perm(VIEW)
    user = request.user
    return bool(user.is_active and user.is_staff and user.has_perm(VIEW))


def installation_token(secret_key: str) -> str:
    """Makes a token for whoever can read the key of the site anyway; it opens nothing else. The same in
    `deploy.processes.readiness`."""
    return hmac.new(secret_key.encode(), b"ma.health", hashlib.sha256).hexdigest()


def _status(parts: dict[str, str], missing: bool) -> str:
    if parts["database"] == DOWN:
        return DOWN
    return DEGRADED if missing or any(word != OK for word in parts.values()) else OK


def _missing(now: datetime) -> bool:
    """Returns whether a server that somebody counts on is silent, was never heard, or is heard and does not
    obey."""
    return not all(server.obeys(now) for server in expected_servers())


def _servers(now: datetime) -> dict[str, float | None]:
    seen = Server.objects.values_list("name", "last_seen_at")
    return {name: None if at is None else round((now - at).total_seconds(), 1) for name, at in seen}


def _measured(now: datetime) -> dict[str, str]:
    rows = {row.name: row for row in ComponentState.objects.filter(name__in=MEASURED)}
    return {name: _word(rows.get(name), now) for name in MEASURED}


def _word(row: ComponentState | None, now: datetime) -> str:
    if row is None:
        return UNKNOWN
    return row.state if now - row.measured_at <= MEASURED_WITHIN else STALE


def _sign(name: str, now: datetime) -> str:
    seconds = seconds_since(name, now)
    return OK if seconds is not None and seconds <= LATE_SECONDS[name] else DOWN
