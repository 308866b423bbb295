"""Describes what the pipeline found: small tables that one transaction per run replaces, whole or in part.
Every row tells its run, also when that one is forgotten."""

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from insights.models.pipeline_run import PipelineRun


class InsightRow(models.Model):
    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(
        PipelineRun,
        models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name=_("pipeline run"),
    )
    setting_key = models.CharField(_("setting key"), max_length=200, blank=True)

    class Meta:
        abstract = True
        default_permissions = ()


class InsightTable(models.Model):
    """The run that last replaced rows of a table, though it may have found none. Who reads several tables
    looks here before and after: where it differs, a run was loaded in between."""

    name = models.CharField(_("table"), max_length=40, primary_key=True)
    run = models.ForeignKey(
        PipelineRun,
        models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
        verbose_name=_("pipeline run"),
    )
    rows = models.BigIntegerField(_("rows"), default=0)
    computed_at = models.DateTimeField(_("computed"))
    data_until = models.DateTimeField(_("data until"), null=True)

    class Meta:
        verbose_name = _("result table")
        verbose_name_plural = _("result tables")
        default_permissions = ()

    def __str__(self) -> str:
        return self.name


class FailureTrend(InsightRow):
    """Failures of one fingerprint in one hour of occurrence of a setting on a server."""

    hour = models.DateTimeField(_("hour"))
    server = models.CharField(_("server"), max_length=63)
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    count = models.BigIntegerField(_("failures"))
    temporary = models.BigIntegerField(_("temporary"))
    first_at = models.DateTimeField(_("first"))
    last_at = models.DateTimeField(_("last"))
    messages = models.BigIntegerField(_("messages"))

    class Meta(InsightRow.Meta):
        verbose_name = _("failure trend")
        verbose_name_plural = _("failure trends")
        constraints = [
            models.UniqueConstraint(
                fields=["hour", "setting_key", "server", "fingerprint"], name="trend_once"
            )
        ]
        indexes = [models.Index(fields=["setting_key", "hour"], name="trends_of_setting")]


class DayStatus(models.TextChoices):
    NEW = "new", pgettext_lazy("a fingerprint on a day", "new")
    RETURNED = "returned", pgettext_lazy("a fingerprint on a day", "returned")
    GONE = "gone", pgettext_lazy("a fingerprint on a day", "gone")
    SAME = "same", pgettext_lazy("a fingerprint on a day", "unchanged")


class FailureDay(InsightRow):
    """`rank`: its place in the day's list over all settings, most failures first; of one that is gone its
    place the day before, where that is known."""

    day = models.DateField(_("day"))
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    count = models.BigIntegerField(_("failures"))
    messages = models.BigIntegerField(_("messages"))
    standing = models.CharField(_("status"), max_length=10, choices=DayStatus.choices)
    rank = models.IntegerField(_("rank"), null=True)

    class Meta(InsightRow.Meta):
        verbose_name = _("daily failures of an error group")
        verbose_name_plural = _("daily failures of error groups")
        constraints = [
            models.UniqueConstraint(fields=["day", "setting_key", "fingerprint"], name="failure_day_once")
        ]
        indexes = [
            models.Index(fields=["setting_key", "day"], name="failure_days_of_setting"),
        ]


class ActivationHealth(InsightRow):
    """`handled`: None where no run of it is known. `failures_per_1000`: of handled and failed deliveries."""

    activation = models.UUIDField(_("activation id"), unique=True)
    started_at = models.DateTimeField(_("started"))
    ended_at = models.DateTimeField(_("ended"), null=True)
    duration_seconds = models.FloatField(_("duration, s"), null=True)
    handled = models.BigIntegerField(_("processed"), null=True)
    failures = models.BigIntegerField(_("failures"))
    failures_per_1000 = models.FloatField(_("failures per 1,000"), null=True)
    first_failure_at = models.DateTimeField(_("first failure"), null=True)
    tripped_at = models.DateTimeField(_("tripped at"), null=True)
    seconds_to_trip = models.FloatField(_("time to trip, s"), null=True)
    seconds_to_repair = models.FloatField(_("time to recovery, s"), null=True)
    wasted_deliveries = models.BigIntegerField(_("wasted deliveries"))
    temporary_share = models.FloatField(_("share of temporary failures"), null=True)

    class Meta(InsightRow.Meta):
        verbose_name = _("activation health")
        verbose_name_plural = _("activation health")
        indexes = [
            models.Index(fields=["setting_key", "-started_at"], name="health_of_setting"),
            models.Index(fields=["-started_at", "-id"], name="health_by_time"),
        ]


class BreakerBacktest(InsightRow):
    """Holds what a limit M would have done over history. `mode`: any (one server) or many (the quorum)."""

    m = models.IntegerField("M")
    mode = models.CharField(_("mode"), max_length=4)
    runs = models.BigIntegerField(_("instances"))
    trips = models.BigIntegerField(_("breaker trips"))
    deliveries_saved = models.BigIntegerField(_("deliveries avoided"))
    false_trips = models.BigIntegerField(_("false trips"))
    first_trip_at = models.DateTimeField(_("first trip"), null=True)
    last_trip_at = models.DateTimeField(_("last trip"), null=True)

    class Meta(InsightRow.Meta):
        verbose_name = _("threshold back-test")
        verbose_name_plural = _("threshold back-tests")
        constraints = [models.UniqueConstraint(fields=["setting_key", "m", "mode"], name="backtest_once")]


class BreakerSuggestion(InsightRow):
    """`why` is a stable word."""

    m_now = models.IntegerField(_("current M"), null=True)
    m_suggested = models.IntegerField(_("suggested M"))
    why = models.CharField(_("reason"), max_length=60)
    evidence = models.JSONField(_("evidence"), default=dict)

    class Meta(InsightRow.Meta):
        verbose_name = _("suggested threshold")
        verbose_name_plural = _("suggested thresholds")
        constraints = [models.UniqueConstraint(fields=["setting_key"], name="suggestion_once")]


class ReplaySuccess(InsightRow):
    """Holds what became of letters that were given back, by their age and by the time since the fix."""

    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    age_bucket = models.CharField(_("message age"), max_length=40)
    since_fix_bucket = models.CharField(_("time since the fix"), max_length=40)
    handled = models.BigIntegerField(_("processed"))
    failed_again = models.BigIntegerField(_("failed again"))
    dead_again = models.BigIntegerField(_("dead-lettered again"))

    class Meta(InsightRow.Meta):
        verbose_name = _("replay success rate")
        verbose_name_plural = _("replay success rate")
        constraints = [
            models.UniqueConstraint(
                fields=["setting_key", "fingerprint", "age_bucket", "since_fix_bucket"],
                name="replay_success_once",
            )
        ]


class OddServer(InsightRow):
    """A server's rate of failures beside its peers', with the bound within which it would be usual."""

    server = models.CharField(_("server"), max_length=63)
    handled = models.BigIntegerField(_("processed"))
    failures = models.BigIntegerField(_("failures"))
    rate = models.FloatField(_("failure rate"))
    peers_rate = models.FloatField(_("failure rate on other servers"), null=True)
    low = models.FloatField(_("lower bound"), null=True)
    high = models.FloatField(_("upper bound"), null=True)
    odd = models.BooleanField(_("outlier"))

    class Meta(InsightRow.Meta):
        verbose_name = _("server comparison")
        verbose_name_plural = _("server comparisons")
        constraints = [models.UniqueConstraint(fields=["setting_key", "server"], name="odd_server_once")]


class PoisonProfile(InsightRow):
    """Holds what dead letters have in common that messages which failed and recovered have not."""

    property = models.CharField(_("property"), max_length=300)
    value_bucket = models.CharField(_("value"), max_length=300)
    dead = models.BigIntegerField(_("dead-lettered"))
    recovered = models.BigIntegerField(_("recovered"))
    support = models.FloatField(_("share of messages"))
    lift = models.FloatField(_("ratio to the average"))

    class Meta(InsightRow.Meta):
        verbose_name = _("poison-message indicator")
        verbose_name_plural = _("poison-message indicators")
        constraints = [
            models.UniqueConstraint(
                fields=["setting_key", "property", "value_bucket"], name="poison_profile_once"
            )
        ]


class RetentionPlan(InsightRow):
    """Holds what retention is going to delete on a day, and how large archive and database are by then."""

    day = models.DateField(_("day"))
    rows_going = models.BigIntegerField(_("rows to delete"))
    bytes_going = models.BigIntegerField(_("bytes to delete"))
    archive_bytes = models.BigIntegerField(_("archive, bytes"), null=True)
    database_bytes = models.BigIntegerField(_("database, bytes"), null=True)

    class Meta(InsightRow.Meta):
        verbose_name = _("day of the deletion plan")
        verbose_name_plural = _("days of the deletion plan")
        constraints = [models.UniqueConstraint(fields=["day", "setting_key"], name="retention_plan_once")]
