"""Every transition is a row: what changed, from what to what, why and by whom."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.reasons import ReasonField


class StateChange(models.Model):
    """`setting` is None for what happened to a server alone."""

    setting = models.ForeignKey(
        "agents.LaunchSetting",
        models.CASCADE,
        null=True,
        related_name="changes",
        verbose_name=_("launch setting"),
    )
    activation = models.ForeignKey("agents.Activation", models.CASCADE, null=True, related_name="changes")
    server = models.ForeignKey("agents.Server", models.CASCADE, null=True, related_name="changes")
    what = models.CharField(_("what"), max_length=30)
    old = models.CharField(_("from"), max_length=60, blank=True, default="")
    new = models.CharField(_("to"), max_length=60, blank=True, default="")
    reason = ReasonField(_("reason"))
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    at = models.DateTimeField(_("at"), default=timezone.now)

    class Meta:
        verbose_name = _("state change")
        verbose_name_plural = _("state changes")
        ordering = ("-at", "-id")
        indexes = [
            models.Index(fields=["setting", "-at"], name="changes_of_setting"),
            models.Index(fields=["-at", "-id"], name="changes_by_time"),
            models.Index(fields=["what", "-at", "-id"], name="changes_of_a_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.setting or self.server} {self.at:%Y-%m-%d %H:%M:%S}"
