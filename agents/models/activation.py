"""An activation is one start of a setting; a run is that activation on one server, with an epoch of its own.
Every transition of them is a row."""

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models.parameters import ReadableJSONField
from console.reasons import ReasonField, ReasonsField


class ActivationState(models.TextChoices):
    PENDING = "pending", _("waiting for a server")
    RUNNING = "running", _("running")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    INTERRUPTED = "interrupted", _("interrupted")
    STOPPED = "stopped", _("stopped")


class Trigger(models.TextChoices):
    ENABLED = "enabled", _("enabled")
    SCHEDULE = "schedule", _("schedule")
    PERSON = "person", _("run now")
    GROUP = "group", _("group")


class Ending(models.TextChoices):
    """Says why the MA no longer wants the runs of an activation that was not switched off. Its state follows
    when the last run is closed."""

    DRAINED = "drained", _("drained")
    LIMIT = "limit", _("limit reached")
    WAITED = "waited", _("delayed messages did not arrive in time")
    FINISHED = "finished", _("all instances ended")
    STOPPED = "stopped", _("stopped manually")


OPEN_ACTIVATIONS = (ActivationState.PENDING, ActivationState.RUNNING)


class RunPhase(models.TextChoices):
    """Holds what the MA wants or the KMA last said of a run."""

    WANTED = "wanted", _("assigned")
    STARTING = "starting", _("starting")
    RUNNING = "running", _("running")
    DRAINING = "draining", _("draining")
    FINISHED = "finished", _("finished")
    FAILED = "failed", _("failed")
    INTERRUPTED = "interrupted", _("interrupted")
    LOST = "lost", _("lost")


class Activation(models.Model):
    """`last_epoch` is the epoch of its newest run; planning wins its races by a conditional update of it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    setting = models.ForeignKey(
        "agents.LaunchSetting", models.CASCADE, related_name="activations", verbose_name=_("launch setting")
    )
    state = models.CharField(
        _("state"), max_length=12, choices=ActivationState.choices, default=ActivationState.PENDING
    )
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("started by")
    )
    started_at = models.DateTimeField(_("started"), default=timezone.now)
    ended_at = models.DateTimeField(_("ended"), null=True)
    # How it finished, for who asks when its records are deleted; None before it ended. False before it ended:
    # nobody can tell any more that all went well. See agents.activations.rules.outcome.
    well = models.BooleanField(_("finished successfully"), null=True, editable=False)
    reason = ReasonField(_("reason"))
    last_epoch = models.PositiveIntegerField(default=0, editable=False)
    # Which enabling of the setting it belongs to (LaunchSetting.enablings at its start), and its place among
    # the activations of the setting: instants tell neither where clocks differ or step back.
    enabling = models.PositiveIntegerField(default=0, editable=False)
    number = models.PositiveIntegerField(default=0, editable=False)
    trigger = models.CharField(_("trigger"), max_length=10, choices=Trigger.choices, default=Trigger.ENABLED)
    group_activation = models.ForeignKey(
        "agents.GroupActivation",
        models.SET_NULL,
        null=True,
        related_name="activations",
        verbose_name=_("group"),
    )
    # One message is tried first: until it was handled well, one server has one run and nobody else begins.
    trial = models.BooleanField(_("starts with one trial message"), default=False)
    ending = models.CharField(_("ending"), max_length=10, choices=Ending.choices, blank=True, default="")
    ending_at = models.DateTimeField(_("ending since"), null=True)
    # What the broker said when it began: messages in the subscription, delayed ones too, and the added ones
    # ever.
    waiting_at_start = models.BigIntegerField(_("messages waiting at the start"), null=True)
    added_at_start = models.BigIntegerField(null=True, editable=False)
    # The same when it was looked at last: another number means that messages came meanwhile.
    added_seen = models.BigIntegerField(null=True, editable=False)
    # Since when the subscription is seen empty, and since when it holds delayed messages only.
    idle_since = models.DateTimeField(_("empty since"), null=True)
    delayed_since = models.DateTimeField(_("waiting for delayed messages since"), null=True)
    # What the setting said when it began (agents.activations.launch); None of those from before that was
    # kept.
    launched_with = ReadableJSONField(null=True, editable=False)
    # After its end nothing of it was left in the records; a late one takes this back.
    cleared = models.BooleanField(default=False, editable=False)
    # Records that came after the end. They can only turn well into error.
    late_records = models.PositiveIntegerField(_("late records"), default=0)

    class Meta:
        verbose_name = _("activation")
        verbose_name_plural = _("activations")
        ordering = ("-started_at",)
        indexes = [
            models.Index(fields=["setting", "-started_at"], name="activation_of_setting"),
            models.Index(fields=["setting", "-number", "-started_at"], name="activations_in_their_order"),
            models.Index(fields=["-started_at", "-id"], name="activations_by_start"),
            models.Index(fields=["state", "-started_at", "-id"], name="activations_by_state"),
            models.Index(
                fields=["setting", "state", "-started_at", "-id"], name="activations_of_setting_state"
            ),
            models.Index(fields=["setting"], condition=models.Q(ended_at=None), name="unended_activations"),
            models.Index(fields=["setting", "-ended_at"], name="activations_by_end"),
            models.Index(
                fields=["setting", "number", "started_at"],
                condition=models.Q(cleared=False),
                name="uncleared_activations",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["setting"],
                condition=models.Q(state__in=["pending", "running"]),
                name="one_open_activation_per_setting",
            )
        ]

    def __str__(self) -> str:
        return str(self.id)


class Withheld(models.TextChoices):
    """Says why a wanted run is left out of what its server is sent. Cleared by itself when it can be sent
    again."""

    PARAMETERS_TOO_DEEP = "parameters_too_deep", _("the parameters are nested too deeply")
    PARAMETERS_UNREADABLE = "parameters_unreadable", _("the parameters cannot be read")
    AGENT_NOT_ALLOWED = "agent_not_allowed", _("the pool does not allow the agent")
    CANNOT_BE_SENT = "cannot_be_sent", _("the setting cannot be sent to its servers")


class Run(models.Model):
    """`handled`, `restarts`, `in_progress`, the counts and `connected` are the KMA's word (a claim to the
    present); `failed`, `temporary`, `recovered` and `stored_records` count stored facts. Closed and still
    `wanted`: it ended by itself."""

    activation = models.ForeignKey(
        Activation, models.CASCADE, related_name="runs", verbose_name=_("activation")
    )
    server = models.ForeignKey("agents.Server", models.PROTECT, related_name="runs", verbose_name=_("server"))
    epoch = models.PositiveIntegerField(_("epoch"))
    wanted = models.BooleanField(_("assigned"), default=True)
    state = models.CharField(_("state"), max_length=12, choices=RunPhase.choices, default=RunPhase.WANTED)
    handled = models.BigIntegerField(_("processed"), default=0)
    failed = models.BigIntegerField(_("failed"), default=0)
    temporary = models.BigIntegerField(_("temporary"), default=0)
    recovered = models.BigIntegerField(_("recovered"), default=0)
    restarts = models.BigIntegerField(_("restarts"), default=0)
    repeats = models.BigIntegerField(_("repeats"), default=0)
    in_progress = models.IntegerField(_("in progress"), default=0)
    connected = models.BooleanField(_("connected"), default=False)
    same_type = models.CharField(_("type of consecutive failures"), max_length=255, blank=True, default="")
    same_count = models.IntegerField(_("consecutive failures of that type"), default=0)
    any_count = models.IntegerField(_("consecutive failures"), default=0)
    # Where each message counts once: which ones counted in this row (contract.breaker.mark). For the next run
    # only.
    counted_marks = models.JSONField(default=list, blank=True, editable=False)
    reported_at = models.DateTimeField(_("last report"), null=True)
    problems = ReasonsField(_("problems"))
    # `contract.messages.BlockedMessage` as JSON, None while nothing blocks.
    blocked = models.JSONField(null=True, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    closed_at = models.DateTimeField(_("closed"), null=True)
    closing_records = models.BigIntegerField(_("records before the closing record"), null=True)
    stored_records = models.BigIntegerField(_("stored records"), default=0)
    withheld_because = models.CharField(
        _("why the setting is not sent"),
        max_length=40,
        choices=Withheld.choices,
        blank=True,
        default="",
        editable=False,
    )

    class Meta:
        verbose_name = _("instance")
        verbose_name_plural = _("instances")
        ordering = ("-created_at", "-id")
        constraints = [
            models.UniqueConstraint(fields=["activation", "server", "epoch"], name="run_once_per_epoch"),
        ]
        indexes = [
            models.Index(fields=["server"], condition=models.Q(wanted=True), name="wanted_runs_of_server"),
            models.Index(fields=["server", "-created_at", "-id"], name="runs_of_server_by_start"),
            models.Index(fields=["server", "-closed_at", "-id"], name="runs_of_server_by_end"),
            models.Index(fields=["server"], condition=models.Q(closed_at=None), name="open_runs_of_server"),
            models.Index(
                fields=["activation"], condition=models.Q(closed_at=None), name="open_runs_of_activation"
            ),
            models.Index(
                fields=["activation"], condition=~models.Q(withheld_because=""), name="withheld_runs"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.activation_id} @ {self.server_id} #{self.epoch}"


# -- every transition is a row: what changed, from what to what, why and by whom -----------------------------


class StateChange(models.Model):
    """`setting` is None for what happened to a server alone."""

    setting = models.ForeignKey(
        "agents.LaunchSetting",
        models.CASCADE,
        null=True,
        related_name="changes",
        verbose_name=_("launch setting"),
    )
    activation = models.ForeignKey("agents.Activation", models.CASCADE, null=True, related_name="changes")
    server = models.ForeignKey(
        "agents.Server", models.CASCADE, null=True, related_name="changes", verbose_name=_("server")
    )
    what = models.CharField(_("what"), max_length=30)
    old = models.CharField(_("from"), max_length=60, blank=True, default="")
    new = models.CharField(_("to"), max_length=60, blank=True, default="")
    reason = ReasonField(_("reason"))
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    at = models.DateTimeField(_("time"), default=timezone.now)

    class Meta:
        verbose_name = _("state change")
        verbose_name_plural = _("state changes")
        ordering = ("-at", "-id")
        indexes = [
            models.Index(fields=["setting", "-at"], name="changes_of_setting"),
            models.Index(fields=["-at", "-id"], name="changes_by_time"),
            models.Index(fields=["what", "-at", "-id"], name="changes_of_a_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.setting or self.server} {self.at:%Y-%m-%d %H:%M:%S}"
