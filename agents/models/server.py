"""A server is the place of one KMA."""

from datetime import datetime, timedelta

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.reasons import ReasonsField

server_name = RegexValidator(
    r"^[a-z0-9][a-z0-9.-]{0,62}$",
    _(
        "Lower-case a–z, 0–9, dots and hyphens, at most 63 characters. The first character "
        "must be a–z or 0–9."
    ),
)


class ServerState(models.TextChoices):
    NEW = "new", _("no heartbeat yet")
    ALIVE = "alive", _("online")
    SILENT = "silent", _("offline")


class Duty(models.TextChoices):
    """Holds what people let a server do. Cordoned: nothing new begins there. Draining: what runs there ends
    or moves."""

    ACTIVE = "active", _("in service")
    CORDONED = "cordoned", _("cordoned")
    DRAINING = "draining", _("draining")


# A KMA that polls every 2 s confirms a change within 4 s, one that polls every 10 s within 20 s.
DISOBEYS_AFTER_SECONDS = 30.0


class Server(models.Model):
    """Holds what its KMA said last. `last_seen_at` is by our clock, `clock_skew_seconds` is theirs minus
    ours.

    To be heard is not to obey. `last_seen_at`: an authenticated heartbeat arrived. `desired_state_taken_at`:
    it was answered, and the KMA had confirmed what it was sent before. docs/explanation/runs.md says who goes
    by which.
    """

    name = models.CharField(_("name"), max_length=63, unique=True, validators=[server_name])
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    last_seen_at = models.DateTimeField(_("last heartbeat"), null=True, editable=False, db_index=True)
    # Since then it is heard without a pause.
    heard_since = models.DateTimeField(null=True, editable=False)
    desired_state_taken_at = models.DateTimeField(_("desired state accepted"), null=True, editable=False)
    # The version in the last answer that was made whole.
    desired_version_sent = models.CharField(max_length=64, default="", editable=False)
    boot = models.UUIDField(_("boot id"), null=True, editable=False)
    kma_version = models.CharField(_("KMA version"), max_length=60, default="", editable=False)
    # The version of the wire in its last heartbeat, where this site does not speak it; None since one was
    # accepted.
    refused_version = models.BigIntegerField(_("rejected version"), null=True, editable=False)
    clock_skew_seconds = models.FloatField(_("clock skew, s"), default=0.0, editable=False)
    spool_rows = models.BigIntegerField(_("records in spool"), default=0, editable=False)
    spool_bytes = models.BigIntegerField(_("bytes in spool"), default=0, editable=False)
    spool_limit_bytes = models.BigIntegerField(_("spool limit, bytes"), default=0, editable=False)
    spool_full = models.BooleanField(_("spool full"), default=False, editable=False)
    problems = ReasonsField(_("problems"), editable=False)
    # Hash of what the KMA said it has; the wanted one is computed from the runs.
    desired_version = models.CharField(
        _("desired-state version on the server"), max_length=64, default="", editable=False
    )
    duty = models.CharField(
        _("scheduling"), max_length=10, choices=Duty.choices, default=Duty.ACTIVE, editable=False
    )
    duty_reason = models.TextField(_("reason"), blank=True, default="", editable=False)
    # Since the duty, its reason or its end was changed last.
    duty_since = models.DateTimeField(_("since"), null=True, editable=False)
    # Then it is back in service by itself.
    duty_until = models.DateTimeField(_("until"), null=True, editable=False)
    duty_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("by"),
    )

    class Meta:
        verbose_name = _("server")
        verbose_name_plural = _("servers")
        ordering = ("name",)
        permissions = [("can_change_duty", _("Can cordon and drain servers"))]

    def __str__(self) -> str:
        return self.name

    def state(self, now: datetime) -> ServerState:
        if self.last_seen_at is None:
            return ServerState.NEW
        return ServerState.ALIVE if self.last_seen_at > lost_before(now) else ServerState.SILENT

    def seconds_disobeying(self, now: datetime) -> float:
        """Returns how long it is heard without taking what it is sent; a few seconds are nothing, see
        `obeys`."""
        known = [at for at in (self.heard_since, self.desired_state_taken_at) if at is not None]
        return max(0.0, (now - max(known)).total_seconds()) if known else 0.0

    def obeys(self, now: datetime) -> bool:
        """Returns whether it is heard and takes what it is sent."""
        return self.state(now) is ServerState.ALIVE and self.seconds_disobeying(now) <= DISOBEYS_AFTER_SECONDS


def lost_before(now: datetime) -> datetime:
    """A server last seen at this instant or earlier is lost."""
    return now - timedelta(seconds=settings.MA_LOST_AFTER_SECONDS)


class ServerToken(models.Model):
    """A secret of one KMA, stored as its SHA-256. Two are valid at a time, so that a rotation needs no
    pause."""

    server = models.ForeignKey(Server, models.CASCADE, related_name="tokens", verbose_name=_("server"))
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, editable=False)

    class Meta:
        verbose_name = _("server token")
        verbose_name_plural = _("server tokens")
        ordering = ("server", "-created_at")

    def __str__(self) -> str:
        return f"{self.server} {self.created_at:%Y-%m-%d %H:%M}"


class OfferedAgent(models.Model):
    """An agent that is registered on a server's KMA: only these can be started there."""

    server = models.ForeignKey(
        Server, models.CASCADE, related_name="offered_agents", verbose_name=_("server")
    )
    name = models.CharField(_("name"), max_length=200)
    kind = models.CharField(_("kind"), max_length=20)
    version = models.CharField(_("version"), max_length=60, default="")
    summary = models.TextField(_("summary"), default="")
    seen_at = models.DateTimeField(_("last offered"), default=timezone.now)

    class Meta:
        verbose_name = _("offered agent")
        verbose_name_plural = _("offered agents")
        ordering = ("name", "server")
        constraints = [models.UniqueConstraint(fields=["server", "name"], name="agent_once_per_server")]

    def __str__(self) -> str:
        return f"{self.name} @ {self.server}"


class ServerStop(models.Model):
    """A person stopped a setting on this one server: nothing of it begins there until somebody starts it
    again, whatever else starts or stops the setting. It outlives the pool of the setting."""

    setting = models.ForeignKey(
        "agents.LaunchSetting",
        models.CASCADE,
        related_name="server_stops",
        verbose_name=_("launch setting"),
    )
    server = models.ForeignKey(Server, models.CASCADE, related_name="setting_stops", verbose_name=_("server"))
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    reason = models.TextField(_("reason"), blank=True, default="")
    since = models.DateTimeField(_("since"), default=timezone.now)

    class Meta:
        verbose_name = _("stop on one server")
        verbose_name_plural = _("stops on one server")
        ordering = ("server__name",)
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["setting", "server"], name="setting_stopped_once_per_server")
        ]

    def __str__(self) -> str:
        return f"{self.setting} @ {self.server}"
