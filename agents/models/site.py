"""Who this site is, wherever its database goes: a copy that is put back is the same site."""

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

ONLY = 1


class SiteIdentity(models.Model):
    """One row, made with its table. `hearing_since`: all servers were silent before, so it was us who were
    away."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY)
    uuid = models.UUIDField(_("site id"), default=uuid.uuid4)
    hearing_since = models.DateTimeField(_("hears servers since"), null=True)

    class Meta:
        verbose_name = _("site identity")
        verbose_name_plural = _("site identity")
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=models.Q(id=ONLY), name="one_site_identity")]

    def __str__(self) -> str:
        return str(self.uuid)
