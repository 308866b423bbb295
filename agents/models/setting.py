"""A launch setting: what to run, how, where. Its key is also the name of its subscription on the broker."""

import re
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents import hooks
from agents.models.destination import Destination, address_name
from agents.models.labels import check_labels
from agents.models.message_policy import PoisonPolicy, check_blocked, check_duplicate_key, poison_problems
from agents.models.parameters import ReadableJSONField, check_bounds, check_storable
from agents.models.pool import agent_problems
from agents.models.schedule import Goal, Timing
from console.reasons import ReasonField
from contract.messages import AgentKind, Mode
from contract.names import ACKNOWLEDGMENT_TIMEOUT, RESERVED_KEYS, ahead_queue

KEY = re.compile(r"[a-z0-9][a-z0-9-]{1,60}")
property_name = RegexValidator(
    r"^[A-Za-z_$][A-Za-z0-9_$.-]{0,199}$", _("Enter a valid message property name.")
)


class SettingKind(models.TextChoices):
    MESSAGE = AgentKind.MESSAGE.value, _("message agent")
    STANDALONE = AgentKind.STANDALONE.value, _("standalone agent")


class Spread(models.TextChoices):
    ANY = "ANY", _("one server, with failover")
    MANY = "MANY", _("all servers in the pool")


class AckMode(models.TextChoices):
    TRANSACTED = Mode.TRANSACTED.value, _("transacted")
    AUTO = Mode.AUTO.value, _("auto acknowledge")
    DUPS_OK = Mode.DUPS_OK.value, _("Dups-OK")
    CLIENT = Mode.CLIENT.value, _("client acknowledge")


class ProvisionState(models.TextChoices):
    PENDING = "pending", _("being created on the broker")
    READY = "ready", _("ready on the broker")
    FAILED = "failed", _("provisioning failed")


class Hold(models.TextChoices):
    """Says which queue its runs take messages from: AHEAD, the one beside the subscription, which is paused
    on the broker; ENDING, the subscription again, which goes on as soon as nothing else is in delivery."""

    AHEAD = "ahead", _("on hold, replayed messages go first")
    ENDING = "ending", _("on hold, releasing")


def check_key(value: str) -> None:
    if not KEY.fullmatch(value):
        raise ValidationError(
            _("Use 2 to 61 characters: a–z, 0–9 and hyphens. The first character cannot be a hyphen."),
            code="invalid_key",
        )
    if value in RESERVED_KEYS:
        raise ValidationError(_("The key “%(key)s” is reserved."), code="reserved_key", params={"key": value})


def check_parameters(value: Any) -> None:
    if not isinstance(value, dict):
        raise ValidationError(_("Enter a JSON object, for example {}."), code="not_an_object")
    check_bounds(value)
    check_storable(value)


def check_names(value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise ValidationError(_("Enter a JSON list of property names, for example []."), code="not_names")
    check_bounds(value)
    check_storable(value)


class LaunchSetting(Goal):
    key = models.CharField(_("key"), max_length=61, unique=True, validators=[check_key])
    agent = models.CharField(_("agent"), max_length=200)
    kind = models.CharField(
        _("kind"), max_length=10, choices=SettingKind.choices, default=SettingKind.MESSAGE
    )
    timing = models.CharField(_("timing"), max_length=10, choices=Timing.choices, default=Timing.ASAP)
    spread = models.CharField(_("placement"), max_length=4, choices=Spread.choices, default=Spread.ANY)
    pool = models.ForeignKey("agents.Pool", models.PROTECT, related_name="settings", verbose_name=_("pool"))
    # A message agent has one, a standalone agent none: see `clean` and the constraint.
    destination = models.ForeignKey(
        Destination,
        models.PROTECT,
        related_name="settings",
        verbose_name=_("destination"),
        null=True,
        blank=True,
    )
    mode = models.CharField(
        _("acknowledgement mode"), max_length=10, choices=AckMode.choices, default=AckMode.TRANSACTED
    )
    concurrency = models.PositiveSmallIntegerField(
        _("concurrent messages per server"),
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(64)],
    )
    breaker_m = models.PositiveIntegerField(
        _("breaker: threshold M, consecutive failures"),
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(10_000)],
    )
    count_once = models.BooleanField(_("breaker: count each message once"), default=False)
    try_one_first = models.BooleanField(_("after enabling: try one message first"), default=False)
    drain_idle_seconds = models.FloatField(
        _("idle time before the queue counts as drained, s"),
        default=5.0,
        validators=[MinValueValidator(1.0), MaxValueValidator(86_400.0)],
    )
    drain_wait_seconds = models.FloatField(
        _("maximum wait for delayed messages, s"),
        default=600.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(604_800.0)],
    )
    drain_limit_messages = models.PositiveIntegerField(
        _("maximum messages per server (0 = no limit)"),
        default=0,
        validators=[MaxValueValidator(2_000_000_000)],
    )
    drain_limit_minutes = models.PositiveIntegerField(
        _("maximum duration, minutes (0 = no limit)"), default=0, validators=[MaxValueValidator(100_000)]
    )
    restart_seconds = models.FloatField(
        _("restart delay after a standalone agent fails, s"),
        default=5.0,
        validators=[MinValueValidator(0.1), MaxValueValidator(86_400.0)],
    )
    grace_seconds = models.FloatField(
        _("grace period, s"), default=30.0, validators=[MinValueValidator(0.0), MaxValueValidator(3600.0)]
    )
    handling_timeout_seconds = models.FloatField(
        _("processing timeout, s (0 = no limit)"),
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(604_800.0)],
    )
    transaction_timeout_seconds = models.FloatField(
        _("transaction timeout, s (0 = no limit)"),
        default=300.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(604_800.0)],
    )
    dups_ok_messages = models.PositiveIntegerField(
        _("Dups-OK: batch size, messages"),
        default=100,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
    )
    dups_ok_seconds = models.FloatField(
        _("Dups-OK: maximum acknowledgement delay, s"),
        default=1.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(60.0)],
    )
    acknowledgement_timeout_seconds = models.FloatField(
        _("acknowledgement timeout, s (0 = no limit)"),
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(31_536_000.0)],
    )
    acknowledgement_property = models.CharField(
        _("message property that sets the timeout"),
        max_length=200,
        default=ACKNOWLEDGMENT_TIMEOUT,
        validators=[property_name],
    )
    committed_destination = models.CharField(
        _("destination for commit events"), max_length=200, blank=True, default="", validators=[address_name]
    )
    rolled_back_destination = models.CharField(
        _("destination for rollback events"),
        max_length=200,
        blank=True,
        default="",
        validators=[address_name],
    )
    ordered = models.BooleanField(
        _("ordered: one message at a time; after a failure, the same message is retried"), default=False
    )
    blocked_seconds = models.FloatField(
        _("ordered: retry delay after a failure, s (-1 = on request only)"),
        default=5.0,
        validators=[MaxValueValidator(86_400.0), check_blocked],
    )
    after_last = models.CharField(
        _("after the last attempt"), max_length=10, choices=PoisonPolicy.choices, default=PoisonPolicy.DLQ
    )
    exception_destination = models.CharField(
        _("exception destination"), max_length=200, blank=True, default="", validators=[address_name]
    )
    duplicate_key = models.CharField(
        _("identify repeats by"), max_length=200, blank=True, default="", validators=[check_duplicate_key]
    )
    duplicate_window_seconds = models.FloatField(
        _("repeats: detection period, s"),
        default=86_400.0,
        validators=[MinValueValidator(1.0), MaxValueValidator(2_592_000.0)],
    )
    isolate = models.BooleanField(_("a new process after each failure"), default=False)
    child_memory_mb = models.PositiveIntegerField(
        _("memory limit per process, MB (0 = no limit)"), default=0, validators=[MaxValueValidator(1_048_576)]
    )
    retention_days = models.PositiveIntegerField(
        _(
            "after a failed activation: keep failure protocols from this many days before its "
            "start (empty = site default)"
        ),
        null=True,
        blank=True,
        validators=[MaxValueValidator(36_500)],
    )
    parameters = ReadableJSONField(_("parameters"), default=dict, blank=True, validators=[check_parameters])
    masked_properties = models.JSONField(
        _("masked message properties"), default=list, blank=True, validators=[check_names]
    )
    labels = models.JSONField(_("labels"), default=dict, blank=True, validators=[check_labels])
    description = models.TextField(_("description"), blank=True, default="")

    enabled = models.BooleanField(_("enabled"), default=False, editable=False)
    state_since = models.DateTimeField(_("since"), default=timezone.now, editable=False)
    # How often it was switched on. What belongs to this enabling is known by it: clocks differ and step back.
    enablings = models.PositiveIntegerField(default=0, editable=False)
    # Whether this enabling tries one message first, where whoever enabled it chose; else `try_one_first` says
    # it.
    first_tries_one = models.BooleanField(null=True, editable=False)
    # How often somebody asked for another attempt of the message that blocks it.
    retries_asked = models.PositiveIntegerField(default=0, editable=False)
    # How often somebody gave up what blocks it, and what was meant last: the digest of a message key, never
    # the key.
    give_ups_asked = models.PositiveIntegerField(default=0, editable=False)
    give_up_digest = models.CharField(max_length=64, blank=True, default="", editable=False)
    give_up_attempt = models.PositiveIntegerField(default=0, editable=False)
    disabled_reason = ReasonField(_("reason"), editable=False)
    disabled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("disabled by"),
    )
    disabled_ticket = models.CharField(_("ticket"), max_length=200, blank=True, default="", editable=False)
    # Then it is enabled again by itself; never after a trip.
    disabled_until = models.DateTimeField(_("until"), null=True, editable=False)

    # A replay holds the subscription, so that its messages go ahead of what waits there; see
    # `dlq/replay/worker/hold.py`. `held_by` is that replay.
    hold = models.CharField(
        _("subscription on hold"), max_length=6, choices=Hold.choices, blank=True, default="", editable=False
    )
    held_by = models.UUIDField(null=True, editable=False)

    provisioned_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    wanted_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    provision_state = models.CharField(
        _("on the broker"),
        max_length=10,
        choices=ProvisionState.choices,
        default=ProvisionState.PENDING,
        editable=False,
    )
    provision_problem = models.TextField(_("problem on the broker"), blank=True, default="", editable=False)
    provisioned_at = models.DateTimeField(_("created on the broker"), null=True, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("launch setting")
        verbose_name_plural = _("launch settings")
        ordering = ("key",)
        permissions = [
            ("can_enable", _("Can enable launch settings")),
            ("can_disable", _("Can disable launch settings")),
            ("can_run", _("Can run launch settings now")),
            ("can_stop", _("Can stop activations")),
            ("can_discard", _("Can choose to discard messages after the last attempt")),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind="message", destination__isnull=False)
                | models.Q(kind="standalone", destination__isnull=True),
                name="message_agents_have_a_destination",
            )
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def takes_messages(self) -> bool:
        return self.kind == SettingKind.MESSAGE

    @property
    def feeds_one(self) -> bool:
        """Returns whether the broker feeds one consumer of its subscription at a time."""
        return self.spread == Spread.ANY or self.ordered

    @property
    def consumed_queue(self) -> str:
        """Returns the queue that its runs take messages from."""
        return ahead_queue(self.key) if self.hold == Hold.AHEAD else self.key

    @property
    def subscribed(self) -> Destination:
        """The destination of a message agent. Raises ValueError for a standalone one."""
        if self.destination is None:
            raise ValueError(f"{self.key} is standalone: it has no destination")
        return self.destination

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        """Tells of a destination beside all other problems: else the form shows the constraint's name
        instead."""
        problems: dict[str, Any] = {}
        try:
            super().clean_fields(exclude)
        except ValidationError as error:
            problems = error.update_error_dict(problems)
        if "destination" not in (exclude or ()):
            if self.takes_messages and self.destination_id is None:
                problems["destination"] = [_("Choose a destination for the message agent.")]
            if not self.takes_messages and self.destination_id is not None:
                problems["destination"] = [
                    _("A standalone agent does not receive messages. Leave this field empty.")
                ]
        for field, problem in poison_problems(self).items():
            if field not in (exclude or ()):
                problems.setdefault(field, []).append(problem)
        if problems:
            raise ValidationError(problems)

    def clean(self) -> None:
        """Refuses what cannot change any more: the subscription on the broker depends on it."""
        problems: dict[str, Any] = {}
        stored = LaunchSetting.objects.filter(pk=self.pk).first() if self.pk else None
        problems |= agent_problems(self, stored)
        if stored is not None:
            problems |= self._changes_refused(stored)
        elif self.takes_messages and (taken := next(filter(None, hooks.key_taken(self.key)), None)):
            problems["key"] = taken
        if problems:
            raise ValidationError(problems)

    def _changes_refused(self, stored: "LaunchSetting") -> dict[str, Any]:
        problems: dict[str, Any] = {}
        if self.kind != stored.kind:
            problems["kind"] = _("The kind cannot be changed. Create a new setting.")
        if self.key != stored.key:
            problems["key"] = _("The key cannot be changed: it is the name of the subscription.")
        if self.destination_id != stored.destination_id and stored.provisioned_hash:
            problems["destination"] = _(
                "The destination cannot be changed: the subscription already receives messages from "
                "it. Create a new setting."
            )
        if self.timing != stored.timing and (refused := self._timing_problem(stored)):
            problems["timing"] = refused
        if self.ordered != stored.ordered and (refused := self._in_use(stored)):
            problems["ordered"] = refused
        if self.spread != stored.spread and (refused := self._in_use(stored)):
            problems["spread"] = refused
        return problems

    def _in_use(self, stored: "LaunchSetting") -> Any:
        """Returns why nothing can change now that its runs rely on, or None."""
        if stored.enabled:
            return _("This field cannot be changed while the setting is enabled. Disable the setting first.")
        if stored.activations.filter(ended_at=None).exists():
            return _(
                "This field cannot be changed yet: the previous activation has not ended. Wait until "
                "the servers report its end."
            )
        return None

    def _timing_problem(self, stored: "LaunchSetting") -> Any:
        """Returns why the timing cannot change now, or None."""
        if refused := self._in_use(stored):
            return refused
        if hasattr(stored, "membership"):
            return _(
                "The timing cannot be changed: the setting belongs to a group. Remove the setting "
                "from the group first."
            )
        if hasattr(stored, "schedule"):
            return _("The timing cannot be changed: the setting has a schedule. Delete the schedule first.")
        return None
