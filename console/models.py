"""Rows of the console, one file per resource."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.audit.models import AuditEntry
from console.processes import NamedLock, ProcessHeartbeat
from console.tokens.models import ApiToken


class SavedFilter(models.Model):
    """`list` is the word of the list, `query` the filter's part of its address. A `shared` one is everybody's
    to use, its owner's to change."""

    list = models.CharField(_("list"), max_length=20)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_filters", verbose_name=_("owner")
    )
    name = models.CharField(_("name"), max_length=100)
    query = models.TextField(_("filter"))
    shared = models.BooleanField(_("for everybody"), default=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now)

    class Meta:
        verbose_name = _("saved filter")
        verbose_name_plural = _("saved filters")
        ordering = ("name",)
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["list", "owner", "name"], name="filter_once_per_list_and_person")
        ]

    def __str__(self) -> str:
        return self.name


__all__ = [
    "ApiToken",
    "AuditEntry",
    "NamedLock",
    "ProcessHeartbeat",
    "SavedFilter",
]
