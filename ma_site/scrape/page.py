"""/metrics of the site. Who may read it is never decided by the address that a request comes from: behind a
proxy on this machine all come from loopback."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.models import ApiToken
from exposition.declared import CONTENT_TYPE
from exposition.listener import has_token
from ma_site.scrape.rows import scraped

# Names of settings and servers, and what they do.
NEEDED = ("agents.view_launchsetting", "agents.view_server")
PLAIN = "text/plain; charset=utf-8"


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """For the token of MA_METRICS_TOKEN, an API token or a session of a person with the permissions. The
    first needs no database: it is asked while that is away."""
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
