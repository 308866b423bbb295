"""What the index knows of each dead-letter queue as a whole, and the foreign ones that an administrator
named."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.reasons import ReasonField


class LetterQueue(models.Model):
    """One row per queue that is looked after. `broker_count` and `indexed` are of the same moment,
    `counted_at`. `differs_since` is when they were first seen to differ with an empty feed; a walk is due
    when they still do at the next look. A walk in progress: `walk_started_at` is set and `walk_seen` grows;
    `walked_at` is the last whole one."""

    queue = models.CharField(_("queue"), max_length=300, unique=True)
    address = models.CharField(_("address"), max_length=300, blank=True)
    foreign = models.BooleanField(_("foreign"), default=False)
    note = models.CharField(_("note"), max_length=300, blank=True)
    added_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("added by")
    )
    added_at = models.DateTimeField(_("added"), default=timezone.now)
    broker_count = models.BigIntegerField(_("letters at the broker"), null=True)
    indexed = models.BigIntegerField(_("letters in the index"), null=True)
    counted_at = models.DateTimeField(_("counted"), null=True)
    differs_since = models.DateTimeField(_("differs since"), null=True)
    walk_started_at = models.DateTimeField(_("walk began"), null=True)
    walk_seen = models.BigIntegerField(_("letters seen by the walk"), default=0)
    walked_at = models.DateTimeField(_("walked whole"), null=True)
    problem = ReasonField(_("problem"))

    class Meta:
        verbose_name = _("dead-letter queue")
        verbose_name_plural = _("dead-letter queues")
        ordering = ("queue",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.queue
