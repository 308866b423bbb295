"""Signs of life of our own processes (beat, feed), for the health page."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class ProcessBeat(models.Model):
    name = models.CharField(_("process"), max_length=60, unique=True)
    at = models.DateTimeField(_("last sign of life"), default=timezone.now)

    class Meta:
        verbose_name = _("process beat")
        verbose_name_plural = _("process beats")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
