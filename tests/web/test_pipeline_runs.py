"""A run of the pipeline from its row to its results, with a stand-in for Spark."""

import errno
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from console.jobs import detached
from console.operations.refusals import Refused
from console.reasons import NO_REASON
from insights.models import (
    BreakerBacktest,
    BreakerSuggestion,
    FailureTrend,
    InsightTable,
    PipelineRun,
    PipelineTrigger,
)
from insights.runs import spark, start, worker
from insights.runs import worker as planning
from insights.runs.folder import RunFolder, tail_of_log
from insights.runs.loader import load
from insights.runs.start import cancel, request_run
from insights.runs.worker import work_on_run
from tests.web.pipeline import asked, until, use, worked
from tests.web.test_failures_intake_at_once import at_once

pytestmark = [pytest.mark.process, pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(spark, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(start, "BEAT_SECONDS", 0.02)
    use(settings, tmp_path, "well")


def trends() -> list[tuple[int, int]]:
    return [(row.hour.hour, row.count) for row in FailureTrend.objects.order_by("hour")]


def test_a_run_ends_with_its_results_in_their_tables() -> None:
    run = worked()

    assert (run.state, run.open, run.problem, run.rows_loaded, run.percent) == (
        "done",
        None,
        NO_REASON,
        5,
        100,
    )
    assert run.window_until and run.window_until.hour == 12 and run.versions == {"spark": "stand-in"}
    assert trends() == [(9, 5), (10, 7)]
    assert {row.run_id for row in FailureTrend.objects.all()} == {run.pk}
    assert BreakerSuggestion.objects.get().evidence["suggested"]["deliveries_saved"] == 40
    assert InsightTable.objects.get(name="failure_trends").run_id == run.pk
    assert "stand-in begins well" in tail_of_log(run)
    assert not RunFolder(run).results.exists() and RunFolder(run).plan.exists()


def test_loading_again_replaces_what_it_speaks_of_and_keeps_the_rest(settings: Any, tmp_path: Path) -> None:
    first = worked()
    assert worked().state == "done" and trends() == [(9, 5), (10, 7)]
    use(settings, tmp_path, "more")
    last = worked()

    assert trends() == [(9, 5), (10, 8), (11, 1)]
    assert BreakerBacktest.objects.count() == 2
    assert {row.run_id for row in FailureTrend.objects.filter(hour__hour__gte=10)} == {last.pk} != {first.pk}


def test_the_plan_holds_no_secret_and_the_application_gets_none_but_the_account_of_the_database(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MA_BROKER_PASSWORD", "a broker's secret")
    monkeypatch.setenv("MA_RUN_FOLDER", "/kept")
    run = worked()
    text = RunFolder(run).plan.read_text()
    plan = json.loads(text)

    assert plan["run"] == str(run.pk) and len(plan["jobs"]) == 7
    assert settings.SECRET_KEY not in text
    assert "password" not in text.lower().replace("password_env", "").replace("ma_pipeline_jdbc_password", "")
    with start.Hold(run) as hold:
        given = spark._environment(hold)
    assert "a broker's secret" not in given.values() and given["MA_RUN_FOLDER"] == "/kept"
    assert {name for name in given if name.startswith("MA_")} == {
        "MA_RUN_FOLDER", "MA_PIPELINE_RUN", "MA_PIPELINE_JDBC_URL", "MA_PIPELINE_JDBC_USER",
        "MA_PIPELINE_JDBC_PASSWORD",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("fails", "exit code 3: ValueError: no such day"),
        ("says nothing", "no report"),
        ("miscounts", "failure_trends: 2 rows found, 99 reported"),
        ("torn", "part-1.parquet of failure_trends cannot be read"),
        ("nonsense", "breakersuggestion.m_suggested"),
    ],
)
def test_a_run_that_fails_says_why_and_changes_no_result(
    settings: Any, tmp_path: Path, mode: str, says: str
) -> None:
    before = worked()
    use(settings, tmp_path, mode)
    run = worked()

    assert run.state == "failed" and says in str(run.problem)
    assert trends() == [(9, 5), (10, 7)]
    assert {row.run_id for row in BreakerBacktest.objects.all()} == {before.pk}


@pytest.mark.parametrize("step", [(RunFolder, "make"), (planning, "_write"), (spark, "_ship")])
def test_a_run_that_finds_no_room_for_a_file_says_so(
    monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "plan.json")

    with monkeypatch.context() as patched:
        patched.setattr(*step, full)
        run = worked()
    assert run.state == "failed" and "No space left on device: 'plan.json'" in str(run.problem)
    assert worked().state == "done"


def test_one_job_that_fails_leaves_the_others_their_results(settings: Any, tmp_path: Path) -> None:
    use(settings, tmp_path, "partial")
    run = worked()

    assert (run.state, run.problem.code) == ("partial", "pipeline_run.stages_failed")
    assert str(run.problem) == "retention_plan: ValueError: of this job alone"
    assert trends() == [(9, 5), (10, 7)]


def test_nothing_new_is_a_run_that_is_done(settings: Any, tmp_path: Path) -> None:
    worked()
    use(settings, tmp_path, "nothing")
    run = worked()

    assert (run.state, run.rows_loaded) == ("done", 0)
    assert trends() == [(9, 5), (10, 7)]


def test_it_is_refused_where_it_is_off_or_wrongly_asked(settings: Any) -> None:
    now = timezone.now()
    for wrong, code in (({"jobs": ["moon"]}, "unknown_job"), ({"since": now, "until": now}, "empty_span")):
        with pytest.raises(Refused) as refused:
            asked(**wrong)
        assert refused.value.code == code
    settings.MA_PIPELINE_SUBMIT = "/nowhere/spark-submit"
    with pytest.raises(Refused, match="Missing: spark-submit"):
        asked()
    settings.MA_ARCHIVE_URL = ""
    with pytest.raises(Refused, match="disabled"):
        asked()
    assert not PipelineRun.objects.exists()


def test_of_two_that_are_asked_for_at_once_one_begins() -> None:
    def begin() -> Any:
        try:
            return request_run(PipelineTrigger.PAGE, timezone.now())
        except Refused as refused:
            return refused.code

    answers = at_once(*[begin] * 4)
    assert sorted(answers, key=str).count("open") == 3
    assert PipelineRun.objects.count() == 1


def test_of_two_processes_for_one_run_one_works() -> None:
    run = asked()
    answers = at_once(*[lambda: work_on_run(run.pk)] * 3)

    assert [answer.state for answer in answers if answer] == ["done"]
    assert trends() == [(9, 5), (10, 7)]


def test_cancelling_ends_all_that_it_started(settings: Any, tmp_path: Path) -> None:
    use(settings, tmp_path, "forks")
    run = asked()
    thread = threading.Thread(target=in_thread, args=(lambda: work_on_run(run.pk),))
    thread.start()
    until(lambda: (RunFolder(run).path / "hanging").exists())
    assert len(detached.of_run(run.pk)) >= 2
    until(lambda: PipelineRun.objects.get().stages)
    shown = PipelineRun.objects.get()
    assert (shown.stages[0]["done"], shown.percent) == (1, 3)

    assert cancel(run, timezone.now(), by="chief")
    thread.join(30)
    run.refresh_from_db()
    assert (run.state, run.cancel_asked_by, run.open) == ("cancelled", "chief", None)
    assert detached.of_run(run.pk) == []
    assert not cancel(run, timezone.now(), by="chief")
    assert not InsightTable.objects.exists()


def test_one_that_waits_is_cancelled_at_once() -> None:
    run = asked()
    assert cancel(run, timezone.now(), by="chief")

    assert work_on_run(run.pk) is None
    assert PipelineRun.objects.get().state == "cancelled"


@pytest.mark.parametrize(
    ("mode", "limit", "value", "says"),
    [
        ("eats", "MA_PIPELINE_MEMORY_MB", 1024, "more than 1024 MB"),
        ("hangs", "MA_PIPELINE_HOURS", 0, "longer than 0"),
    ],
)
def test_memory_and_time_are_bounded(
    settings: Any, tmp_path: Path, mode: str, limit: str, value: int, says: str
) -> None:
    use(settings, tmp_path, mode)
    setattr(settings, limit, value)
    run = worked()

    assert run.state == "failed" and says in str(run.problem)
    assert detached.of_run(run.pk) == []


@pytest.mark.timeout(60)
def test_one_that_is_stopped_before_it_has_begun_is_not_waited_for(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes are found by what they were started with: at first it is still a copy of the runner."""
    use(settings, tmp_path, "hangs")
    settings.MA_PIPELINE_HOURS = 0
    monkeypatch.setattr(detached, "end", lambda _run: None)

    assert worked().state == "failed"


def test_who_lost_the_run_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = load

    def taken_for_dead(*arguments: Any) -> int:
        loaded = real(*arguments)
        if connection.vendor == "postgresql":
            in_other_thread(lambda: PipelineRun.objects.update(state="dead", open=None))
        else:
            PipelineRun.objects.update(state="dead", open=None)
        return loaded

    monkeypatch.setattr(worker, "load", taken_for_dead)
    run = asked()
    work_on_run(run.pk)

    assert not FailureTrend.objects.exists() and not InsightTable.objects.exists()


def test_nobody_sees_half_of_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = load

    def loads(*arguments: Any) -> int:
        found = real(*arguments)
        in_other_thread(lambda: seen.append(FailureTrend.objects.count() + InsightTable.objects.count()))
        return found

    monkeypatch.setattr(worker, "load", loads)
    assert worked().state == "done"
    assert seen == [0] and FailureTrend.objects.count() == 2


def in_thread(act: Any) -> None:
    try:
        act()
    finally:
        connection.close()


def in_other_thread(act: Any) -> None:
    thread = threading.Thread(target=in_thread, args=(act,))
    thread.start()
    thread.join(30)
    assert not thread.is_alive() and not transaction.get_connection().needs_rollback
