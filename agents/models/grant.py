"""What a group of people may do with the settings of one pool, beyond what their permissions allow
everywhere."""

from django.contrib.auth.models import Group
from django.db import models
from django.utils.translation import gettext_lazy as _


class PoolGrant(models.Model):
    pool = models.ForeignKey("agents.Pool", models.CASCADE, related_name="grants", verbose_name=_("pool"))
    group = models.ForeignKey(Group, models.CASCADE, related_name="+", verbose_name=_("group of people"))
    may_edit = models.BooleanField(_("edit"), default=False)
    may_enable = models.BooleanField(_("enable"), default=False)
    may_disable = models.BooleanField(_("disable"), default=False)
    may_run = models.BooleanField(_("run now"), default=False)
    may_stop = models.BooleanField(_("stop"), default=False)
    may_answer = models.BooleanField(_("answer deliveries that wait"), default=False)
    may_see_letters = models.BooleanField(_("see dead letters"), default=False)
    may_see_masked = models.BooleanField(_("see masked fields"), default=False)
    may_give_back = models.BooleanField(_("give back"), default=False)
    may_edit_letters = models.BooleanField(_("edit and give back"), default=False)
    may_redirect = models.BooleanField(_("redirect"), default=False)
    may_discard = models.BooleanField(_("discard"), default=False)
    may_handle_waiting = models.BooleanField(_("handle waiting messages"), default=False)
    may_import_letters = models.BooleanField(_("import messages"), default=False)

    class Meta:
        verbose_name = _("right in a pool")
        verbose_name_plural = _("rights in pools")
        ordering = ("pool", "group")
        constraints = [models.UniqueConstraint(fields=["pool", "group"], name="one_grant_per_pool_and_group")]

    def __str__(self) -> str:
        return f"{self.group} @ {self.pool}"
