"""Bearer tokens of people, `ma_…`; and what every kind of token needs of a request."""

from collections import Counter
from typing import Any

import structlog
from django.contrib.auth.models import User
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from console.client_address import client_address
from console.models import SERVER_PREFIX, ApiToken

log = structlog.get_logger(__name__)

_refused = Counter[str]()


def log_refused_token(request: Request, kind: str) -> None:
    """Never the token. `count`: those that this process has refused since it began."""
    _refused[kind] += 1
    log.warning("token refused", kind=kind, address=client_address(request._request), count=_refused[kind])


def bearer(request: Request) -> str:
    """The secret after `Bearer`, or empty when the request brings none. Raises AuthenticationFailed on
    nonsense."""
    words = get_authorization_header(request).split()
    if not words or words[0].lower() != b"bearer":
        return ""
    if len(words) != 2:
        raise AuthenticationFailed("The Authorization header must be: Bearer TOKEN.")
    return words[1].decode("latin-1")


class PersonTokenAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        secret = bearer(request)
        if not secret:
            return None
        if secret.startswith(SERVER_PREFIX):
            raise AuthenticationFailed("This is a server token; users and scripts need an API token (ma_…).")
        token = ApiToken.find(secret, now=timezone.now())
        if token is None:
            log_refused_token(request, "person")
            raise AuthenticationFailed("This token is unknown or revoked.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="people"'


class PersonTokenScheme(OpenApiAuthenticationExtension):
    """The name of these tokens in the OpenAPI description."""

    target_class = PersonTokenAuthentication
    name = "personToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "ma_…, from ./ma manage create_api_token USER",
        }
