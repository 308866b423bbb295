"""Recipients of notifications, events that are rows of this app, and how each delivery went."""

import uuid
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator, RegexValidator, URLValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.ui.text import masked

# Of one setting, and of one pool: each is told in turn, and one that hangs costs the others seconds.
MOST_TARGETS = 10


# Of the whole installation.
MOST_OF_INSTALLATION = 20


class Channel(models.TextChoices):
    EMAIL = "email", _("e-mail")
    WEBHOOK = "webhook", _("webhook")
    STANDARD = "standard", _("Standard Webhooks")
    SLACK = "slack", "Slack"
    TEAMS = "teams", "Microsoft Teams"
    PAGERDUTY = "pagerduty", "PagerDuty"
    ALERTMANAGER = "alertmanager", "Alertmanager"


# The secret that signs the body is made here, and shown once.
SIGNED = (Channel.WEBHOOK, Channel.STANDARD)
# Whoever knows the address may write there.
SECRET_ADDRESSES = (Channel.SLACK, Channel.TEAMS)


def is_secret(channel: str, address: str) -> bool:
    """Returns whether the address is shown to nobody again: it is a secret, or has a password in it."""
    _scheme, separator, rest = address.partition("://")
    return channel in SECRET_ADDRESSES or (bool(separator) and "@" in rest.partition("/")[0])


class LeastSeverity(models.IntegerChoices):
    """The least severity that a recipient gets; `EVERYTHING` holds events that are no problem, too."""

    EVERYTHING = 0, pgettext_lazy("a least severity", "all events")
    WARNING = 1, pgettext_lazy("a least severity", "warnings and critical events")
    BAD = 2, pgettext_lazy("a least severity", "critical events only")


WEEKDAYS = r"\A1?2?3?4?5?6?7?\Z"
LAST_PORT = 65_535


def check_url(address: str) -> None:
    """Raises ValidationError. Django's own check takes every port of up to five digits."""
    URLValidator(schemes=["http", "https"])(address)
    try:
        port = urlsplit(address).port
    except ValueError:
        port = LAST_PORT + 1
    if port is not None and port > LAST_PORT:
        raise ValidationError(_("The port must be at most %(most)s.") % {"most": LAST_PORT})


PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"


class NoticeTarget(models.Model):
    """Belongs to one setting, to a whole pool, or without both to the whole installation. `secret` signs the
    body of a webhook, or is the routing key of PagerDuty; it is never shown again. Hours: on `weekdays`
    (ISO numbers; empty: every day) from `hours_from` until `hours_until` in `time_zone` (empty: that of the
    site); without both times all day."""

    setting = models.ForeignKey(
        "agents.LaunchSetting",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="notice_targets",
        verbose_name=_("launch setting"),
    )
    pool = models.ForeignKey(
        "agents.Pool",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="notice_targets",
        verbose_name=_("pool"),
    )
    channel = models.CharField(_("channel"), max_length=12, choices=Channel.choices)
    address = models.CharField(_("address"), max_length=500, blank=True, default="")
    least_severity = models.PositiveSmallIntegerField(
        _("severity"), choices=LeastSeverity.choices, default=LeastSeverity.EVERYTHING
    )
    weekdays = models.CharField(
        _("days of the week"),
        max_length=7,
        blank=True,
        default="",
        validators=[
            RegexValidator(
                r"\A1?2?3?4?5?6?7?\Z", _("Enter digits from 1 (Monday) to 7 (Sunday) in ascending order.")
            )
        ],
        help_text=_("1 is Monday, 7 is Sunday. Example: 12345. Leave empty for every day."),
    )
    hours_from = models.TimeField(_("not before"), null=True, blank=True)
    hours_until = models.TimeField(
        _("not after"),
        null=True,
        blank=True,
        help_text=_(
            "Outside these hours, notifications are held. If the cause is resolved before the "
            "hours begin, the notification is not sent."
        ),
    )
    time_zone = models.CharField(
        _("time zone"),
        max_length=60,
        blank=True,
        default="",
        help_text=_("For example, Europe/Berlin. If empty, the time zone of the site is used."),
    )
    secret = models.CharField(_("secret"), max_length=100, blank=True, default="", editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("notification recipient")
        verbose_name_plural = _("notification recipients")
        ordering = ("pk",)
        constraints = [
            models.CheckConstraint(
                condition=models.Q(setting__isnull=True) | models.Q(pool__isnull=True),
                name="notice_target_of_one_owner",
            )
        ]

    def __str__(self) -> str:
        """Returns what histories and titles show to everybody, too."""
        return f"{self.get_channel_display()} {masked(self.address)}"

    def clean(self) -> None:
        if self.channel == Channel.EMAIL and not settings.MA_EMAIL_READY:
            raise ValidationError(
                {
                    "channel": _(
                        "This site cannot send e-mail: MA_EMAIL_URL is not set (docs/how-to/notices.md)."
                    )
                }
            )
        if self.channel == Channel.PAGERDUTY and not self.address:
            self.address = PAGERDUTY_URL
        check = EmailValidator() if self.channel == Channel.EMAIL else check_url
        try:
            check(self.address)
        except ValidationError as error:
            raise ValidationError({"address": error.messages}) from error
        self._check_hours()
        if self.setting_id is not None and self.pool_id is not None:
            raise ValidationError(
                _(
                    "Choose a setting or a pool, not both. If neither is selected, the recipient gets the "
                    "notifications of the whole installation."
                )
            )
        if self.channel == Channel.PAGERDUTY and not self.secret:
            raise ValidationError(
                {"address": _("Enter the routing key from the PagerDuty integration (Events API v2).")}
            )
        others = NoticeTarget.objects.filter(setting=self.setting_id, pool=self.pool_id).exclude(pk=self.pk)
        most = MOST_TARGETS if self.setting_id or self.pool_id else MOST_OF_INSTALLATION
        if others.count() >= most:
            text = _(
                "Recipient not saved: the limit is %(most)s recipients. Remove one first, or use an "
                "address that forwards to several people."
            )
            raise ValidationError(text % {"most": most})

    def _check_hours(self) -> None:
        if (self.hours_from is None) != (self.hours_until is None):
            raise ValidationError({"hours_from": _("Enter both times or leave both fields empty.")})
        if self.hours_from is not None and self.hours_from == self.hours_until:
            raise ValidationError(
                {"hours_from": _("Both times are the same. For the whole day, leave both fields empty.")}
            )
        if self.time_zone and self.time_zone not in available_timezones():
            raise ValidationError({"time_zone": _("Unknown time zone. Enter a name such as Europe/Berlin.")})


class EventKind(models.TextChoices):
    ENABLED = "enabled", pgettext_lazy("an event", "setting enabled")
    DISABLED = "disabled", pgettext_lazy("an event", "setting disabled")
    REPLAY_ENDED = "replay_ended", pgettext_lazy("an event", "replay ended")
    DEAD_LETTERS = "dead_letters", pgettext_lazy("an event", "first dead-lettered message")


class Event(models.Model):
    """One event that is neither a trip nor a transition of an alert, written in the transaction of what
    happened. `over_at`: of dead letters, when the queue of the setting was seen empty again; of all others
    the event itself. `facts`: what its texts are made of."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(_("event"), max_length=12, choices=EventKind.choices)
    setting = models.ForeignKey(
        "agents.LaunchSetting", models.SET_NULL, null=True, related_name="+", verbose_name=_("launch setting")
    )
    setting_key = models.CharField(_("setting key"), max_length=61)
    facts = models.JSONField(default=dict)
    at = models.DateTimeField(_("time"))
    over_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ("-at", "-id")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "setting_key"],
                condition=models.Q(over_at=None),
                name="one_open_event_per_setting",
            )
        ]
        indexes = [models.Index(fields=["over_at"], name="events_by_end")]

    def __str__(self) -> str:
        return f"{self.kind} {self.setting_key}"


class NoticeState(models.TextChoices):
    """`ACTIVE`: delivered, and sent again and again until its cause is over, or the recipient would take it
    for over. `SKIPPED`: over before the hours of the recipient began."""

    PENDING = "pending", _("pending")
    SENT = "sent", _("sent")
    ACTIVE = "active", pgettext_lazy("a notification", "sent, repeated until resolved")
    SKIPPED = "skipped", pgettext_lazy("a notification", "skipped")
    FAILED = "failed", pgettext_lazy("a notification", "failed")


class Notice(models.Model):
    """One notification, of a trip, of a transition of an alert, or of another event. None of them: a test.

    `over`: it says that its cause is over. `turn`: how often the trip was opened again before it. `held`: it
    waited for the hours of its target. `labels`: by them Alertmanager knows what opens and what resolves as
    one alert, so they are kept as they were when it opened."""

    trip = models.ForeignKey("agents.BreakerTrip", models.CASCADE, null=True, related_name="notices")
    transition = models.ForeignKey(
        "alerts.AlertTransition", models.CASCADE, null=True, related_name="notices"
    )
    event = models.ForeignKey(Event, models.CASCADE, null=True, related_name="notices")
    over = models.BooleanField(default=False)
    turn = models.PositiveIntegerField(default=0)
    held = models.BooleanField(default=False)
    labels = models.JSONField(default=dict)
    target = models.ForeignKey(NoticeTarget, models.SET_NULL, null=True, related_name="notices")
    channel = models.CharField(_("channel"), max_length=12, choices=Channel.choices)
    address = models.CharField(_("address"), max_length=500)
    state = models.CharField(
        _("state"), max_length=7, choices=NoticeState.choices, default=NoticeState.PENDING
    )
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    next_at = models.DateTimeField(_("next attempt"), default=timezone.now)
    problem = models.TextField(_("problem"), blank=True, default="")
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    sent_at = models.DateTimeField(_("sent"), null=True)

    class Meta:
        verbose_name = _("notification")
        verbose_name_plural = _("notifications")
        ordering = ("-created_at", "-id")
        constraints = [
            models.UniqueConstraint(
                fields=["trip", "target", "turn", "over"], name="one_notice_per_trip_and_target"
            ),
            models.UniqueConstraint(fields=["event", "target"], name="one_notice_per_event_and_target"),
            models.UniqueConstraint(
                fields=["transition", "target"], name="one_notice_per_transition_and_target"
            ),
        ]
        indexes = [
            models.Index(fields=["next_at"], condition=models.Q(state="pending"), name="notices_to_send"),
            models.Index(fields=["next_at"], condition=models.Q(state="active"), name="notices_to_repeat"),
            models.Index(fields=["-created_at", "-id"], name="notices_by_age"),
            models.Index(fields=["target", "-created_at", "-id"], name="notices_of_target"),
        ]

    def __str__(self) -> str:
        return f"{self.channel} {masked(self.address)}"
