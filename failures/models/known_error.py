"""The book of known errors: what people know of a fingerprint, for whoever meets it the next time."""

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from failures.models.tally import Fingerprint


class Advice(models.TextChoices):
    """Holds what to do when it appears again."""

    NONE = "", _("not specified")
    WAIT = "wait", _("wait: the error resolves on its own")
    GIVE_BACK = "give_back", _("fix the cause, then replay")
    DISCARD = "discard", _("discard the messages")
    EDIT = "edit", _("edit the messages, then replay")
    CALL = "call", _("contact the owner")


class KnownError(models.Model):
    """What is known of a fingerprint and of those merged into it. `fixed_at`: from then on it should not come
    again. `returned_at`: the last failure since that was not of an agent older than `fixed_in`
    (`failures.error_groups.regressions`)."""

    fingerprint = models.OneToOneField(
        Fingerprint, models.CASCADE, primary_key=True, related_name="known", verbose_name=_("fingerprint")
    )
    cause = models.TextField(_("cause"), blank=True, default="")
    runbook_url = models.URLField(_("runbook"), max_length=500, blank=True, default="")
    owner = models.CharField(_("owner"), max_length=200, blank=True, default="")
    ticket = models.CharField(_("ticket"), max_length=200, blank=True, default="")
    advice = models.CharField(
        _("recommended action"), max_length=10, choices=Advice.choices, blank=True, default=""
    )
    fixed_at = models.DateTimeField(_("fixed"), null=True)
    fixed_in = models.CharField(_("fixed in version"), max_length=200, blank=True, default="")
    returned_at = models.DateTimeField(_("returned"), null=True, editable=False)
    changed_at = models.DateTimeField(_("changed"), default=timezone.now)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("changed by")
    )

    class Meta:
        verbose_name = _("known error")
        verbose_name_plural = _("known errors")
        default_permissions = ("view",)
        permissions = [("can_know_errors", _("Can edit known errors"))]

    def __str__(self) -> str:
        return f"{self.fingerprint_id}: {self.ticket or self.cause[:40]}"

    @property
    def returned(self) -> bool:
        """Returns whether it, or one merged into it, came again after a person said that it is fixed."""
        return self.returned_at is not None


class FingerprintAct(models.TextChoices):
    WROTE = "wrote", _("edited the notes")
    FIXED = "fixed", _("marked as fixed")
    REOPENED = "reopened", _("reopened it")
    MERGED = "merged", _("merged")
    SPLIT = "split", _("split off")


class FingerprintChange(models.Model):
    """Holds what a person did to a fingerprint: only grows."""

    fingerprint = models.ForeignKey(
        Fingerprint, models.CASCADE, related_name="changes", verbose_name=_("fingerprint")
    )
    what = models.CharField(_("what"), max_length=10, choices=FingerprintAct.choices)
    # Fields and their values before and after; of a merge or a split the other fingerprint.
    detail = models.JSONField(_("detail"), default=dict)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    by_name = models.CharField(_("by"), max_length=150, blank=True)
    at = models.DateTimeField(_("time"), default=timezone.now)

    class Meta:
        verbose_name = _("error group change")
        verbose_name_plural = _("error group changes")
        ordering = ("-id",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.fingerprint_id}: {self.what}"
