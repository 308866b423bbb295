"""Describes how far each spool of a KMA has been stored, and what of it could not be."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models import Server, ServerToken


class SpoolMark(models.Model):
    """Records up to `stored_up_to` were stored or refused: one that comes again is known, also after
    retention."""

    spool = models.UUIDField(primary_key=True, editable=False)
    server = models.ForeignKey(Server, models.CASCADE, related_name="spools", verbose_name=_("server"))
    stored_up_to = models.BigIntegerField(_("stored up to record number"), default=0)
    updated_at = models.DateTimeField(_("updated"), default=timezone.now)
    # Of a newer or a foreign KMA: ignored and counted; the names are those of the last batch that had any.
    unknown_fields = models.BigIntegerField(_("unknown fields"), default=0)
    unknown_names = models.JSONField(_("names of unknown fields"), default=list)
    # Numbers that were passed over: a spool sends in order, so these records do not come any more, and one
    # that does is known like one that retention has deleted. `gaps` are [first, last] of the newest: see
    # `failures.intake.gaps`.
    never_came = models.BigIntegerField(_("missing records"), default=0)
    gaps = models.JSONField(_("missing record numbers"), default=list)
    passed_at = models.DateTimeField(_("last skipped"), null=True, editable=False)
    # The last time that records which had been stored were not here any more: see `failures.intake.spools`.
    lost_at = models.DateTimeField(_("requested again"), null=True, editable=False)
    lost_from = models.BigIntegerField(_("from number"), null=True, editable=False)
    lost_to = models.BigIntegerField(_("to number"), null=True, editable=False)
    # Records that were set aside, those of which no text is kept too, and when the last one was.
    set_aside = models.BigIntegerField(_("set aside"), default=0, db_default=0)
    set_aside_at = models.DateTimeField(_("last set aside"), null=True, editable=False)

    class Meta:
        verbose_name = _("spool")
        verbose_name_plural = _("spools")
        ordering = ("server", "spool")
        default_permissions = ("view",)
        indexes = [
            models.Index(
                fields=["-set_aside_at"], condition=models.Q(set_aside__gt=0), name="spools_set_aside"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server_id} {self.spool} ≤ {self.stored_up_to}"

    @property
    def is_whole_again(self) -> bool:
        """What was lost last has come, as far as it will."""
        return self.lost_to is None or self.stored_up_to >= self.lost_to


class SetAside(models.TextChoices):
    """Says why a record that is as agreed was not stored: see `failures.intake.rows`."""

    ANOTHER_SERVER = "another_server", _("about an instance on another server")
    NEVER_RAN = "never_ran", _("replay outcome from a server that never ran the setting")


class RefusedRecord(models.Model):
    """A record that could not be stored as what it says it is: its text is kept for a person, up to a bound.
    `code` is empty where `reason` says what of it is not as agreed."""

    spool = models.UUIDField(_("spool"))
    number = models.BigIntegerField(_("record number in the spool"))
    record_id = models.UUIDField(_("record id"), null=True)
    server = models.ForeignKey(
        Server, models.CASCADE, related_name="refused_records", verbose_name=_("server")
    )
    kind = models.CharField(_("kind"), max_length=60, blank=True)
    reason = models.TextField(_("reason"))
    code = models.CharField(
        _("code"), max_length=20, choices=SetAside.choices, blank=True, default="", db_default=""
    )
    content = models.TextField(_("content"), blank=True)
    received_at = models.DateTimeField(_("received"), default=timezone.now)

    class Meta:
        verbose_name = _("refused record")
        verbose_name_plural = _("refused records")
        ordering = ("-received_at", "-id")
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["spool", "number"], name="refused_once_per_spool")]
        indexes = [
            models.Index(fields=["-received_at", "server"], name="refused_by_time"),
            models.Index(fields=["server", "-received_at", "-id"], name="refused_of_server"),
            models.Index(fields=["server"], condition=~models.Q(code=""), name="set_aside_of_server"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.code or self.reason}"


class RecordConflict(models.Model):
    """A record that came under an id or a number of its spool that was stored with other content before. What
    came first stays; the text of this one is kept for a person, up to a bound."""

    record_id = models.UUIDField(_("record id"))
    spool = models.UUIDField(_("spool"))
    number = models.BigIntegerField(_("record number in the spool"))
    server = models.ForeignKey(
        Server, models.CASCADE, related_name="record_conflicts", verbose_name=_("server")
    )
    kind = models.CharField(_("kind"), max_length=60, blank=True)
    # The record that has the id or the number; of a closing record the activation whose run another one
    # closed.
    stored_id = models.UUIDField(_("id of the stored record"), db_index=True)
    content = models.TextField(_("content"), blank=True)
    received_at = models.DateTimeField(_("received"), default=timezone.now)

    class Meta:
        verbose_name = _("conflicting record")
        verbose_name_plural = _("conflicting records")
        ordering = ("-received_at", "-id")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["spool", "number", "record_id"], name="conflict_once_per_spool"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.record_id}"


# -- usage of a token, so that its limits hold in every web process ------------------------------------------


class IntakeDebt(models.Model):
    """The instants at which the rows and the bytes that were taken are worked off at the rate of the
    limits."""

    token = models.OneToOneField(
        ServerToken,
        models.CASCADE,
        primary_key=True,
        related_name="intake_debt",
        verbose_name=_("server token"),
    )
    rows_until = models.DateTimeField(_("row limit resets at"))
    bytes_until = models.DateTimeField(_("byte limit resets at"))

    class Meta:
        verbose_name = _("intake limit per token")
        verbose_name_plural = _("intake limits per token")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.token_id} {self.rows_until} {self.bytes_until}"
