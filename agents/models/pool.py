"""A named set of servers."""

from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models.server import Server

pool_name = RegexValidator(r"^[a-z0-9][a-z0-9-]{0,59}$", _("Small letters, digits and hyphens, at most 60."))


class Pool(models.Model):
    name = models.CharField(_("name"), max_length=60, unique=True, validators=[pool_name])
    description = models.TextField(_("description"), blank=True, default="")
    servers = models.ManyToManyField(Server, related_name="pools", blank=True, verbose_name=_("servers"))

    class Meta:
        verbose_name = _("pool")
        verbose_name_plural = _("pools")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
