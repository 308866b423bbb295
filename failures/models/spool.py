"""How far each spool of a KMA has been stored, and what of it could not be."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models import Server


class SpoolMark(models.Model):
    """Records up to `stored_up_to` were stored or refused: one that comes again is known, also after retention."""

    spool = models.UUIDField(primary_key=True, editable=False)
    server = models.ForeignKey(Server, models.CASCADE, related_name="spools", verbose_name=_("server"))
    stored_up_to = models.BigIntegerField(_("stored up to"), default=0)
    updated_at = models.DateTimeField(_("updated"), default=timezone.now)

    class Meta:
        verbose_name = _("spool")
        verbose_name_plural = _("spools")
        ordering = ("server", "spool")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.server_id} {self.spool} ≤ {self.stored_up_to}"


class RefusedRecord(models.Model):
    """A record that could not be stored as what it says it is: its text is kept for a person, up to a bound."""

    spool = models.UUIDField(_("spool"))
    number = models.BigIntegerField(_("number in the spool"))
    record_id = models.UUIDField(_("record id"), null=True)
    server = models.ForeignKey(Server, models.CASCADE, related_name="refused_records", verbose_name=_("server"))
    kind = models.CharField(_("kind"), max_length=60, blank=True)
    reason = models.TextField(_("reason"))
    content = models.TextField(_("content"), blank=True)
    received_at = models.DateTimeField(_("received"), default=timezone.now)

    class Meta:
        verbose_name = _("refused record")
        verbose_name_plural = _("refused records")
        ordering = ("-received_at", "-id")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["spool", "number"], name="refused_once_per_spool")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"
