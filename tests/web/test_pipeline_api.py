"""Runs of the pipeline and what they found, over REST."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from console.audit.models import AuditEntry
from insights.models import PipelineRun
from insights.reasons import PROCESS_GONE
from insights.runs.folder import TABLES
from tests.web.insight_rows import found, run_row
from tests.web.pipeline import use

pytestmark = pytest.mark.django_db

RUNS = "/api/v1/pipeline-runs/"


@pytest.fixture(autouse=True)
def switched_on(settings: Any, tmp_path: Path) -> None:
    use(settings, tmp_path, "well")


def of(person: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(person)
    return client


def test_who_may_look_begin_and_cancel(viewer: User, operator: User, outsider: User) -> None:
    run = run_row("running")
    for path in (RUNS, f"{RUNS}{run.pk}/", "/api/v1/insights/", "/api/v1/insights/odd-servers/"):
        assert of(outsider).get(path).status_code == 403
        assert of(viewer).get(path).status_code == 200
    assert of(viewer).post(RUNS, {}).status_code == 403
    assert of(viewer).post(f"{RUNS}{run.pk}/cancel/").status_code == 403
    assert of(operator).post(f"{RUNS}{run.pk}/cancel/").data["cancel_asked_by"] == "operator"


@pytest.mark.both_databases
def test_a_run_is_begun_once_and_cancelled(operator: User) -> None:
    answer = of(operator).post(
        RUNS, {"jobs": ["odd_servers"], "since": "2026-11-01T00:00:00Z"}, format="json"
    )
    assert answer.status_code == 201 and answer.data["state"] == "waiting" and answer.data["by"] == "operator"
    run = PipelineRun.objects.get()
    assert run.jobs == ["odd_servers"] and run.since is not None
    again = of(operator).post(RUNS, {}, format="json")
    assert (again.status_code, again.json()["error"]) == (409, "open")
    assert of(operator).post(f"{RUNS}{run.pk}/cancel/").data["state"] == "cancelled"
    assert of(operator).post(f"{RUNS}{run.pk}/cancel/").status_code == 409


@pytest.mark.parametrize(
    "body", [{"jobs": ["moon"]}, {"job": []}, {"since": "never"}, {"jobs": "odd_servers"}, {"jobs": [["x"]]}]
)
def test_what_is_not_understood_is_refused(operator: User, body: Any) -> None:
    assert of(operator).post(RUNS, body, format="json").status_code == 400
    assert not PipelineRun.objects.exists()


def test_switched_off_it_is_refused_with_the_reason(operator: User, settings: Any) -> None:
    settings.MA_ARCHIVE_URL = ""
    answer = of(operator).post(RUNS, {}, format="json")
    assert (answer.status_code, answer.json()["error"]) == (409, "off")


@pytest.mark.both_databases
def test_every_table_is_told_with_its_age_and_its_rows(viewer: User) -> None:
    run, client = found("orders"), of(viewer)
    told = {row["name"]: row for row in client.get("/api/v1/insights/").json()}
    assert told.keys() == TABLES.keys() and told["odd_servers"]["run"] == str(run.pk)
    for name in TABLES:
        path = f"/api/v1/insights/{name.replace('_', '-')}/"
        rows = client.get(path, {"setting": "orders"}).json()["results"]
        assert name == "retention_plan" or (rows and rows[0]["run"] == str(run.pk)), name
        assert client.get(path, {"setting": "nobody"}).json()["results"] == []
        assert client.get(path, {"settng": "orders"}).status_code == 400


def test_a_problem_is_said_in_the_language_of_the_reader_with_its_code(viewer: User) -> None:
    run = run_row("dead", problem=PROCESS_GONE(pid=7, host="srv-1"))
    english = of(viewer).get(f"{RUNS}{run.pk}/").json()
    russian = of(viewer).get(f"{RUNS}{run.pk}/", headers={"Accept-Language": "ru"}).json()

    assert english["problem"] == "The pipeline process (7 on srv-1) no longer exists."
    assert russian["problem"] == "Процесс конвейера (7 на srv-1) больше не существует."
    for told in (english, russian):
        assert told["problem_code"] == "pipeline_run.process_gone"
        assert told["problem_params"] == {"pid": 7, "host": "srv-1"}


def test_who_begins_and_cancels_is_in_the_audit_and_who_may_not_too(operator: User, viewer: User) -> None:
    begun = of(operator).post(RUNS, {}, format="json").json()["id"]
    assert of(operator).post(RUNS, {}, format="json").json()["where"] == "pipeline-runs"
    for person, status in ((viewer, 403), (operator, 200), (operator, 409)):
        assert of(person).post(f"{RUNS}{begun}/cancel/").status_code == status
    assert of(viewer).post(RUNS, {}, format="json").status_code == 403

    target = f"pipeline_run:{begun}"
    rows = AuditEntry.objects.order_by("pk").values_list("action", "target", "result", "by_name")
    assert list(rows) == [
        ("pipeline_run.start", target, "done", "operator"),
        ("pipeline_run.start", "pipeline_run:", "refused", "operator"),
        ("pipeline_run.cancel", target, "refused", "viewer"),
        ("pipeline_run.cancel", target, "done", "operator"),
        ("pipeline_run.cancel", target, "refused", "operator"),
        ("pipeline_run.start", "pipeline_run:", "refused", "viewer"),
    ]
