"""Who did what to dead letters. Rows are only ever added."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class AuditEntry(models.Model):
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by"))
    by_name = models.CharField(_("by"), max_length=150, blank=True)
    action = models.CharField(_("action"), max_length=40)
    target = models.CharField(_("target"), max_length=300)
    detail = models.JSONField(_("detail"), default=dict)
    at = models.DateTimeField(_("at"), default=timezone.now)

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit")
        ordering = ("-id",)
        default_permissions = ("view",)
        indexes = [models.Index(fields=["target", "-id"], name="audit_of_target")]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"
