"""Figures by scope and time. A scope is the installation, a setting, a server, or a setting on a server.

What a KMA reports is a row of `Minute` at first. A fold adds it to the rows of the wider scopes, of its
minute, hour and day at once. An hour after it the row itself is added to the hour and the day of its setting
on its server, and deleted in the same transaction; its minutes are kept as bytes. So of a setting on a
server `Hour` and `Minute` rows are disjoint, and of a wider scope each of the three tables holds everything.

Who changes anything but a new `Minute` has the lock of the one `MetricsMark`.
"""

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import LaunchSetting, Server


class Scope(models.Model):
    """`key`: `*` the installation, `s5` a setting, `h2` a server, `s5h2` a setting on a server, by their
    primary keys. Where the row that it names is gone, so are its figures soon (`metrics.rollup.sweep`)."""

    id = models.AutoField(primary_key=True)
    key = models.CharField(max_length=60, unique=True)
    setting = models.ForeignKey(
        LaunchSetting,
        models.SET_NULL,
        null=True,
        related_name="metric_scopes",
        verbose_name=_("launch setting"),
    )
    server = models.ForeignKey(
        Server, models.SET_NULL, null=True, related_name="metric_scopes", verbose_name=_("server")
    )

    class Meta:
        verbose_name = _("metric scope")
        verbose_name_plural = _("metric scopes")
        default_permissions = ()

    def __str__(self) -> str:
        return self.key


class Sums(models.Model):
    """Columns of `metrics.rules.Figures`. Histograms as text: `metrics.rules.as_text`."""

    succeeded = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    temporary = models.BigIntegerField(default=0)
    recovered = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    no_timestamp = models.BigIntegerField(default=0)
    before_sent = models.BigIntegerField(default=0)
    busy_seconds = models.FloatField(default=0.0)
    capacity_seconds = models.FloatField(default=0.0)
    spool_seconds = models.FloatField(default=0.0)
    children_bytes = models.BigIntegerField(default=0)
    processing = models.TextField(default="")
    critical = models.TextField(default="")

    class Meta:
        abstract = True


def _scope() -> "models.ForeignKey[Scope, Scope]":
    """Without a constraint: rows of a scope that is gone are swept a few at a time, and no scope waits for
    them."""
    return models.ForeignKey(Scope, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+")


class Minute(Sums):
    """What one record said; `id`: the record's. `span`: the minute in which it began by our clock, `began_at`
    and `ended_at` the same exactly; `occurred_at` and `until` are the KMA's words. `long`: it is shared among
    several minutes. `folded`: the wider scopes have it."""

    id = models.UUIDField(primary_key=True)
    scope = _scope()
    span = models.IntegerField()
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    occurred_at = models.DateTimeField()
    until = models.DateTimeField()
    received_at = models.DateTimeField()
    verified = models.BooleanField()
    long = models.BooleanField(default=False)
    folded = models.BooleanField(default=False)

    class Meta:
        verbose_name = _("reported minute")
        verbose_name_plural = _("reported minutes")
        default_permissions = ()
        indexes = [
            models.Index(fields=["folded", "span"], name="minutes_to_fold"),
            models.Index(fields=["scope", "span"], name="minutes_of_scope"),
        ]

    def __str__(self) -> str:
        return f"{self.scope_id} {self.span}"


class Summed(Sums):
    """`key`: the scope's number and the span in one (`key_of`), so that rows of a scope lie side by side in
    the only index that reading needs. Of the broker: the last value known in the span; None: unknown."""

    key = models.BigIntegerField(primary_key=True)
    scope = _scope()
    span = models.IntegerField(db_index=True)
    waiting = models.BigIntegerField(null=True)
    delayed = models.BigIntegerField(null=True)
    in_delivery = models.BigIntegerField(null=True)
    dead = models.BigIntegerField(null=True)
    oldest_seconds = models.FloatField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.scope_id} {self.span}"


GAUGES = ("waiting", "delayed", "in_delivery", "dead", "oldest_seconds")


def key_of(scope: int, span: int) -> int:
    return scope << 32 | span


class ScopeMinute(Summed):
    """Of the wider scopes alone."""

    class Meta(Summed.Meta):
        verbose_name = _("figures for a minute")
        verbose_name_plural = _("figures by minute")
        default_permissions = ()


class Hour(Summed):
    class Meta(Summed.Meta):
        verbose_name = _("figures for an hour")
        verbose_name_plural = _("figures by hour")
        default_permissions = ()


class Day(Summed):
    class Meta(Summed.Meta):
        verbose_name = _("figures for a day")
        verbose_name_plural = _("figures by day")
        default_permissions = ()


class HourMinutes(models.Model):
    """The minutes of an hour of a setting on a server (`metrics.rules.pack_minutes`); `key` and `span` as of
    the hour."""

    key = models.BigIntegerField(primary_key=True)
    span = models.IntegerField(db_index=True)
    minutes = models.BinaryField()

    class Meta:
        verbose_name = _("minutes of an hour")
        verbose_name_plural = _("minutes by hour")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.key)


class MetricsMark(models.Model):
    """One row: who holds its lock changes figures. `sampled`: the last minute of which somebody asked the
    broker."""

    sampled = models.IntegerField(default=0)
    folded_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("metrics checkpoint")
        verbose_name_plural = _("metrics checkpoints")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.folded_at)
