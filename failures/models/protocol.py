"""A failure protocol is the record of one exception."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models import Activation, LaunchSetting, Run, Server
from contract.outcomes import RULES, Disposition, Outcome, dead_lettered_by_hand

OUTCOMES = {
    Outcome.RAISED: _("exception"),
    Outcome.TEMPORARY: _("temporarily unavailable"),
    Outcome.INVALID: _("invalid message"),
    Outcome.CHILD_DIED: _("process crashed"),
    Outcome.TIMED_OUT: _("timed out"),
    Outcome.ROLLED_BACK: _("rolled back"),
    Outcome.UNANSWERED: _("not acknowledged in time"),
    Outcome.RAISED_AFTER_COMMIT: _("exception after commit"),
    Outcome.KMA_DIED: _("KMA crashed"),
    Outcome.NOTED: _("recorded only"),
}
OUTCOME_CHOICES = [(outcome.value, label) for outcome, label in OUTCOMES.items()]
assert set(OUTCOMES) == {outcome for outcome, rule in RULES.items() if rule.protocol}

DISPOSITIONS = {
    Disposition.DEAD: _("dead-lettered message"),
    Disposition.EXCEPTION: _("sent to the exception destination"),
    Disposition.DISCARDED: _("discarded"),
}


# Begins the key that stands for one that was erased.
ERASED = "erased:"


class FailureProtocol(models.Model):
    """`id` and (`spool`, `number`) are the KMA's. A setting, activation, run or server that the MA does not
    know (any more) stays here by its name: `setting_key`, `activation_uuid` with `epoch`, `server_name`."""

    id = models.UUIDField(primary_key=True, editable=False)
    spool = models.UUIDField(_("spool"))
    number = models.BigIntegerField(_("record number in the spool"))
    setting = models.ForeignKey(
        LaunchSetting, models.SET_NULL, null=True, related_name="protocols", verbose_name=_("launch setting")
    )
    setting_key = models.CharField(_("setting key"), max_length=200)
    # Its database looks for no row here when an activation goes: without an index it would read all of them.
    activation = models.ForeignKey(
        Activation,
        models.SET_NULL,
        null=True,
        related_name="protocols",
        verbose_name=_("activation"),
        db_index=False,
        db_constraint=False,
    )
    activation_uuid = models.UUIDField(_("activation id"))
    run = models.ForeignKey(
        Run, models.SET_NULL, null=True, related_name="protocols", verbose_name=_("instance")
    )
    epoch = models.BigIntegerField(_("epoch"))
    server = models.ForeignKey(
        Server, models.SET_NULL, null=True, related_name="protocols", verbose_name=_("server"), db_index=False
    )
    server_name = models.CharField(_("server"), max_length=63)
    agent = models.CharField(_("agent"), max_length=200)
    agent_version = models.CharField(_("agent version"), max_length=200, blank=True)
    outcome = models.CharField(_("outcome"), max_length=30, choices=OUTCOME_CHOICES)
    exception_type = models.CharField(_("exception type"), max_length=255)
    exception_text = models.TextField(_("text"), blank=True)
    traceback = models.TextField(_("traceback"), blank=True)
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    place = models.CharField(_("location"), max_length=300, blank=True)
    temporary = models.BooleanField(_("temporary"), default=False)
    counted = models.BooleanField(_("counted by the breaker"), default=True)
    last_attempt = models.BooleanField(_("last attempt"), default=False)
    successes_before = models.BigIntegerField(_("successes since the previous failure"), default=0)
    message_key = models.CharField(_("message key"), max_length=255, blank=True)
    message_key_weak = models.BooleanField(_("message without an id"), default=False)
    queue = models.CharField(_("queue"), max_length=300, blank=True)
    destination = models.CharField(_("destination"), max_length=300, blank=True)
    attempt = models.BigIntegerField(_("attempt"), default=1)
    delivery_count = models.BigIntegerField(_("delivery count"), default=0)
    body_digest = models.CharField(_("body digest"), max_length=100, blank=True)
    body_size = models.BigIntegerField(_("body size, bytes"), default=0)
    properties = models.JSONField(_("properties"), default=dict)
    given_back = models.BooleanField(_("replayed before"), default=False)
    letter_queue = models.CharField(_("source dead-letter queue"), max_length=300, blank=True)
    letter_id = models.BigIntegerField(_("broker id in the DLQ"), null=True)
    process_id = models.BigIntegerField(_("process id"), default=0)
    duration_seconds = models.FloatField(_("duration, s"), default=0.0)
    traceparent = models.CharField(_("trace context"), max_length=200, blank=True)
    # The most that the process held until then, 0 where nobody could measure it.
    memory_peak_bytes = models.BigIntegerField(_("peak memory, bytes"), default=0)
    # What became of a message without an attempt left; empty: it comes back, or nobody knows.
    disposition = models.CharField(
        _("message outcome"),
        max_length=20,
        blank=True,
        default="",
        choices=[(disposition.value, label) for disposition, label in DISPOSITIONS.items()],
    )
    # The KMA's clock minus ours when it was sent, which may be long after it occurred; None: it did not say.
    clock_skew_seconds = models.FloatField(_("clock skew, s"), null=True)
    occurred_at = models.DateTimeField(_("occurred"))
    received_at = models.DateTimeField(_("received"), default=timezone.now)
    durable = models.BooleanField(_("durable"), default=True, db_default=True)
    # False: this server has no such run here, as after a database was put back from a copy
    # (`failures.intake.rows`).
    verified = models.BooleanField(_("verified"), default=True, db_default=True)

    class Meta:
        verbose_name = _("failure protocol")
        verbose_name_plural = _("failure protocols")
        ordering = ("-occurred_at", "-id")
        default_permissions = ("view",)
        permissions = [("can_export_protocols", _("Can export failure protocols"))]
        constraints = [models.UniqueConstraint(fields=["spool", "number"], name="protocol_once_per_spool")]
        indexes = [
            models.Index(fields=["activation_uuid", "occurred_at"], name="protocols_of_activation"),
            models.Index(fields=["message_key", "setting_key"], name="protocols_of_message"),
            models.Index(fields=["setting", "occurred_at"], name="protocols_of_setting"),
            models.Index(fields=["fingerprint", "occurred_at"], name="protocols_of_fingerprint"),
            models.Index(fields=["server", "occurred_at"], name="protocols_of_server"),
            models.Index(fields=["occurred_at", "id"], name="protocols_by_time"),
            # New ones come at its end, which costs little; the archive goes by it.
            models.Index(fields=["received_at"], name="protocols_by_receipt"),
            models.Index(
                fields=["occurred_at", "id"], condition=models.Q(activation=None), name="protocols_of_nobody"
            ),
            models.Index(
                fields=["occurred_at"],
                condition=models.Q(outcome=Outcome.KMA_DIED.value),
                name="protocols_kma_died",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.exception_type} · {self.setting_key} @ {self.server_name}"

    @property
    def by_hand(self) -> bool:
        """A person sent its message, which blocked an ordered subscription, to the dead letters."""
        return dead_lettered_by_hand(self.outcome, self.disposition, last_attempt=self.last_attempt)

    @property
    def is_erased(self) -> bool:
        """What it held of a person was erased (`retention.erasure.protocols`)."""
        return self.message_key.startswith(ERASED)

    @property
    def redelivered(self) -> bool:
        """Somebody had it before: true is certain, false is not."""
        return self.attempt > 1 or self.delivery_count > 0


# -- A message that had failed and was handled well later ----------------------------------------------------


class RecoveredMessage(models.Model):
    id = models.UUIDField(primary_key=True, editable=False)
    setting_key = models.CharField(_("setting key"), max_length=200)
    activation_uuid = models.UUIDField(_("activation id"))
    server_name = models.CharField(_("server"), max_length=63)
    message_key = models.CharField(_("message key"), max_length=255)
    attempt = models.BigIntegerField(_("attempt"))
    occurred_at = models.DateTimeField(_("occurred"))
    received_at = models.DateTimeField(_("received"), default=timezone.now)
    # False: this server has no such run here, as after a database was put back from a copy
    # (`failures.intake.rows`).
    verified = models.BooleanField(_("verified"), default=True, db_default=True)

    class Meta:
        verbose_name = _("recovered message")
        verbose_name_plural = _("recovered messages")
        ordering = ("-occurred_at", "-id")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["message_key", "setting_key"], name="recoveries_of_message"),
            models.Index(fields=["activation_uuid", "occurred_at"], name="recoveries_of_activation"),
            models.Index(fields=["occurred_at"], name="recoveries_by_time"),
            models.Index(fields=["received_at"], name="recoveries_by_receipt"),
        ]

    def __str__(self) -> str:
        return self.message_key


# -- the index of properties ---------------------------------------------------------------------------------


class PropertyBackfill(models.Model):
    """Protocols that were there before the index of properties are put into it; those up to `position`, in
    the order of their ids, are (`failures.protocols.properties`). At most one is `open`."""

    open = models.BooleanField(_("open"), default=True)
    began_at = models.DateTimeField(_("began"), default=timezone.now)
    ended_at = models.DateTimeField(_("ended"), null=True)
    position = models.UUIDField(null=True, editable=False)
    rows = models.BigIntegerField(_("failure protocols"), default=0)

    class Meta:
        verbose_name = _("property index backfill")
        verbose_name_plural = _("property index backfills")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["open"], condition=models.Q(open=True), name="one_open_property_backfill"
            )
        ]

    def __str__(self) -> str:
        return f"#{self.pk}: {self.rows}"
