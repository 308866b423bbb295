"""Alerts: what people must know, one per cause, with every transition; and where their bounds differ."""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class AlertState(models.TextChoices):
    """`calm`: its value is above the bound, not for long enough yet. Such a row is nobody's business and goes
    again."""

    CALM = "calm", pgettext_lazy("an alert", "pending")
    OPEN = "open", pgettext_lazy("an alert", "open")
    SNOOZED = "snoozed", pgettext_lazy("an alert", "snoozed")
    CLOSED = "closed", pgettext_lazy("an alert", "closed")


LIVE_ALERTS = (AlertState.OPEN, AlertState.SNOOZED)


class Severity(models.IntegerChoices):
    WARNING = 1, pgettext_lazy("an alert", "warning")
    BAD = 2, pgettext_lazy("an alert", "critical")


class Alert(models.Model):
    """One cause: a `kind` of `alerts.sources` and a `subject` within it. The fields from `above_since`
    to `repeat_at` are those of `alerts.rules.State`. `facts` is what its texts are made of. Without
    `pools` it concerns everybody. Who changes a row moves `revision` on, and only from the one that it
    saw."""

    kind = models.CharField(_("kind"), max_length=40)
    subject = models.CharField(_("subject"), max_length=300, blank=True)
    severity = models.PositiveSmallIntegerField(_("severity"), choices=Severity.choices)
    state = models.CharField(_("state"), max_length=10, choices=AlertState.choices)
    setting = models.ForeignKey(
        "agents.LaunchSetting",
        models.SET_NULL,
        null=True,
        related_name="alerts",
        verbose_name=_("launch setting"),
    )
    server = models.ForeignKey(
        "agents.Server", models.SET_NULL, null=True, related_name="alerts", verbose_name=_("server")
    )
    pools = models.ManyToManyField("agents.Pool", related_name="alerts", verbose_name=_("pools"))
    facts = models.JSONField(default=dict)
    value = models.FloatField(_("value"), default=0.0)
    opened_at = models.DateTimeField(pgettext_lazy("an alert", "opened"), null=True)
    above_since = models.DateTimeField(null=True)
    below_since = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(pgettext_lazy("an alert", "closed"), null=True)
    by_hand = models.BooleanField(_("closed manually"), default=False)
    held = models.BooleanField(default=False)
    snoozed_until = models.DateTimeField(_("snoozed until"), null=True)
    repeats = models.PositiveIntegerField(_("reminders"), default=0)
    repeat_at = models.DateTimeField(null=True)
    revision = models.PositiveIntegerField(default=1)

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        ordering = ("-opened_at", "-id")
        default_permissions = ("view",)
        permissions = [("can_handle_alerts", _("Can snooze and close alerts"))]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"],
                condition=~models.Q(state="closed"),
                name="one_open_alert_per_cause",
            )
        ]
        indexes = [
            # Whole ones: SQLite takes no partial index for a value that comes as a parameter.
            models.Index(fields=["state", "severity", "opened_at"], name="alerts_by_state"),
            models.Index(fields=["kind", "state"], name="alerts_of_kind_by_state"),
            models.Index(fields=["kind", "closed_at"], name="alerts_of_kind"),
            models.Index(fields=["-closed_at", "-id"], name="alerts_by_end"),
            models.Index(fields=["-opened_at", "-id"], name="alerts_by_start"),
            models.Index(fields=["kind"], condition=models.Q(held=True), name="alerts_held"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class AlertTransition(models.Model):
    """Holds what happened to an alert: a step of `alerts.rules`. `by` and `reason` of a person."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="transitions")
    step = models.CharField(_("step"), max_length=10)
    value = models.FloatField(_("value"), default=0.0)
    until = models.DateTimeField(_("until"), null=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    reason = models.TextField(_("reason"), blank=True, default="")
    at = models.DateTimeField(_("time"), default=timezone.now)

    class Meta:
        verbose_name = _("alert transition")
        verbose_name_plural = _("alert transitions")
        ordering = ("-id",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.alert_id} {self.step}"


class AlertRule(models.Model):
    """Bounds of a kind that differ from the built-in ones, for the whole site or for one pool. An empty
    field: as the rule of the site says, else as built in."""

    kind = models.CharField(_("kind"), max_length=40)
    pool = models.ForeignKey(
        "agents.Pool",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="alert_rules",
        verbose_name=_("pool"),
    )
    watched = models.BooleanField(_("monitored"), default=True)
    upper = models.FloatField(_("opens at"), null=True, blank=True)
    lower = models.FloatField(_("closes below"), null=True, blank=True)
    open_after_seconds = models.PositiveIntegerField(_("opens after, s"), null=True, blank=True)
    close_after_seconds = models.PositiveIntegerField(_("closes after, s"), null=True, blank=True)

    class Meta:
        verbose_name = _("alert rule")
        verbose_name_plural = _("alert rules")
        ordering = ("kind", "pool")
        constraints = [
            models.UniqueConstraint(fields=["kind", "pool"], name="one_alert_rule_per_pool"),
            models.UniqueConstraint(
                fields=["kind"], condition=models.Q(pool=None), name="one_alert_rule_of_the_site"
            ),
        ]

    # Of the kind, where somebody who knows the kinds has set it.
    label = ""

    def __str__(self) -> str:
        return f"{self.label or self.kind} {self.pool or ''}".strip()

    def clean(self) -> None:
        same = AlertRule.objects.filter(kind=self.kind, pool=self.pool_id).exclude(pk=self.pk)
        if same.exists():
            raise ValidationError(
                _("Rule not saved: a rule for this kind and pool already exists. Edit that rule instead.")
            )
        if self.upper is not None and self.lower is not None and self.lower > self.upper:
            raise ValidationError(
                {
                    "lower": _(
                        "Rule not saved: the closing threshold is above the opening threshold. Lower the "
                        "closing threshold."
                    )
                }
            )


class AlertEvaluation(models.Model):
    """Says when a kind of alerts was evaluated last, to its end."""

    kind = models.CharField(_("kind"), max_length=40, unique=True)
    at = models.DateTimeField(_("time"))

    class Meta:
        verbose_name = _("alert evaluation")
        verbose_name_plural = _("alert evaluations")
        ordering = ("kind",)
        default_permissions = ()

    def __str__(self) -> str:
        return self.kind
