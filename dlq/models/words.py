"""Building the index of words again: how far it is."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class WordRebuild(models.Model):
    """The letters up to `last` are put into the index once more; those up to `position` are. Later ones are
    put into it when they are stored. At most one is `open`."""

    open = models.BooleanField(_("open"), default=True)
    began_at = models.DateTimeField(_("began"), default=timezone.now)
    ended_at = models.DateTimeField(_("ended"), null=True)
    last = models.BigIntegerField(_("last letter"), default=0)
    position = models.BigIntegerField(_("letters up to"), default=0)
    letters = models.BigIntegerField(_("letters"), default=0)

    class Meta:
        verbose_name = _("rebuild of the index of words")
        verbose_name_plural = _("rebuilds of the index of words")
        ordering = ("-id",)
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["open"], condition=models.Q(open=True), name="one_open_word_rebuild"
            )
        ]

    def __str__(self) -> str:
        return f"#{self.pk}: {self.position} of {self.last}"
