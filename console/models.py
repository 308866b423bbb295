"""Rows of the console: tokens of people, with what tokens of all kinds share (256 random bits, stored as
SHA-256, shown once), and filters of lists under a name. Its features hold the others."""

import hashlib
from datetime import datetime, timedelta
from secrets import token_urlsafe

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.audit.models import AuditEntry
from console.leases.models import Lease
from console.processes import NamedLock, ProcessHeartbeat

SERVER_PREFIX = "kma_"
PERSON_PREFIX = "ma_"
# A token is used every 2 s: its last use is written once a minute.
USE_RESOLUTION = timedelta(minutes=1)


def new_secret(prefix: str) -> str:
    return prefix + token_urlsafe(32)


def digest_of(secret: str) -> str:
    """256 random bits need no salt and no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def use_is_news(last_used_at: datetime | None, now: datetime) -> bool:
    return last_used_at is None or now - last_used_at > USE_RESOLUTION


class ApiToken(models.Model):
    """Acts with the permissions of its user."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens", verbose_name=_("user")
    )
    name = models.CharField(_("name"), max_length=100, blank=True, default="")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(_("last used"), null=True, editable=False)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ("user", "-created_at")

    def __str__(self) -> str:
        return self.name or f"#{self.pk}"

    @classmethod
    def issue(cls, user: User, name: str, *, now: datetime) -> str:
        """A new secret."""
        secret = new_secret(PERSON_PREFIX)
        cls.objects.create(user=user, name=name, digest=digest_of(secret), created_at=now)
        return secret

    @classmethod
    def find(cls, secret: str, *, now: datetime) -> "ApiToken | None":
        """The valid token behind a secret, of an active user, its use noted."""
        tokens = cls.objects.select_related("user").filter(revoked_at=None, user__is_active=True)
        token = tokens.filter(digest=digest_of(secret)).first()
        if token is not None and use_is_news(token.last_used_at, now):
            cls.objects.filter(pk=token.pk).update(last_used_at=now)
        return token


class SavedFilter(models.Model):
    """`list` is the word of the list, `query` the filter's part of its address. A `shared` one is everybody's
    to use, its owner's to change."""

    list = models.CharField(_("list"), max_length=20)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_filters", verbose_name=_("owner")
    )
    name = models.CharField(_("name"), max_length=100)
    query = models.TextField(_("filter"))
    shared = models.BooleanField(_("shared with everyone"), default=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now)

    class Meta:
        verbose_name = _("saved filter")
        verbose_name_plural = _("saved filters")
        ordering = ("name",)
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["list", "owner", "name"], name="filter_once_per_list_and_person")
        ]

    def __str__(self) -> str:
        return self.name


__all__ = [
    "ApiToken",
    "AuditEntry",
    "Lease",
    "NamedLock",
    "ProcessHeartbeat",
    "SavedFilter",
]
