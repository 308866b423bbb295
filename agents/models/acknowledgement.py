"""A delivery of the mode CLIENT that waits for its answer, or did."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.reasons import ReasonField
from contract.acknowledgements import LONGEST_ID, Action, EndState

LONGEST_JMS_ID = 255


class AcknowledgementState(models.TextChoices):
    """PENDING: answered, and its server has not said yet what came of it."""

    OPEN = "open", _("awaiting acknowledgement")
    PENDING = "pending", _("acknowledged, not yet applied")
    COMMITTED = EndState.COMMITTED.value, _("committed")
    ROLLED_BACK = EndState.ROLLED_BACK.value, _("rolled back")
    EXPIRED = EndState.EXPIRED.value, _("not acknowledged in time")
    LOST = EndState.LOST.value, _("lost")


class AcknowledgementAction(models.TextChoices):
    COMMIT = Action.COMMIT.value, _("commit")
    ROLLBACK = Action.ROLLBACK.value, _("roll back")


WAITING_STATES = (AcknowledgementState.OPEN, AcknowledgementState.PENDING)


class Acknowledgement(models.Model):
    """One row per acknowledgement id. It comes with the record that its delivery was left open, or with an
    answer to an id that is true and whose record is still under way: then `opened_at` is empty.
    `opened_record`, `ended_record`: the records that said it, so that each is stored once. `answered_from`:
    the token's name, or the server that passed it on. Every change of state is a conditional UPDATE; the
    first answer wins."""

    acknowledgement = models.CharField(_("acknowledgement id"), max_length=LONGEST_ID, unique=True)
    setting = models.ForeignKey(
        "agents.LaunchSetting",
        models.CASCADE,
        related_name="acknowledgements",
        verbose_name=_("launch setting"),
    )
    server = models.ForeignKey(
        "agents.Server", models.PROTECT, related_name="acknowledgements", verbose_name=_("server")
    )
    activation_uuid = models.UUIDField(_("activation"))
    epoch = models.PositiveBigIntegerField(_("epoch"))
    message_key = models.CharField(_("message key"), max_length=255, blank=True, default="")
    jms_message_id = models.CharField(_("JMS message id"), max_length=LONGEST_JMS_ID, blank=True, default="")
    attempt = models.PositiveIntegerField(_("attempt"), default=1)
    state = models.CharField(
        _("state"), max_length=12, choices=AcknowledgementState.choices, default=AcknowledgementState.OPEN
    )
    action = models.CharField(
        _("acknowledgement"), max_length=8, choices=AcknowledgementAction.choices, blank=True, default=""
    )
    reason = ReasonField(_("reason"))
    opened_at = models.DateTimeField(_("waiting since"), null=True)
    due_at = models.DateTimeField(_("acknowledgement due"), null=True)
    answered_at = models.DateTimeField(_("acknowledged"), null=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("acknowledged by"),
    )
    answered_from = ReasonField(_("acknowledged through"))
    ended_at = models.DateTimeField(_("ended"), null=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    opened_record = models.UUIDField(null=True, editable=False, unique=True)
    ended_record = models.UUIDField(null=True, editable=False, unique=True)

    class Meta:
        verbose_name = _("delivery awaiting acknowledgement")
        verbose_name_plural = _("deliveries awaiting acknowledgement")
        ordering = ("-created_at", "-id")
        permissions = [("can_answer", _("Can acknowledge deliveries"))]
        indexes = [
            models.Index(
                fields=["created_at", "id"], condition=Q(ended_at=None), name="open_acknowledgements"
            ),
            models.Index(
                fields=["setting", "created_at", "id"],
                condition=Q(ended_at=None),
                name="open_acks_of_setting",
            ),
            models.Index(fields=["jms_message_id", "setting"], name="acks_by_jms_id"),
            models.Index(
                fields=["server", "state", "id"], condition=Q(ended_at=None), name="open_acks_of_server"
            ),
            models.Index(
                fields=["-ended_at", "-id"], condition=Q(ended_at__isnull=False), name="acks_by_end"
            ),
            models.Index(
                fields=["setting", "-ended_at", "-id"],
                condition=Q(ended_at__isnull=False),
                name="acks_of_setting_by_end",
            ),
            models.Index(fields=["state", "-created_at", "-id"], name="acks_by_state"),
        ]

    def __str__(self) -> str:
        return self.acknowledgement
