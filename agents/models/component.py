"""What our own processes measured last of what the site stands on: the broker, Redis."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


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
        verbose_name = _("state of a component")
        verbose_name_plural = _("states of components")
        ordering = ("name",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.name} {self.state}"
