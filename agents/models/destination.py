"""A destination is an address of the broker. It owns the redelivery policy: settings that share it share the
policy."""

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from contract.redelivery import RedeliveryPolicy

DAY_MS = 24 * 60 * 60 * 1000

# No wildcard (`*`, `#`), no `::`: the name is also the match of its address settings.
address_name = RegexValidator(
    r"^(?!(?:activemq|MA|DLQ|ExpiryQueue|mops|jms)(?:\.|$))[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}$",
    _("Use only A–Z, a–z, 0–9 and . _ / -. Reserved names: activemq, mops, jms, ExpiryQueue, MA and DLQ."),
)


class Destination(models.Model):
    """Durations in milliseconds. `max_delay_ms` empty = 10 × delay; `max_attempts` -1 = without end."""

    name = models.CharField(_("address"), max_length=200, unique=True, validators=[address_name])
    max_attempts = models.IntegerField(
        _("maximum attempts"), default=10, validators=[MinValueValidator(-1), MaxValueValidator(1_000_000)]
    )
    delay_ms = models.PositiveBigIntegerField(
        _("delay, ms"), default=5000, validators=[MaxValueValidator(30 * DAY_MS)]
    )
    multiplier = models.FloatField(
        _("multiplier"), default=2.0, validators=[MinValueValidator(1.0), MaxValueValidator(100.0)]
    )
    max_delay_ms = models.PositiveBigIntegerField(
        _("maximum delay, ms"), null=True, blank=True, validators=[MaxValueValidator(365 * DAY_MS)]
    )
    collision_avoidance = models.FloatField(
        _("collision avoidance"), default=0.0, validators=[MinValueValidator(0.0), MaxValueValidator(1.0)]
    )
    expiry_ms = models.PositiveBigIntegerField(
        _("expiry, ms"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(365 * DAY_MS)],
    )
    accept_queue_senders = models.BooleanField(_("allow sending to a queue (ANYCAST)"), default=False)
    description = models.TextField(_("description"), blank=True, default="")

    class Meta:
        verbose_name = _("destination")
        verbose_name_plural = _("destinations")
        ordering = (Lower("name"),)

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if self.max_attempts == 0:
            raise ValidationError(
                {"max_attempts": _("Enter at least 1 attempt, or -1 for unlimited attempts.")}
            )
        if self.accept_queue_senders:
            raise ValidationError(
                {"accept_queue_senders": _("Not supported yet. Use this address as a topic (MULTICAST).")}
            )
        stored = Destination.objects.filter(pk=self.pk).first() if self.pk else None
        if stored is not None and stored.name != self.name:
            raise ValidationError({"name": _("The name cannot be changed: it is the address on the broker.")})

    @property
    def policy(self) -> RedeliveryPolicy:
        return RedeliveryPolicy(
            max_attempts=self.max_attempts,
            delay=self.delay_ms,
            multiplier=self.multiplier,
            max_delay=self.max_delay_ms,
            collision_avoidance=self.collision_avoidance,
        )


# -- the settings of an address as the broker was last seen to have them -------------------------------------


class FoundPolicy(models.Model):
    """The policy found at the broker, of each destination that has settings, and of the dead-letter address.
    `found` by the names of the broker's JSON; `differing` are the names whose values are not the wanted ones,
    `differs_since` None while there are none."""

    address = models.CharField(_("address"), max_length=200, unique=True)
    found = models.JSONField(default=dict)
    differing = models.JSONField(default=list)
    seen_at = models.DateTimeField(default=timezone.now)
    differs_since = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("policy on the broker")
        verbose_name_plural = _("policies on the broker")

    def __str__(self) -> str:
        return self.address


# -- state of a subscription on the broker, for alerts: is it fed, is it moving ------------------------------


class SubscriptionState(models.Model):
    """The state of a subscription at `seen_at`. `acknowledged` is the broker's counter, which begins anew
    when it is restarted. `still_since`: since when messages wait, consumers are open and the counter stands;
    `unfed_since`: since when nobody consumes though somebody should. Both None while all is well."""

    setting = models.OneToOneField(
        "agents.LaunchSetting",
        models.CASCADE,
        related_name="subscription_state",
        verbose_name=_("launch setting"),
    )
    waiting = models.BigIntegerField(default=0)
    in_delivery = models.BigIntegerField(default=0)
    consumers = models.IntegerField(default=0)
    acknowledged = models.BigIntegerField(default=0)
    seen_at = models.DateTimeField(default=timezone.now)
    still_since = models.DateTimeField(null=True)
    unfed_since = models.DateTimeField(null=True)
    # `agents.provisioning.drain.Sample`s of the last minutes, the newest last, as lists.
    samples = models.JSONField(default=list)

    class Meta:
        verbose_name = _("subscription state")
        verbose_name_plural = _("subscription states")

    def __str__(self) -> str:
        return str(self.setting_id)
