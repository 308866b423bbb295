"""Rows of the audit. They are only ever added; where the site has chosen an age for them, retention deletes
older ones, and nothing else does."""

from typing import Any, NoReturn

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class AuditResult(models.TextChoices):
    DONE = "done", _("done")
    REFUSED = "refused", _("refused")
    FAILED = "failed", _("failed")


class AuditChanged(Exception):
    """A row of the audit is never changed, and deleted by its age alone (retention)."""


class _OnlyAdded(models.QuerySet["AuditEntry"]):
    def update(self, **kwargs: Any) -> NoReturn:
        raise AuditChanged("audit entries cannot be changed or deleted")

    def delete(self) -> NoReturn:
        raise AuditChanged("audit entries cannot be changed or deleted")


class AuditEntry(models.Model):
    """`operation` joins the entries of one operation (the id of its job, where it has one); a job's letters
    are its items. `letter` is set where it was done to one letter alone. `detail` never holds a body or a
    masked value."""

    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    by_name = models.CharField(_("by"), max_length=150, blank=True)
    action = models.CharField(_("action"), max_length=40)
    target = models.CharField(_("target"), max_length=300)
    detail = models.JSONField(_("detail"), default=dict)
    operation = models.UUIDField(_("operation"), null=True)
    setting_key = models.CharField(_("setting key"), max_length=61, blank=True)
    letter = models.BigIntegerField(_("dead-lettered message"), null=True)
    scope = models.CharField(_("scope"), max_length=20, blank=True)
    reason = models.TextField(_("reason"), blank=True)
    counts = models.JSONField(_("counts"), default=dict)
    result = models.CharField(
        _("result"), max_length=10, choices=AuditResult.choices, default=AuditResult.DONE
    )
    at = models.DateTimeField(_("time"), default=timezone.now)

    objects = _OnlyAdded.as_manager()

    class Meta:
        verbose_name = _("audit log entry")
        verbose_name_plural = _("audit log")
        ordering = ("-id",)
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["target", "-id"], name="audit_of_target"),
            models.Index(fields=["operation"], name="audit_of_operation"),
            models.Index(fields=["setting_key", "-id"], name="audit_of_setting"),
            models.Index(fields=["action", "-id"], name="audit_of_action"),
            models.Index(fields=["by_name", "-id"], name="audit_of_person"),
            models.Index(fields=["letter", "-id"], name="audit_of_letter"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Raises AuditChanged for a row that is stored."""
        if not self._state.adding:
            raise AuditChanged("audit entries cannot be changed or deleted")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AuditChanged("audit entries cannot be changed or deleted")
