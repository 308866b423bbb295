"""A launch setting: what to run, how, where. Its key is also the name of its subscription on the broker."""

import re
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.models.destination import Destination
from agents.models.pool import Pool
from contract.messages import Mode
from contract.properties import RESERVED_KEYS
from contract.text import storable

KEY = re.compile(r"[a-z0-9][a-z0-9-]{1,60}")


class Timing(models.TextChoices):
    """When it runs. Schedules come later and keep their place here."""

    ASAP = "ASAP", _("as soon as possible")


class Spread(models.TextChoices):
    ANY = "ANY", _("on one server of the pool")
    MANY = "MANY", _("on every server of the pool")


class AckMode(models.TextChoices):
    TRANSACTED = Mode.TRANSACTED.value, _("transacted")
    AUTO = Mode.AUTO.value, _("automatic")


class ProvisionState(models.TextChoices):
    PENDING = "pending", _("being made on the broker")
    READY = "ready", _("ready on the broker")
    FAILED = "failed", _("failed on the broker")


def check_key(value: str) -> None:
    if not KEY.fullmatch(value):
        raise ValidationError(
            _("2 to 61 small letters, digits and hyphens, a letter or digit first."), code="invalid_key"
        )
    if value in RESERVED_KEYS:
        raise ValidationError(_("“%(key)s” is reserved."), code="reserved_key", params={"key": value})


def check_parameters(value: Any) -> None:
    if not isinstance(value, dict):
        raise ValidationError(_("A JSON object is needed, for example {}."), code="not_an_object")
    _check_storable(value)


def check_names(value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise ValidationError(_("A JSON list of property names is needed, for example []."), code="not_names")
    _check_storable(value)


def _check_storable(value: Any) -> None:
    """PostgreSQL refuses NUL in JSON; a lone surrogate is no text anywhere."""
    texts = [value]
    while texts:
        item = texts.pop()
        if isinstance(item, dict):
            texts.extend([*item.keys(), *item.values()])
        elif isinstance(item, list):
            texts.extend(item)
        elif isinstance(item, str) and storable(item) != item:
            raise ValidationError(_("A text in it contains NUL or a broken character."), code="not_storable")


class LaunchSetting(models.Model):
    key = models.CharField(_("key"), max_length=61, unique=True, validators=[check_key])
    agent = models.CharField(_("agent"), max_length=200)
    timing = models.CharField(_("timing"), max_length=10, choices=Timing.choices, default=Timing.ASAP)
    spread = models.CharField(_("spread"), max_length=4, choices=Spread.choices, default=Spread.ANY)
    pool = models.ForeignKey(Pool, models.PROTECT, related_name="settings", verbose_name=_("pool"))
    destination = models.ForeignKey(Destination, models.PROTECT, related_name="settings", verbose_name=_("destination"))
    mode = models.CharField(
        _("acknowledgement mode"), max_length=10, choices=AckMode.choices, default=AckMode.TRANSACTED
    )
    concurrency = models.PositiveSmallIntegerField(
        _("handlers per server"), default=1, validators=[MinValueValidator(1), MaxValueValidator(64)]
    )
    breaker_m = models.PositiveIntegerField(
        _("breaker: limit of failures in a row"),
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(10_000)],
    )
    grace_seconds = models.FloatField(
        _("grace period, s"), default=30.0, validators=[MinValueValidator(0.0), MaxValueValidator(3600.0)]
    )
    handling_timeout_seconds = models.FloatField(
        _("handling timeout, s (0 = none)"),
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(604_800.0)],
    )
    transaction_timeout_seconds = models.FloatField(
        _("transaction timeout, s (0 = none)"),
        default=300.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(604_800.0)],
    )
    isolate = models.BooleanField(_("a new process after each failure"), default=False)
    child_memory_mb = models.PositiveIntegerField(
        _("memory bound of a process, MB (0 = none)"), default=0, validators=[MaxValueValidator(1_048_576)]
    )
    parameters = models.JSONField(_("parameters"), default=dict, blank=True, validators=[check_parameters])
    masked_properties = models.JSONField(
        _("masked message properties"), default=list, blank=True, validators=[check_names]
    )
    description = models.TextField(_("description"), blank=True, default="")

    enabled = models.BooleanField(_("enabled"), default=False, editable=False)
    state_since = models.DateTimeField(_("since"), default=timezone.now, editable=False)
    disabled_reason = models.TextField(_("reason"), blank=True, default="", editable=False)
    disabled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("disabled by"),
    )

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
    provisioned_at = models.DateTimeField(_("made on the broker"), null=True, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("launch setting")
        verbose_name_plural = _("launch settings")
        ordering = ("key",)
        permissions = [
            ("can_enable", _("Can enable launch settings")),
            ("can_disable", _("Can disable launch settings")),
        ]

    def __str__(self) -> str:
        return self.key

    def clean(self) -> None:
        """What cannot change any more: the subscription on the broker hangs on it."""
        stored = LaunchSetting.objects.filter(pk=self.pk).first() if self.pk else None
        if stored is None:
            return
        problems: dict[str, Any] = {}
        if self.key != stored.key:
            problems["key"] = _("The key is the name of the subscription and cannot be changed.")
        if self.destination_id != stored.destination_id and stored.provisioned_hash:
            problems["destination"] = _(
                "Its subscription already gathers messages there. Make a new setting for another destination."
            )
        if self.spread != stored.spread and stored.enabled:
            problems["spread"] = _("Disable the setting first.")
        if problems:
            raise ValidationError(problems)
