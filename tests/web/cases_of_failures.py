"""An object of each operation of failures/, with which it can be done."""

from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Pool
from failures.error_groups import known_errors, merges, splits
from failures.error_groups.operations import (
    JoinPart,
    MarkFixed,
    MarkNotFixed,
    MergeFingerprints,
    PartOffSetting,
    SplitFingerprint,
    WriteKnown,
)
from failures.models import FailureGroup, Fingerprint
from insights.models import PipelineRun
from insights.runs.operations import PIPELINE_RUNS, CancelPipelineRun, StartPipelineRun
from tests.web.operation_case import Case

KIND, OTHER = "v1:0123456789abcdef", "v1:fedcba9876543210"


def kind(pool: Pool, name: str = KIND) -> Fingerprint:
    now = timezone.now()
    counted = {"exception_type": "KeyError", "count": 3, "first_at": now, "last_at": now, "latest": uuid4()}
    FailureGroup.objects.create(
        fingerprint=name, activation_uuid=uuid4(), setting_key="orders", server_name="srv-1", **counted
    )
    return Fingerprint.objects.create(fingerprint=name, recent_at=now, received_at=now, **counted)


def two(pool: Pool) -> Fingerprint:
    kind(pool, OTHER)
    return kind(pool)


def by() -> dict[str, Any]:
    return {"by": User.objects.get_or_create(username="before")[0], "now": timezone.now()}


def fixed(pool: Pool) -> Fingerprint:
    row = kind(pool)
    known_errors.fixed(row.pk, "1", **by())
    return row


def merged(pool: Pool) -> Fingerprint:
    row = two(pool)
    merges.merge(OTHER, row.pk, **by())
    return row


def part(pool: Pool) -> Fingerprint:
    return Fingerprint.objects.get(pk=splits.part_off(kind(pool).pk, "orders", **by()))


def nothing_yet(pool: Pool) -> PipelineRun:
    return PipelineRun()


def running(pool: Pool) -> PipelineRun:
    return PipelineRun.objects.create(state="running", trigger="nightly")


WRITE, MERGE = "failures.can_know_errors", "failures.can_merge_fingerprints"
SAID = {"cause": "the currency", "ticket": "OPS-1"}
FIELDS = {"fields": ["cause", "ticket"]}
CASES = (
    Case(WriteKnown, kind, WRITE, SAID, FIELDS),
    Case(MarkFixed, kind, WRITE, {"version": "2"}, {"version": "2"}),
    Case(MarkNotFixed, fixed, WRITE),
    Case(MergeFingerprints, two, MERGE, {"other": OTHER}, {"other": OTHER}),
    Case(SplitFingerprint, merged, MERGE, {"other": OTHER}, {"other": OTHER}),
    Case(PartOffSetting, kind, MERGE, {"setting": "orders"}, {"in_setting": "orders"}),
    Case(JoinPart, part, MERGE),
    Case(StartPipelineRun, nothing_yet, "insights.can_run_pipeline", {"jobs": ["odd_servers"]},
         {"jobs": ["odd_servers"]}, target=PIPELINE_RUNS.target),
    Case(CancelPipelineRun, running, "insights.can_cancel_pipeline"),
)  # fmt: skip
