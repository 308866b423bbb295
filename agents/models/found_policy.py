"""The settings of an address as the broker was last seen to have them."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class FoundPolicy(models.Model):
    """Of each destination that has settings, and of the dead-letter address. `found` by the names of the
    broker's JSON; `differing` are the names whose values are not the wanted ones, `differs_since` None while
    there are none."""

    address = models.CharField(_("address"), max_length=200, unique=True)
    found = models.JSONField(default=dict)
    differing = models.JSONField(default=list)
    seen_at = models.DateTimeField(default=timezone.now)
    differs_since = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("policy found on the broker")
        verbose_name_plural = _("policies found on the broker")

    def __str__(self) -> str:
        return self.address
