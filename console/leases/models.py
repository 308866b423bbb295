"""Rows of the leases: one process of several hosts does what its name says."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Lease(models.Model):
    """The truth about who holds it. `holder` is new with each taking, `process` says which process of which
    machine it is. `until` is by the clock of the database and moves with each renewal: one who waits takes
    the lease when it has stood still. `standby_at`: when somebody waited for it last."""

    name = models.CharField(_("name"), max_length=20, unique=True)
    holder = models.UUIDField(_("holder"), null=True)
    host = models.CharField(_("host"), max_length=100, blank=True)
    process = models.CharField(_("process"), max_length=200, blank=True)
    until = models.DateTimeField(_("held until"))
    taken_at = models.DateTimeField(_("taken at"), null=True)
    standby_host = models.CharField(_("standby host"), max_length=100, blank=True)
    standby_at = models.DateTimeField(_("standby seen at"), null=True)

    class Meta:
        verbose_name = _("lease")
        verbose_name_plural = _("leases")
        ordering = ("name",)
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
