"""Describes how often what failed where, and when. Counts of what came: they outlive the protocols that
retention deletes.

The intake of a batch adds `FailureDelta` rows, so that two intakes never wait for one row; one runner at a
time folds them into the other tables and deletes them, in one transaction. A count is the folded row and its
deltas.
"""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _


class Counted(models.Model):
    """`first_at`, `last_at`: by the servers' clocks, where these are believable. `latest`: the id of the
    latest protocol, which retention may have deleted."""

    count = models.BigIntegerField(_("count"), default=0)
    first_at = models.DateTimeField(_("first"))
    last_at = models.DateTimeField(_("last"))
    latest = models.UUIDField(_("latest protocol"))

    class Meta:
        abstract = True


class FailureDelta(Counted):
    """Holds what one batch brought of one fingerprint in one hour of an activation on a server, from one
    version."""

    setting_key = models.CharField(_("setting key"), max_length=200)
    activation_uuid = models.UUIDField(_("activation id"))
    server_name = models.CharField(_("server"), max_length=63)
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    hour = models.DateTimeField(_("hour"))
    received_at = models.DateTimeField(_("received"))
    exception_type = models.CharField(_("exception type"), max_length=255)
    place = models.CharField(_("location"), max_length=300, blank=True)
    headline = models.CharField(_("normalized text"), max_length=200, blank=True)
    agent_version = models.CharField(_("agent version"), max_length=200, blank=True)
    temporary = models.BooleanField(_("temporary"), default=False)

    class Meta:
        verbose_name = _("received failures")
        verbose_name_plural = _("received failures")
        default_permissions = ()
        indexes = [
            models.Index(fields=["activation_uuid"], name="deltas_of_activation"),
            models.Index(fields=["fingerprint"], name="deltas_of_fingerprint"),
        ]

    def __str__(self) -> str:
        return f"{self.fingerprint} +{self.count}"


class FailureGroup(Counted):
    """Failures of one fingerprint on one server in one activation."""

    activation_uuid = models.UUIDField(_("activation id"))
    setting_key = models.CharField(_("setting key"), max_length=200)
    server_name = models.CharField(_("server"), max_length=63)
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    exception_type = models.CharField(_("exception type"), max_length=255)
    place = models.CharField(_("location"), max_length=300, blank=True)
    headline = models.CharField(_("normalized text"), max_length=200, blank=True)
    agent_version = models.CharField(_("agent version"), max_length=200, blank=True)
    temporary = models.BooleanField(_("temporary"), default=False)

    class Meta:
        verbose_name = _("failure group")
        verbose_name_plural = _("failure groups")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["activation_uuid", "server_name", "fingerprint"], name="failure_group_once"
            )
        ]
        indexes = [
            models.Index(fields=["fingerprint", "-last_at"], name="groups_of_fingerprint"),
            models.Index(fields=["setting_key", "fingerprint"], name="groups_of_setting"),
            models.Index(fields=["server_name", "-last_at"], name="groups_of_server"),
        ]

    def __str__(self) -> str:
        return f"{self.fingerprint} @ {self.server_name}: {self.count}"


class FingerprintHour(models.Model):
    """Holds how often it came in an hour of a setting."""

    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    setting_key = models.CharField(_("setting key"), max_length=200)
    hour = models.DateTimeField(_("hour"))
    count = models.BigIntegerField(_("count"), default=0)

    class Meta:
        verbose_name = _("hourly error count")
        verbose_name_plural = _("hourly error counts")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["fingerprint", "setting_key", "hour"], name="fingerprint_hour_once"
            )
        ]
        indexes = [models.Index(fields=["hour", "fingerprint"], name="fingerprint_hours_by_time")]

    def __str__(self) -> str:
        return f"{self.fingerprint} {self.hour:%Y-%m-%d %H}: {self.count}"


class FingerprintVersion(models.Model):
    """Says when it last came from one version of the agent in one setting; empty: the report named no
    version."""

    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    setting_key = models.CharField(_("setting key"), max_length=200)
    agent_version = models.CharField(_("agent version"), max_length=200, blank=True)
    last_at = models.DateTimeField(_("last"))

    class Meta:
        verbose_name = _("affected agent version")
        verbose_name_plural = _("affected agent versions")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["fingerprint", "setting_key", "agent_version"], name="fingerprint_version_once"
            )
        ]
        indexes = [models.Index(fields=["last_at"], name="fingerprint_versions_by_time")]

    def __str__(self) -> str:
        return f"{self.fingerprint} @ {self.agent_version}"


class Fingerprint(Counted):
    """One kind of failure, over everything. `merged_into`: a person said that it is the same as that one; its
    counts stay its own. `recent_at`: the last of it and of those merged into it."""

    fingerprint = models.CharField(_("fingerprint"), max_length=64, primary_key=True)
    exception_type = models.CharField(_("exception type"), max_length=255)
    place = models.CharField(_("location"), max_length=300, blank=True)
    headline = models.CharField(_("normalized text"), max_length=200, blank=True)
    recent_at = models.DateTimeField(_("last"))
    received_at = models.DateTimeField(_("first received"))
    merged_into: models.ForeignKey[Any, Any] = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="merged", verbose_name=_("merged into")
    )

    # A part of that one which a person split off: its failures in one setting
    # (`failures.error_groups.splits`).
    part_of: models.ForeignKey[Any, Any] = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="parts", verbose_name=_("split off from")
    )
    part_setting = models.CharField(_("split-off setting"), max_length=200, blank=True, default="")

    class Meta:
        verbose_name = _("error group")
        verbose_name_plural = _("error groups")
        ordering = ("-recent_at", "-fingerprint")
        default_permissions = ("view",)
        permissions = [("can_merge_fingerprints", _("Can merge and split error groups"))]
        indexes = [
            models.Index(
                fields=["-recent_at", "-fingerprint"],
                condition=models.Q(merged_into=None),
                name="fingerprints_by_time",
            ),
            models.Index(fields=["-received_at", "-fingerprint"], name="fingerprints_by_receipt"),
        ]

    def __str__(self) -> str:
        return f"{self.exception_type} · {self.place}"


class FoldMark(models.Model):
    """One row: who holds its lock folds."""

    folded_at = models.DateTimeField(_("counted until"), null=True)

    class Meta:
        verbose_name = _("counting checkpoint")
        verbose_name_plural = _("counting checkpoints")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.folded_at)
