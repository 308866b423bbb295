"""A destination is an address of the broker. It owns the redelivery policy: settings that share it share the
policy."""

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from contract.redelivery import RedeliveryPolicy

DAY_MS = 24 * 60 * 60 * 1000

# No wildcard (`*`, `#`), no `::`: the name is also the match of its address settings.
address_name = RegexValidator(
    r"^(?!(?:activemq|MA|DLQ|ExpiryQueue|mops|jms)(?:\.|$))[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}$",
    _(
        "Letters, digits and . _ / - ; not activemq, mops, jms, ExpiryQueue, MA or DLQ: these belong to "
        "broker and us."
    ),
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
    accept_queue_senders = models.BooleanField(_("accept queue senders"), default=False)
    description = models.TextField(_("description"), blank=True, default="")

    class Meta:
        verbose_name = _("destination")
        verbose_name_plural = _("destinations")
        ordering = (Lower("name"),)

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if self.max_attempts == 0:
            raise ValidationError({"max_attempts": _("At least 1 attempt, or -1 for attempts without end.")})
        if self.accept_queue_senders:
            raise ValidationError(
                {
                    "accept_queue_senders": _(
                        "Not offered yet: publish to this address as a topic (MULTICAST)."
                    )
                }
            )
        stored = Destination.objects.filter(pk=self.pk).first() if self.pk else None
        if stored is not None and stored.name != self.name:
            raise ValidationError({"name": _("It is the address on the broker and cannot be changed.")})

    @property
    def policy(self) -> RedeliveryPolicy:
        return RedeliveryPolicy(
            max_attempts=self.max_attempts,
            delay=self.delay_ms,
            multiplier=self.multiplier,
            max_delay=self.max_delay_ms,
            collision_avoidance=self.collision_avoidance,
        )
