"""A dead letter that was edited: the copy that goes instead of it."""

import uuid

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class EditState(models.TextChoices):
    PLANNED = "planned", _("planned")
    SENT = "sent", _("sent")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


class LetterEdit(models.Model):
    """`encoded` is the whole edited AMQP message, written before anything is sent. `id` is its duplicate id
    at the broker, so sending it twice makes one. SENT: the broker has the copy; only then the original may
    leave its queue. `diff` is what people are shown: a list of {what, before, after}, texts. Retention
    empties both as it does a body, and says so in `body_deleted_at`."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    item = models.OneToOneField(
        "dlq.ReplayItem", models.CASCADE, related_name="edit", verbose_name=_("replay item")
    )
    encoded = models.BinaryField()
    diff = models.JSONField(_("changes"), default=list)
    state = models.CharField(_("state"), max_length=10, choices=EditState.choices, default=EditState.PLANNED)
    planned_at = models.DateTimeField(_("planned"), default=timezone.now)
    sent_at = models.DateTimeField(_("sent"), null=True)
    done_at = models.DateTimeField(_("done"), null=True)
    problem = models.TextField(_("problem"), blank=True)
    body_deleted_at = models.DateTimeField(_("body deleted"), null=True)

    class Meta:
        verbose_name = _("edited letter")
        verbose_name_plural = _("edited letters")
        ordering = ("planned_at",)
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["planned_at", "id"],
                condition=models.Q(body_deleted_at=None),
                name="edits_by_planning",
            )
        ]

    def __str__(self) -> str:
        return str(self.id)
