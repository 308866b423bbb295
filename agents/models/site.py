"""Describes what the site knows of itself: who it is, what was measured of what it stands on, who failed to
sign in."""

import uuid

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

ONLY = 1


class SiteIdentity(models.Model):
    """One row, made with its table. `hearing_since`: all servers were silent before, so it was us who were
    away."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY)
    uuid = models.UUIDField(_("site id"), default=uuid.uuid4)
    hearing_since = models.DateTimeField(_("receiving heartbeats since"), null=True)

    class Meta:
        verbose_name = _("site identity")
        verbose_name_plural = _("site identity")
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=models.Q(id=ONLY), name="one_site_identity")]

    def __str__(self) -> str:
        return str(self.uuid)


# -- what our own processes measured last of what the site stands on: the broker, Redis ----------------------


class ComponentCondition(models.TextChoices):
    OK = "ok", _("ok")
    DOWN = "down", _("down")


class ComponentState(models.Model):
    """`since` is when it came into this state, `measured_at` when it was last seen in it: an old row says
    that nobody measures."""

    name = models.CharField(_("component"), max_length=60, unique=True)
    state = models.CharField(_("state"), max_length=20, choices=ComponentCondition.choices)
    since = models.DateTimeField(_("since"), default=timezone.now)
    measured_at = models.DateTimeField(_("measured"), default=timezone.now)
    details = models.JSONField(_("details"), default=dict)

    class Meta:
        verbose_name = _("component state")
        verbose_name_plural = _("component states")
        ordering = ("name",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.name} {self.state}"


# -- failed sign-ins, by address and by address and account; nobody else reads them --------------------------


class SignInCounter(models.Model):
    """`key` is `address:A`, `account:H` or `pair:A:H`, where H is a hash: what a stranger types is not
    kept."""

    key = models.CharField(max_length=100, unique=True)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(default=timezone.now, db_index=True)
    blocked_until = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.key
