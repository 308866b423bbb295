"""Bearer tokens of a server's KMA, `kma_…`; and addresses that take those of people, too."""

from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from agents.models import Server, ServerToken
from agents.servers.admission import find_server_token
from console.models import SERVER_PREFIX, ApiToken
from console.tokens.authentication import PersonTokenAuthentication, bearer, log_refused_token


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


class ServerTokenAuthentication(BaseAuthentication):
    """`request.user` is an AuthenticatedServer, `request.auth` its ServerToken."""

    def authenticate(self, request: Request) -> tuple[AuthenticatedServer, ServerToken] | None:
        secret = bearer(request)
        if not secret:
            return None
        if not secret.startswith(SERVER_PREFIX):
            raise AuthenticationFailed("This route requires a server token (kma_…).")
        token = find_server_token(secret, now=timezone.now())
        if token is None:
            log_refused_token(request, "server")
            raise AuthenticationFailed("This token is unknown or revoked.")
        return AuthenticatedServer(token.server), token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="kma"'


class AnyTokenAuthentication(BaseAuthentication):
    """Either of the two kinds, told apart by how it begins."""

    def authenticate(self, request: Request) -> tuple[Any, ApiToken | ServerToken] | None:
        if bearer(request).startswith(SERVER_PREFIX):
            return ServerTokenAuthentication().authenticate(request)
        return PersonTokenAuthentication().authenticate(request)

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="people and kma"'


class ServerTokenScheme(OpenApiAuthenticationExtension):
    """The name of these tokens in the OpenAPI description."""

    target_class = ServerTokenAuthentication
    name = "serverToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "kma_…, from ./ma manage create_server NAME",
        }


class AnyTokenScheme(OpenApiAuthenticationExtension):
    target_class = AnyTokenAuthentication
    name = "personOrServerToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "User token (ma_…) or server token (kma_…)",
        }


class IsServer(BasePermission):
    """Only a KMA with its own token."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(request.user, AuthenticatedServer)


def server_of(request: Request) -> Server:
    """The server whose token the request brought; the view must use ServerTokenAuthentication and
    IsServer."""
    principal: Any = request.user
    if not isinstance(principal, AuthenticatedServer):
        raise AuthenticationFailed("A server token is required.")
    return principal.server


def token_of(request: Request) -> ServerToken:
    """The server's token that the request brought, under the same conditions."""
    if not isinstance(request.auth, ServerToken):
        raise AuthenticationFailed("A server token is required.")
    return request.auth
