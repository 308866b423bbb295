"""What a worker does for the pipeline: nights, old runs; how alerts, health and doctor tell of it."""

import os
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.models import Server
from alerts.sources.pipeline import ARCHIVE, PIPELINE
from insights.archive import readiness as archive
from insights.archive.readiness import readiness
from insights.models import ArchiveBlock, FailureTrend, InsightTable, PipelineRun
from insights.runs import reaper
from insights.runs.folder import RunFolder
from insights.runs.reaper import forget_old, is_due, tend
from ma_site.checks.work import check_pipeline
from tests.web.insight_rows import run_row
from tests.web.pipeline import use

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]

NIGHT = datetime(2026, 11, 22, 2, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def switched_on(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(settings, tmp_path, "well")
    settings.MA_PIPELINE_AT = time(2, 30)
    monkeypatch.setattr(reaper, "start_waiting", lambda now: None)


def test_an_installation_that_never_ran_it_begins_with_its_first_night() -> None:
    assert not is_due(NIGHT - timedelta(minutes=1))
    assert is_due(NIGHT + timedelta(minutes=1))
    assert not is_due(NIGHT + timedelta(hours=12))


def test_it_runs_once_a_night_and_later_where_nothing_ran_then(settings: Any) -> None:
    tend(NIGHT)
    run = PipelineRun.objects.get()
    assert (run.trigger, run.state) == ("nightly", "waiting")
    tend(NIGHT + timedelta(seconds=10))
    PipelineRun.objects.update(state="failed", open=None, ended_at=NIGHT + timedelta(minutes=5))
    tend(NIGHT + timedelta(hours=23))
    assert PipelineRun.objects.count() == 1
    tend(NIGHT + timedelta(hours=29))
    assert PipelineRun.objects.count() == 2

    settings.MA_PIPELINE_AT = None
    assert not is_due(NIGHT + timedelta(days=9))


def test_where_nobody_chose_the_archive_it_begins_some_minutes_after_the_first_start(settings: Any) -> None:
    settings.MA_PIPELINE = "default"
    noon = NIGHT + timedelta(hours=9)
    assert not is_due(noon)
    Server.objects.create(name="srv-1", created_at=noon)
    assert not is_due(noon + timedelta(minutes=11))
    assert is_due(noon + timedelta(minutes=12))
    tend(noon + timedelta(minutes=12))
    PipelineRun.objects.update(state="failed", open=None, ended_at=noon + timedelta(minutes=15))
    assert not is_due(noon + timedelta(hours=1))  # on a second start nothing runs that is not due
    settings.MA_PIPELINE_AT = None
    PipelineRun.objects.all().delete()
    assert not is_due(noon + timedelta(minutes=12))


def test_an_installation_that_was_upgraded_begins_some_minutes_after_its_first_start_with_a_pipeline(
    settings: Any, tmp_path: Path
) -> None:
    settings.MA_PIPELINE = "default"
    started = NIGHT + timedelta(hours=9)
    Server.objects.create(name="srv-1", created_at=started - timedelta(days=300))
    folder = tmp_path / "archive"
    folder.mkdir()
    os.utime(folder, (started.timestamp(), started.timestamp()))
    assert not is_due(started + timedelta(minutes=11))
    assert is_due(started + timedelta(minutes=12))


def test_retention_waits_for_a_default_archive_only_once_a_run_could_begin(settings: Any) -> None:
    assert archive.is_on()
    settings.MA_PIPELINE_SUBMIT = "/nowhere/spark-submit"
    assert archive.is_on(), "somebody chose it"
    settings.MA_PIPELINE = "default"
    assert not archive.is_on()
    assert all(finding.ok for finding in check_pipeline(NIGHT))
    ArchiveBlock.objects.create(
        kind="protocols", number=1, day=timezone.now().date(), first=NIGHT - timedelta(days=1), last=NIGHT
    )
    assert archive.is_on()


@pytest.mark.parametrize(
    ("code", "words"), [("off", "MA_PIPELINE"), ("little-memory", "memory"), ("little-disk", "disk")]
)
def test_pages_and_doctor_say_why_there_is_no_archive(settings: Any, code: str, words: str) -> None:
    settings.MA_ARCHIVE_URL, settings.MA_PIPELINE = "", code
    assert words in readiness().says
    (finding,) = check_pipeline(NIGHT)
    assert finding.ok and words in finding.detail
    client = Client()
    client.force_login(User.objects.create_superuser("reader"))
    assert words in client.get("/insights/").content.decode()


def test_one_that_goes_on_by_hand_is_waited_for() -> None:
    run = run_row("running", hours=0, trigger="page", asked_at=NIGHT, host="elsewhere", heartbeat_at=NIGHT)
    assert not is_due(NIGHT + timedelta(minutes=1))
    PipelineRun.objects.filter(pk=run.pk).update(state="failed", open=None, ended_at=NIGHT)
    assert is_due(NIGHT + timedelta(minutes=1))


def test_a_whole_run_that_somebody_asked_for_since_is_the_one_of_the_night() -> None:
    part = run_row(
        "done", hours=0, trigger="terminal", asked_at=NIGHT + timedelta(hours=1), jobs=["odd_servers"]
    )
    assert is_due(NIGHT + timedelta(hours=2))
    PipelineRun.objects.filter(pk=part.pk).update(jobs=[])
    assert not is_due(NIGHT + timedelta(hours=2))
    assert is_due(NIGHT + timedelta(hours=24))


def test_nothing_begins_where_it_is_switched_off(settings: Any) -> None:
    settings.MA_ARCHIVE_URL = ""
    tend(NIGHT)
    assert not PipelineRun.objects.exists()


def test_old_runs_go_with_their_files_and_what_they_found_stays(settings: Any) -> None:
    settings.MA_KEEP_PIPELINE_RUNS_DAYS = 30
    old, kept, young = run_row(hours=24 * 40), run_row(hours=24 * 41), run_row(hours=24)
    now = timezone.now()
    FailureTrend.objects.create(
        run=old, setting_key="orders", hour=now, server="srv-1", fingerprint="f", count=1, temporary=0,
        first_at=now,
        last_at=now, messages=1,
    )  # fmt: skip
    InsightTable.objects.create(name="failure_trends", run=kept, computed_at=now)
    RunFolder(old).make()
    RunFolder(old).log.write_text("words")
    assert forget_old(now) == 1

    assert set(PipelineRun.objects.values_list("pk", flat=True)) == {kept.pk, young.pk}
    assert not RunFolder(old).path.exists()
    assert FailureTrend.objects.get().run_id == old.pk


def block(days: float) -> None:
    at = timezone.now() - timedelta(days=days)
    ArchiveBlock.objects.create(kind="protocols", number=1, day=at.date(), first=at, last=at, planned_at=at)


def test_once_there_are_blocks_three_days_without_a_good_run_are_an_alert(settings: Any) -> None:
    def alerts() -> list[str]:
        return [each.subject for each in PIPELINE.observe(timezone.now(), frozenset())]

    run_row("done", hours=24 * 9)
    settings.MA_PIPELINE_SUBMIT = "/nowhere/spark-submit"
    assert alerts() == [], "nothing was ever archived, and nothing can run"
    block(days=2)
    (alert,) = PIPELINE.observe(timezone.now(), frozenset())
    text = PIPELINE.says(alert.facts, alert.value or 0)
    said = " ".join(text.split())
    assert said == "No pipeline run has succeeded for 8 d 23 h.", "also where the runtime went away"
    run_row("done", hours=1, jobs=["odd_servers"])
    assert len(alerts()) == 1, "a run of one job does not do a night's work"
    run_row("done", hours=1)
    assert alerts() == []


def test_blocks_of_which_no_run_ever_ended_well_are_late_too() -> None:
    run_row("cancelled", hours=1)
    block(days=2)
    assert list(PIPELINE.observe(timezone.now(), frozenset())) == []
    ArchiveBlock.objects.update(planned_at=timezone.now() - timedelta(days=4))
    values = [each.value or 0 for each in PIPELINE.observe(timezone.now(), frozenset())]
    assert len(values) == 1 and values[0] > 96


@pytest.mark.parametrize(
    ("state", "hours", "subjects"),
    [
        ("done", 1, []), ("cancelled", 1, []), ("failed", 1, ["failed"]), ("partial", 1, ["failed"]),
        ("dead", 1, ["failed"]), ("done", 40, []), ("partial", 40, ["failed"]), ("done", 71, []),
        ("cancelled", 60, ["late"]), ("done", 73, ["late"]), ("partial", 90, ["failed", "late"]),
        ("dead", 90, ["failed", "late"]),
    ],
)  # fmt: skip
def test_an_alert_is_opened_where_it_failed_or_is_late(
    settings: Any, state: str, hours: int, subjects: list[str]
) -> None:
    block(days=9)
    run_row("done", hours=hours + 20)
    run = run_row(state, hours=hours)
    found = list(PIPELINE.observe(timezone.now(), frozenset()))
    assert [each.subject for each in found] == subjects
    for each in found:
        assert each.value is not None and each.value >= PIPELINE.limits.upper
        assert str(run.pk) in PIPELINE.url(each.facts) and PIPELINE.says(each.facts, each.value)
    settings.MA_ARCHIVE_URL = ""
    assert list(PIPELINE.observe(timezone.now(), frozenset())) == []


@pytest.mark.parametrize(
    ("state", "hours", "says", "fine"),
    [
        ("", 0, "has not run yet", True), ("done", 1, "ran", True),
        ("failed", 1, "the last run failed in whole or in part",
        False),
        ("done", 40, "results are out of date", False),
    ],
)  # fmt: skip
def test_health_and_doctor_tell_how_it_is(
    client: Client, viewer: User, settings: Any, state: str, hours: int, says: str, fine: bool
) -> None:
    client.force_login(viewer)
    if state:
        run_row(state, hours=hours)
    assert says in client.get("/health/").content.decode()
    assert all(finding.ok for finding in check_pipeline(timezone.now())) is fine

    settings.MA_PIPELINE_SUBMIT = "/nowhere"
    assert "Missing: spark-submit" in client.get("/health/").content.decode()
    assert not all(finding.ok for finding in check_pipeline(timezone.now()))

    settings.MA_ARCHIVE_URL = ""
    assert "disabled" in client.get("/health/").content.decode()
    assert all(finding.ok and "disabled" in finding.detail for finding in check_pipeline(timezone.now()))


def damaged(number: int) -> None:
    now = timezone.now()
    ArchiveBlock.objects.create(
        kind="protocols", number=number, day=now.date(), first=now, last=now, state="damaged",
        problem=f"data/block-{number}/<b>part</b>: file not found",
    )  # fmt: skip


def test_damage_of_the_archive_is_told_everywhere_until_it_is_mended(
    client: Client, viewer: User, settings: Any
) -> None:
    client.force_login(viewer)
    run_row("done")
    assert "archive-damage" not in client.get("/insights/").content.decode()
    assert list(ARCHIVE.observe(timezone.now(), frozenset())) == []
    etag = client.get("/insights/run-bar/")["ETag"]
    for number in range(1, 6):
        damaged(number)

    page = client.get("/insights/").content.decode()
    assert "5 archive blocks are damaged: protocols 1, protocols 2, protocols 3, …" in page
    assert "data/block-1/&lt;b&gt;part&lt;/b&gt;: file not found" in page and "archive verify" in page
    assert client.get("/insights/run-bar/", headers={"If-None-Match": etag}).status_code == 200
    assert "5 archive blocks are damaged" in client.get("/health/").content.decode()
    assert [finding.ok for finding in check_pipeline(timezone.now())] == [False, True]
    (alert,) = ARCHIVE.observe(timezone.now(), frozenset())
    assert alert.value == 5.0 and ARCHIVE.says(alert.facts, 5.0) == "5 archive blocks are damaged."
    assert ARCHIVE.url(alert.facts) == "/insights/"
    client.cookies["django_language"] = "ru"
    assert "Повреждено 5 блоков архива:" in client.get("/insights/").content.decode()

    settings.MA_ARCHIVE_URL = ""
    assert list(ARCHIVE.observe(timezone.now(), frozenset())) == []
    assert "блока архива:" not in client.get("/health/").content.decode()
