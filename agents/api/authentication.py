"""Bearer tokens: `ma_…` of a person, `kma_…` of a server's KMA."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import structlog
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from agents.client_address import client_address
from agents.models import ApiToken, Server, ServerToken
from agents.services import tokens

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AuthenticatedServer:
    """`request.user` of a KMA's request. It has no permissions of a person."""

    server: Server
    is_authenticated: bool = True
    is_active: bool = True

    @property
    def pk(self) -> int:
        return self.server.pk

    def has_perms(self, permissions: Any, obj: Any = None) -> bool:
        return False


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
        if secret.startswith(tokens.SERVER_PREFIX):
            raise AuthenticationFailed("This is a server's token; people and scripts use theirs (ma_…).")
        token = tokens.find_api_token(secret, now=timezone.now())
        if token is None:
            log_refused_token(request, "person")
            raise AuthenticationFailed("This token is unknown or revoked.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="people"'


class ServerTokenAuthentication(BaseAuthentication):
    """`request.user` is an AuthenticatedServer, `request.auth` its ServerToken."""

    def authenticate(self, request: Request) -> tuple[AuthenticatedServer, ServerToken] | None:
        secret = bearer(request)
        if not secret:
            return None
        if not secret.startswith(tokens.SERVER_PREFIX):
            raise AuthenticationFailed("This address is for KMAs: it takes a server's token (kma_…).")
        token = tokens.find_server_token(secret, now=timezone.now())
        if token is None:
            log_refused_token(request, "server")
            raise AuthenticationFailed("This token is unknown or revoked.")
        return AuthenticatedServer(token.server), token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="kma"'


class AnyTokenAuthentication(BaseAuthentication):
    """Either of the two kinds, told apart by how it begins."""

    def authenticate(self, request: Request) -> tuple[Any, ApiToken | ServerToken] | None:
        if bearer(request).startswith(tokens.SERVER_PREFIX):
            return ServerTokenAuthentication().authenticate(request)
        return PersonTokenAuthentication().authenticate(request)

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="people and kma"'


class IsServer(BasePermission):
    """Only a KMA with its own token."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(request.user, AuthenticatedServer)


def server_of(request: Request) -> Server:
    """The server whose token the request brought; the view must use ServerTokenAuthentication and
    IsServer."""
    principal: Any = request.user
    if not isinstance(principal, AuthenticatedServer):
        raise AuthenticationFailed("A server's token is needed.")
    return principal.server


def token_of(request: Request) -> ServerToken:
    """The server's token that the request brought, under the same conditions."""
    if not isinstance(request.auth, ServerToken):
        raise AuthenticationFailed("A server's token is needed.")
    return request.auth
