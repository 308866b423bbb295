"""What a run of the pipeline has found of the world of tests/web/factories.py, and runs in every state."""

from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import uuid4

from django.utils import timezone

from agents.models import Activation
from failures.models import FailureProtocol
from insights.models import (
    ActivationHealth,
    BreakerBacktest,
    BreakerSuggestion,
    FailureDay,
    FailureTrend,
    InsightTable,
    OddServer,
    PipelineRun,
    PoisonProfile,
    ReplaySuccess,
    RetentionPlan,
)
from insights.reasons import STAGES_FAILED
from insights.runs.folder import TABLES

STAGES = ("archive", "failure_trends", "activation_health", "breaker_backtest")


def run_row(state: str = "done", *, hours: float = 1, **more: Any) -> PipelineRun:
    now = timezone.now()
    opened = state in ("waiting", "running")
    at = now - timedelta(hours=hours)
    done = {"state": "done", "done": 0, "total": 0, "rows": 1200, "seconds": 2.5, "error": ""}
    stages: list[dict[str, Any]] = [{"stage": name, **done} for name in STAGES]
    if state == "running":
        stages[2] |= {"state": "running", "done": 3, "total": 8, "share": 0.375}
        stages[3] |= {"state": "waiting"}
    row: dict[str, Any] = {
        "state": state, "open": True if opened else None, "trigger": "nightly", "asked_at": at,
        "started_at": at,
        "ended_at": None if opened else at + timedelta(minutes=2), "heartbeat_at": now, "stages": stages,
        "lease_until": now + PipelineRun.lease if opened else None,
        "master": "local[*]", "host": "srv-1", "pid": 4711, "memory_peak_bytes": 1_900_000_000,
        "window_until": at - timedelta(minutes=10), "rows_loaded": 4321, "versions": {"spark": "4.3.0"},
    }  # fmt: skip
    if state in ("failed", "partial"):
        stages[3] |= {"state": "failed", "error": "ValueError: <b>no such day</b>"}
        row["problem"] = STAGES_FAILED(errors="breaker_backtest: ValueError: <b>no such day</b>")
    return PipelineRun.objects.create(**(row | more))


def found(key: str = "orders-export") -> PipelineRun:
    """A run that is done, and rows of everything."""
    run, today = run_row(), timezone.now().astimezone(UTC).date()
    kept = FailureProtocol.objects.filter(setting_key=key).order_by()
    prints = list(kept.values_list("fingerprint", flat=True).distinct()) or ["f" * 40]
    of = {"run": run, "setting_key": key}
    for back in range(30):
        day = today - timedelta(days=back)
        hour = datetime.combine(day, time(9), tzinfo=UTC)
        for rank, fingerprint in enumerate(prints):
            count = 5 + back * 37 % 101 + rank
            FailureDay.objects.create(
                **of, day=day, fingerprint=fingerprint, count=count, messages=count // 2, rank=rank + 1,
                standing=("new", "same", "returned")[(back + rank) % 3],
            )  # fmt: skip
            FailureTrend.objects.create(
                **of, hour=hour, server="srv-1", fingerprint=fingerprint, count=count, temporary=1,
                first_at=hour,
                last_at=hour, messages=2,
            )  # fmt: skip
        RetentionPlan.objects.create(
            run=run, setting_key="", day=today + timedelta(days=back), rows_going=back * 1000 % 7001,
            bytes_going=back * 2_000_000, archive_bytes=9_000_000, database_bytes=700_000_000,
        )  # fmt: skip
    activations = Activation.objects.filter(setting__key=key).values_list("pk", "started_at")
    for index, (activation, at) in enumerate(
        [*activations, *((uuid4(), timezone.now()) for _each in range(9))]
    ):
        ActivationHealth.objects.create(
            **of, activation=activation, started_at=at - timedelta(days=index), ended_at=at,
            duration_seconds=3600.0,
            handled=900, failures=10 * index, failures_per_1000=11.0 * index, seconds_to_trip=90.0,
            seconds_to_repair=None if index % 2 else 4000.0, wasted_deliveries=index, temporary_share=0.25,
        )  # fmt: skip
    for m in (3, 6, 10, 30):
        BreakerBacktest.objects.create(
            **of, m=m, mode="any", runs=12, trips=12 // m, deliveries_saved=1200 // m, false_trips=3 // m,
            first_trip_at=timezone.now(),
        )  # fmt: skip
    evidence = {
        "runs": 12, "now": {"m": 10, "trips": 1, "deliveries_saved": 120, "false_trips": 0},
        "suggested": {"m": 6, "trips": 2, "deliveries_saved": 1200, "false_trips": 0},
    }  # fmt: skip
    BreakerSuggestion.objects.create(**of, m_now=10, m_suggested=6, why="earlier_saves", evidence=evidence)
    ReplaySuccess.objects.create(
        **of, fingerprint=prints[0], age_bucket="under_1d", since_fix_bucket="unknown", handled=90,
        failed_again=8,
        dead_again=2,
    )  # fmt: skip
    OddServer.objects.create(
        **of,
        server="srv-2",
        handled=400,
        failures=90,
        rate=0.18,
        peers_rate=0.02,
        low=0.01,
        high=0.05,
        odd=True,
    )
    PoisonProfile.objects.create(
        **of, property="<i>region</i>", value_bucket="=EU", dead=40, recovered=2, support=0.4, lift=9.5
    )
    assert run.ended_at is not None
    for name, model in TABLES.items():
        rows = model._default_manager.count()
        InsightTable.objects.create(
            name=name, run=run, rows=rows, computed_at=run.ended_at, data_until=run.window_until
        )
    return run
