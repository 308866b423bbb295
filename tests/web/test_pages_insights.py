"""The page Insights: empty, off, running, failed, old, finished; its tables; who may do what."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format

from agents.models import LaunchSetting, Pool
from insights.models import BreakerSuggestion, FailureDay, InsightTable, PipelineRun
from insights.pages.tables import SPECS
from insights.runs import queries
from tests.web.factories import World
from tests.web.insight_rows import found, run_row
from tests.web.pages import Elements, signed_in
from tests.web.pipeline import use
from tests.web.rows import make_setting

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def switched_on(settings: Any, tmp_path: Path) -> None:
    use(settings, tmp_path, "well")


def look(client: Client, path: str = "/insights/") -> Elements:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return Elements(answer.content.decode())


def test_who_may_look_run_and_cancel(client: Client, viewer: User, operator: User, outsider: User) -> None:
    client.force_login(outsider)
    assert client.get("/insights/").status_code == 403
    assert client.get("/insights/run-bar/").status_code == 403
    assert client.get("/insights/tables/failure_days/").status_code == 403
    client.force_login(viewer)
    assert client.get("/insights/").status_code == 200
    assert client.post("/insights/run/").status_code == 403
    run = run_row("running")
    assert client.post(f"/insights/runs/{run.pk}/cancel/").status_code == 403
    assert "cancel-run" not in client.get("/insights/").content.decode()
    client.force_login(operator)
    assert client.get("/insights/run/").status_code == 405
    assert client.post(f"/insights/runs/{run.pk}/cancel/", follow=True).status_code == 200
    run.refresh_from_db()
    assert run.cancel_asked_by == "operator" and run.cancel_asked_at
    assert "cancelling" in look(client).text


def test_run_now_asks_for_one_and_refuses_a_second(client: Client, operator: User) -> None:
    client.force_login(operator)
    first = client.post("/insights/run/", follow=True).content.decode()
    assert "The pipeline will start within seconds." in first and "queued" in first
    run = PipelineRun.objects.get()
    assert (run.state, run.trigger, run.asked_by) == ("waiting", "page", operator)
    assert (
        "Another pipeline run is in progress. Only one can run at a time."
        in client.post("/insights/run/", follow=True).content.decode()
    )
    assert PipelineRun.objects.count() == 1


def test_switched_off_it_says_so_and_everything_else_works(
    client: Client, operator: User, settings: Any
) -> None:
    settings.MA_ARCHIVE_URL = ""
    client.force_login(operator)
    text = look(client).text
    assert (
        "The pipeline is disabled: its archive location is not set" in text
        and "Everything else works without the pipeline." in text
    )
    assert "disabled" in client.post("/insights/run/", follow=True).content.decode()
    settings.MA_ARCHIVE_URL, settings.MA_PIPELINE_SUBMIT = "file:///tmp/a", "/nowhere"
    assert "Missing: spark-submit" in look(client).text
    assert not PipelineRun.objects.exists()


def test_an_empty_one_says_what_will_be_there(client: Client, viewer: User) -> None:
    client.force_login(viewer)
    text = look(client).text
    assert (
        "Not computed yet." in text
        and "No runs yet." in text
        and (
            "This page shows failures by day, new error groups and a suggested threshold for each "
            "breaker. It also compares servers and shows poison-message indicators and the replay "
            "success rate."
        )
        in text
    )


def test_finished_it_shows_what_was_found_and_leads_to_the_protocols(world: World) -> None:
    client = signed_in(world, "viewer")
    run = found()
    page = look(client)
    links = page.links()

    assert "Data until" in page.text and f"/insights/runs/{run.pk}/" in links
    assert any(each.startswith("/protocols/?since=") and "until=" in each for each in links)
    assert any("setting=orders-export" in each and "fingerprint=" in each for each in links)
    assert "/settings/orders-export/what-if/?m=6" in links
    assert "<i>region</i>" in page.text and page.inline_scripts == 0
    assert not any("style" in attrs for _tag, attrs in page.found)
    for target in {each for each in links if each.startswith(("/protocols/", "/insights/", "/settings/"))}:
        assert client.get(target).status_code == 200, target


def test_days_that_the_demo_made_up_are_marked_in_words(world: World) -> None:
    client = signed_in(world, "viewer")
    run = found()
    assert "demo" not in look(client).text.lower()
    newest = FailureDay.objects.order_by("-day").values_list("day", flat=True)[0]
    for back in range(3, 10):
        day, count = newest - timedelta(days=back), 40
        FailureDay.objects.create(
            run=run, setting_key="demo-history", day=day, fingerprint="f" * 40, count=count, messages=3,
            rank=1,
            standing="new",
        )  # fmt: skip
    page = look(client)
    days = (newest - timedelta(days=9), newest - timedelta(days=3))
    first, last = (date_format(day, "DATE_FORMAT") for day in days)
    assert f"Demo data from {first} to {last} (simulated failures: 280)" in page.text
    assert "./ma manage demo_history --remove" in page.text and "/settings/demo-history/" in page.links()
    assert sum("demo" in (attrs.get("aria-label") or "") for _, attrs in page.found) == 7
    assert "demo-history" in look(client, "/insights/tables/failure_days/?setting=demo-history").text
    client.cookies["django_language"] = "ru"
    assert "Демонстрационные данные с" in look(client).text


@pytest.mark.process  # as dear: each table in each order, and its file
def test_every_table_has_filters_sorting_pages_and_a_file(world: World) -> None:
    client = signed_in(world, "viewer")
    found()
    for name, spec in SPECS.items():
        path = f"/insights/tables/{name}/"
        assert str(spec.label) in look(client, path).text
        for column in spec.columns:
            look(client, f"{path}?sort=-{column}&page=2")
        assert "No results." in look(client, f"{path}?setting=nobody").text
        file = b"".join(client.get(f"{path}?file=csv&setting=orders-export")).decode()
        assert file.startswith("\ufeffrun_id,") and (name == "retention_plan" or file.count("\r\n") > 1), name
    assert "'=EU" in b"".join(client.get("/insights/tables/poison_profile/?file=csv")).decode()
    for nonsense in (
        "page=0",
        "page=x",
        "page=99999999",
        "sort=password",
        "since=never",
        "odd=x",
        "sort=-",
        "standing=x",
    ):
        look(client, f"/insights/tables/odd_servers/?{nonsense}")
        look(client, f"/insights/tables/failure_days/?{nonsense}")
    assert client.get("/insights/tables/moon/").status_code == 404


def test_pages_of_a_table_hold_every_row_once(world: World) -> None:
    client = signed_in(world, "viewer")
    found()
    seen: list[str] = []
    path, count = "/insights/tables/failure_trends/", InsightTable.objects.get(name="failure_trends").rows
    for number in range(1, count // 50 + 2):
        page = look(client, f"{path}?page={number}")
        seen += [each for each in page.links() if each.startswith("/protocols/?")]
    assert len(seen) == len(set(seen)) == count


def test_while_one_runs_its_bar_is_asked_for_and_not_sent_twice(world: World) -> None:
    client = signed_in(world, "operator")
    run = run_row("running")
    page = look(client)
    assert "59 %" in page.text and "activation health" in page.text and "cancel-run" in str(page.found)
    assert ("section", "/insights/run-bar/") in [(tag, attrs.get("hx-get")) for tag, attrs in page.found]

    first = client.get("/insights/run-bar/")
    assert client.get("/insights/run-bar/", headers={"if-none-match": first["ETag"]}).status_code == 304
    PipelineRun.objects.filter(pk=run.pk).update(state="done", open=None, ended_at=timezone.now())
    over = client.get("/insights/run-bar/", headers={"if-none-match": first["ETag"]})
    assert over.status_code == 200 and "hx-get" not in over.content.decode()


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("failed", "The last run failed: older results are shown."),
        ("dead", "The last run failed: older results are shown."),
        ("partial", "The last run partly failed."),
    ],
)
def test_it_says_plainly_that_the_last_run_failed(world: World, state: str, says: str) -> None:
    client = signed_in(world, "viewer")
    found()
    run = run_row(state, hours=0.5)
    page = look(client)
    assert says in page.text
    if run.problem:
        assert "<b>no such day</b>" in look(client, f"/insights/runs/{run.pk}/").text


def test_it_says_plainly_that_it_is_old(world: World) -> None:
    client = signed_in(world, "viewer")
    found()
    assert "These results are out of date: no later run has succeeded." not in look(client).text
    PipelineRun.objects.update(ended_at=timezone.now() - timedelta(hours=37))
    assert "These results are out of date: no later run has succeeded." in look(client).text


def test_the_log_is_for_who_may_run_it(world: World) -> None:
    run = run_row()
    folder = Path(run_folder(run))
    folder.mkdir(parents=True)
    (folder / "run.log").write_text("ValueError: <script>alert(1)</script>\n")
    assert "<script>alert(1)</script>" in look(signed_in(world, "operator"), f"/insights/runs/{run.pk}/").text
    assert "alert(1)" not in look(signed_in(world, "viewer"), f"/insights/runs/{run.pk}/").text


def run_folder(run: PipelineRun) -> Any:
    from insights.runs.folder import RunFolder

    return RunFolder(run).path


def test_a_page_that_meets_a_load_reads_again() -> None:
    run = run_row()
    reads: list[int] = []

    def read() -> int:
        reads.append(1)
        if len(reads) == 1:
            InsightTable.objects.create(name="failure_days", run=run, computed_at=timezone.now())
        return len(reads)

    assert queries.consistent(read) == 2
    assert queries.consistent(lambda: "once") == "once"


def test_the_setting_s_page_tells_the_suggestion_and_its_what_if(world: World) -> None:
    client = signed_in(world, "viewer")
    assert (
        "The Insights page lists the damaged blocks. The next run rebuilds the blocks whose "
        "data is still complete in the database. Restore the files of the other blocks from a "
        "backup."
    ) not in look(client, "/settings/orders-export/").text
    found()
    page = look(client, "/settings/orders-export/")
    assert "Suggested threshold: M = 6 (now 10)." in page.text.replace("\xa0", " ")
    assert "deliveries avoided: 1,200" in page.text
    assert "/settings/orders-export/what-if/?m=6" in page.links()

    BreakerSuggestion.objects.update(evidence={"now": "nonsense"}, why="unheard of")
    assert "unheard of" in look(client, "/settings/orders-export/").text


def test_the_setting_that_was_deleted_keeps_its_rows(world: World) -> None:
    client = signed_in(world, "viewer")
    make_setting(Pool.objects.order_by("pk")[0], "gone-soon", address="t.gone")
    found("gone-soon")
    LaunchSetting.objects.filter(key="gone-soon").delete()
    assert "gone-soon" in look(client, "/insights/tables/odd_servers/").text


def test_questions_do_not_grow_with_what_was_found(world: World, django_assert_max_num_queries: Any) -> None:
    client = signed_in(world, "viewer")
    found()
    look(client)
    with django_assert_max_num_queries(45):
        look(client)


def test_the_terminal_tells_of_the_last_run(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("pipeline", "status")
    assert "No runs yet." in capsys.readouterr().out
    run_row("partial")
    call_command("pipeline", "status")
    out = capsys.readouterr().out
    assert "partial" in out and "failed    breaker_backtest" in out
