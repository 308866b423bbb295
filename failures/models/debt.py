"""What a token has sent of late, so that it is kept to its limits whichever web process it talks to."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import ServerToken


class IntakeDebt(models.Model):
    """The instants at which the rows and the bytes that were taken are worked off at the rate of the
    limits."""

    token = models.OneToOneField(
        ServerToken,
        models.CASCADE,
        primary_key=True,
        related_name="intake_debt",
        verbose_name=_("server token"),
    )
    rows_until = models.DateTimeField(_("rows worked off at"))
    bytes_until = models.DateTimeField(_("bytes worked off at"))

    class Meta:
        verbose_name = _("intake of a token")
        verbose_name_plural = _("intakes of tokens")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.token_id} {self.rows_until} {self.bytes_until}"
