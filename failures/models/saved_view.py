"""A filter of failure protocols under a name."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class SavedView(models.Model):
    """`query` is the filter's part of the address. A `shared` one is everybody's to use, its owner's to
    change."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="protocol_views", verbose_name=_("owner")
    )
    name = models.CharField(_("name"), max_length=100)
    query = models.TextField(_("filter"))
    shared = models.BooleanField(_("for everybody"), default=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now)

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        ordering = ("name",)
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="view_once_per_person")]

    def __str__(self) -> str:
        return self.name
