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
        verbose_name=_("run of the pipeline"),
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
        verbose_name=_("run of the pipeline"),
    )
    rows = models.BigIntegerField(_("rows"), default=0)
    computed_at = models.DateTimeField(_("computed"))
    data_until = models.DateTimeField(_("data until"), null=True)

    class Meta:
        verbose_name = _("table of results")
        verbose_name_plural = _("tables of results")
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
        verbose_name = _("trend of failures")
        verbose_name_plural = _("trends of failures")
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
    SAME = "same", pgettext_lazy("a fingerprint on a day", "as before")


class FailureDay(InsightRow):
    """`rank`: its place in the day's list over all settings, most failures first; of one that is gone its
    place the day before, where that is known."""

    day = models.DateField(_("day"))
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    count = models.BigIntegerField(_("failures"))
    messages = models.BigIntegerField(_("messages"))
    standing = models.CharField(_("standing"), max_length=10, choices=DayStatus.choices)
    rank = models.IntegerField(_("rank"), null=True)

    class Meta(InsightRow.Meta):
        verbose_name = _("day of a fingerprint")
        verbose_name_plural = _("days of fingerprints")
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
    handled = models.BigIntegerField(_("handled"), null=True)
    failures = models.BigIntegerField(_("failures"))
    failures_per_1000 = models.FloatField(_("failures per 1,000"), null=True)
    first_failure_at = models.DateTimeField(_("first failure"), null=True)
    tripped_at = models.DateTimeField(_("tripped"), null=True)
    seconds_to_trip = models.FloatField(_("first failure to trip, s"), null=True)
    seconds_to_repair = models.FloatField(_("trip to first success, s"), null=True)
    wasted_deliveries = models.BigIntegerField(_("wasted deliveries"))
    temporary_share = models.FloatField(_("share of temporary"), null=True)

    class Meta(InsightRow.Meta):
        verbose_name = _("health of an activation")
        verbose_name_plural = _("health of activations")
        indexes = [
            models.Index(fields=["setting_key", "-started_at"], name="health_of_setting"),
            models.Index(fields=["-started_at", "-id"], name="health_by_time"),
        ]


class BreakerBacktest(InsightRow):
    """Holds what a limit M would have done over history. `mode`: any (one server) or many (the quorum)."""

    m = models.IntegerField("M")
    mode = models.CharField(_("mode"), max_length=4)
    runs = models.BigIntegerField(_("runs"))
    trips = models.BigIntegerField(_("trips"))
    deliveries_saved = models.BigIntegerField(_("deliveries saved"))
    false_trips = models.BigIntegerField(_("false trips"))
    first_trip_at = models.DateTimeField(_("first trip"), null=True)
    last_trip_at = models.DateTimeField(_("last trip"), null=True)

    class Meta(InsightRow.Meta):
        verbose_name = _("back-test of a limit")
        verbose_name_plural = _("back-tests of limits")
        constraints = [models.UniqueConstraint(fields=["setting_key", "m", "mode"], name="backtest_once")]


class BreakerSuggestion(InsightRow):
    """`why` is a stable word."""

    m_now = models.IntegerField(_("M now"), null=True)
    m_suggested = models.IntegerField(_("suggested M"))
    why = models.CharField(_("why"), max_length=60)
    evidence = models.JSONField(_("evidence"), default=dict)

    class Meta(InsightRow.Meta):
        verbose_name = _("suggested limit")
        verbose_name_plural = _("suggested limits")
        constraints = [models.UniqueConstraint(fields=["setting_key"], name="suggestion_once")]


class ReplaySuccess(InsightRow):
    """Holds what became of letters that were given back, by their age and by the time since the fix."""

    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    age_bucket = models.CharField(_("age of the letter"), max_length=40)
    since_fix_bucket = models.CharField(_("since the fix"), max_length=40)
    handled = models.BigIntegerField(_("handled"))
    failed_again = models.BigIntegerField(_("failed again"))
    dead_again = models.BigIntegerField(_("dead again"))

    class Meta(InsightRow.Meta):
        verbose_name = _("success of giving back")
        verbose_name_plural = _("success of giving back")
        constraints = [
            models.UniqueConstraint(
                fields=["setting_key", "fingerprint", "age_bucket", "since_fix_bucket"],
                name="replay_success_once",
            )
        ]


class OddServer(InsightRow):
    """A server's rate of failures beside its peers', with the bound within which it would be usual."""

    server = models.CharField(_("server"), max_length=63)
    handled = models.BigIntegerField(_("handled"))
    failures = models.BigIntegerField(_("failures"))
    rate = models.FloatField(_("rate"))
    peers_rate = models.FloatField(_("rate of its peers"), null=True)
    low = models.FloatField(_("low"), null=True)
    high = models.FloatField(_("high"), null=True)
    odd = models.BooleanField(_("odd"))

    class Meta(InsightRow.Meta):
        verbose_name = _("server beside its peers")
        verbose_name_plural = _("servers beside their peers")
        constraints = [models.UniqueConstraint(fields=["setting_key", "server"], name="odd_server_once")]


class PoisonProfile(InsightRow):
    """Holds what dead letters have in common that messages which failed and recovered have not."""

    property = models.CharField(_("property"), max_length=300)
    value_bucket = models.CharField(_("value"), max_length=300)
    dead = models.BigIntegerField(_("dead"))
    recovered = models.BigIntegerField(_("recovered"))
    support = models.FloatField(_("support"))
    lift = models.FloatField(_("lift"))

    class Meta(InsightRow.Meta):
        verbose_name = _("mark of poison messages")
        verbose_name_plural = _("marks of poison messages")
        constraints = [
            models.UniqueConstraint(
                fields=["setting_key", "property", "value_bucket"], name="poison_profile_once"
            )
        ]


class RetentionPlan(InsightRow):
    """Holds what retention is going to delete on a day, and how large archive and database are by then."""

    day = models.DateField(_("day"))
    rows_going = models.BigIntegerField(_("rows that go"))
    bytes_going = models.BigIntegerField(_("bytes that go"))
    archive_bytes = models.BigIntegerField(_("archive, bytes"), null=True)
    database_bytes = models.BigIntegerField(_("database, bytes"), null=True)

    class Meta(InsightRow.Meta):
        verbose_name = _("day of the plan of retention")
        verbose_name_plural = _("days of the plan of retention")
        constraints = [models.UniqueConstraint(fields=["day", "setting_key"], name="retention_plan_once")]
