"""Tokens of servers and of people: 256 random bits, stored as SHA-256, shown once."""

import hashlib
import secrets
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from agents.models import ApiToken, Server, ServerToken

SERVER_PREFIX = "kma_"
PERSON_PREFIX = "ma_"
VALID_AT_A_TIME = 2
# A token is used every 2 s: its last use is written once a minute.
USE_RESOLUTION = timedelta(minutes=1)


def digest_of(secret: str) -> str:
    """256 random bits need no salt and no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def new_server_secret() -> str:
    return SERVER_PREFIX + secrets.token_urlsafe(32)


@transaction.atomic
def issue_server_token(server: Server, *, now: datetime, secret: str = "") -> str:
    """A new secret for the server's KMA, or this one. The newest one before it stays valid, older ones are
    revoked."""
    Server.objects.select_for_update().get(pk=server.pk)
    secret = secret or new_server_secret()
    valid = ServerToken.objects.filter(server=server, revoked_at=None).order_by("-created_at", "-pk")
    outdated = [token.pk for token in valid[VALID_AT_A_TIME - 1 :]]
    ServerToken.objects.filter(pk__in=outdated).update(revoked_at=now)
    ServerToken.objects.create(server=server, digest=digest_of(secret), created_at=now)
    return secret


def issue_api_token(user: User, name: str, *, now: datetime) -> str:
    secret = PERSON_PREFIX + secrets.token_urlsafe(32)
    ApiToken.objects.create(user=user, name=name, digest=digest_of(secret), created_at=now)
    return secret


def find_server_token(secret: str, *, now: datetime) -> ServerToken | None:
    """The valid token behind a secret, its use noted."""
    token = (
        ServerToken.objects.select_related("server").filter(digest=digest_of(secret), revoked_at=None).first()
    )
    if token is not None and _use_is_news(token.last_used_at, now):
        ServerToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def find_api_token(secret: str, *, now: datetime) -> ApiToken | None:
    """The valid token behind a secret, of an active user, its use noted."""
    tokens = ApiToken.objects.select_related("user").filter(revoked_at=None, user__is_active=True)
    token = tokens.filter(digest=digest_of(secret)).first()
    if token is not None and _use_is_news(token.last_used_at, now):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def _use_is_news(last_used_at: datetime | None, now: datetime) -> bool:
    return last_used_at is None or now - last_used_at > USE_RESOLUTION
