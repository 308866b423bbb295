"""What a scrape reads: rows, and the counts that the broker gives, in few bounded queries. Instants are kept
as such: the age of a heartbeat grows on while nobody can read it again."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Sum

from agents.models import (
    BreakerTrip,
    ComponentCondition,
    ComponentState,
    LaunchSetting,
    ProvisionState,
    Run,
    Server,
)
from agents.models.server import ServerState
from agents.provisioning.queue_counts import figures_for
from alerts.models import Alert, Notice
from alerts.models.alert import LIVE_ALERTS, Severity
from alerts.models.notice import NoticeState
from alerts.sources import every_kind
from console.processes import ProcessHeartbeat
from dlq.index.queries import feed_lag
from dlq.models import ReplayJob
from dlq.models.replay import UNFINISHED_JOBS
from exposition.declared import Sample, Samples
from failures.models import SpoolMark
from insights.models import PipelineRun, PipelineState
from ma_site.health import MEASURED, MEASURED_WITHIN
from ma_site.scrape.declared import MOST_RUNS, MOST_SERVERS, MOST_SETTINGS, OF_SITE

SEVERITIES = {Severity.WARNING: "warning", Severity.BAD: "critical"}


def read_rows(now: datetime) -> Sequence[Sample]:
    samples = Samples(OF_SITE)
    settings = _settings(samples)
    _subscriptions(samples, settings, now)
    _runs(samples, {setting.key for setting in settings})
    _servers(samples, now)
    _site(samples, now)
    return samples.found


def _left_out(samples: Samples, label: str, there: int, most: int) -> None:
    samples.add("ma_label_values_left_out", max(0, there - most), label)


def _settings(samples: Samples) -> list[LaunchSetting]:
    """Enabled ones first, where there are too many."""
    rows = LaunchSetting.objects.select_related("pool").defer("parameters", "description")
    found = list(rows.order_by("-enabled", "key")[: MOST_SETTINGS + 1])
    there = LaunchSetting.objects.count() if len(found) > MOST_SETTINGS else len(found)
    _left_out(samples, "setting", there, MOST_SETTINGS)
    found = found[:MOST_SETTINGS]
    tripped = set(BreakerTrip.objects.filter(ended_at=None).values_list("setting_id", flat=True))
    for each in found:
        samples.add("ma_setting_info", 1, each.key, each.kind, each.timing, each.spread, each.pool.name)
        samples.add("ma_setting_enabled", each.enabled, each.key)
        samples.add("ma_setting_tripped", each.pk in tripped, each.key)
        samples.add("ma_setting_provisioned", each.provision_state == ProvisionState.READY, each.key)
    return found


def _subscriptions(samples: Samples, settings: Sequence[LaunchSetting], now: datetime) -> None:
    """The broker is asked as for a page; while it does not answer its last counts are shown, with their
    age."""
    oldest = None
    for key, figures in figures_for(each for each in settings if each.takes_messages).items():
        if figures.at is None:
            continue
        oldest = min(oldest or figures.at, figures.at)
        for state in ("waiting", "delayed", "in_delivery"):
            samples.add("ma_subscription_messages", getattr(figures, state) or 0, key, state)
        samples.add("ma_subscription_consumers", figures.consumers or 0, key)
        samples.add("ma_dead_letters", figures.dead or 0, key)
    if oldest is not None:
        samples.add("ma_broker_counts_age_seconds", oldest)
    lag = feed_lag(now)
    if lag is not None:
        samples.add("ma_index_lag_messages", lag)


TOTALS = ("handled", "failed", "temporary", "recovered")


def _runs(samples: Samples, keys: set[str]) -> None:
    """A setting has one run on a server, save while one of an earlier epoch ends."""
    names = ("activation__setting__key", "server__name", "state", "connected", "in_progress", *TOTALS)
    rows = Run.objects.filter(closed_at=None).order_by("pk").values_list(*names)
    states, pairs = Counter[tuple[str, str]](), dict[tuple[str, str], list[int]]()
    found = list(rows[: MOST_RUNS + 1])
    there = Run.objects.filter(closed_at=None).count() if len(found) > MOST_RUNS else len(found)
    _left_out(samples, "run", there, MOST_RUNS)
    for key, server, state, *numbers in found[:MOST_RUNS]:
        if key in keys:
            states[key, state] += 1
            known = pairs.setdefault((key, server), [0] * len(numbers))
            pairs[key, server] = [one + other for one, other in zip(known, numbers, strict=True)]
    for (key, state), number in states.items():
        samples.add("ma_setting_runs", number, key, state)
    for (key, server), (connected, in_progress, *totals) in pairs.items():
        samples.add("ma_run_connected", min(1, connected), key, server)
        samples.add("ma_run_in_progress", in_progress, key, server)
        for name, total in zip(TOTALS, totals, strict=True):
            samples.add(f"ma_run_{name}_total", total, key, server)


def _servers(samples: Samples, now: datetime) -> None:
    found = list(Server.objects.order_by("name")[: MOST_SERVERS + 1])
    there = Server.objects.count() if len(found) > MOST_SERVERS else len(found)
    _left_out(samples, "server", there, MOST_SERVERS)
    marks = SpoolMark.objects.order_by().values("server")
    marks = marks.annotate(Sum("stored_up_to"), Sum("set_aside"), Sum("never_came"))
    of_server = {mark["server"]: mark for mark in marks}
    for server in found[:MOST_SERVERS]:
        name = server.name
        samples.add("ma_server_info", 1, name, server.kma_version, server.duty)
        samples.add("ma_server_up", server.state(now) is ServerState.ALIVE, name)
        samples.add("ma_server_obeys", server.obeys(now), name)
        if server.last_seen_at is not None:
            samples.add("ma_server_heartbeat_age_seconds", server.last_seen_at, name)
            samples.add("ma_server_clock_skew_seconds", server.clock_skew_seconds, name)
        samples.add("ma_spool_records", server.spool_rows, name)
        samples.add("ma_spool_bytes", server.spool_bytes, name)
        samples.add("ma_spool_limit_bytes", server.spool_limit_bytes, name)
        samples.add("ma_spool_full", server.spool_full, name)
        mark: Mapping[str, Any] = of_server.get(server.pk, {})
        samples.add("ma_intake_records_total", mark.get("stored_up_to__sum", 0), name)
        samples.add("ma_intake_refused_records_total", mark.get("set_aside__sum", 0), name)
        samples.add("ma_intake_missing_records_total", mark.get("never_came__sum", 0), name)


def _site(samples: Samples, now: datetime) -> None:
    for row in ComponentState.objects.filter(name__in=MEASURED):
        answers = row.state == ComponentCondition.OK and now - row.measured_at <= MEASURED_WITHIN
        samples.add("ma_component_up", answers, row.name)
        samples.add("ma_component_measured_age_seconds", row.measured_at, row.name)
    for process, at in ProcessHeartbeat.objects.values_list("process", "at"):
        samples.add("ma_process_heartbeat_age_seconds", at, process)
    _alerts(samples)
    samples.add("ma_notices_pending", Notice.objects.filter(state=NoticeState.PENDING).count())
    jobs = dict(
        ReplayJob.objects.filter(state__in=UNFINISHED_JOBS)
        .order_by()
        .values_list("state")
        .annotate(Count("pk"))
    )
    for state in UNFINISHED_JOBS:
        samples.add("ma_replay_jobs", jobs.get(state.value, 0), state.value)
    ended = PipelineRun.objects.filter(state=PipelineState.DONE).order_by("-asked_at", "-pk")
    ended_at = ended.values_list("ended_at", flat=True).first()
    if ended_at is not None:
        samples.add("ma_pipeline_last_success_age_seconds", ended_at)


def _alerts(samples: Samples) -> None:
    """Each kind that there is, with 0 where none is open."""
    live = Alert.objects.filter(state__in=LIVE_ALERTS).order_by().values_list("kind", "severity")
    counts = {(kind.name, int(kind.severity)): 0 for kind in every_kind()}
    counts |= {(kind, severity): number for kind, severity, number in live.annotate(Count("pk"))}
    for (kind, severity), number in sorted(counts.items()):
        samples.add("ma_alerts_open", number, kind, SEVERITIES[Severity(severity)])
