"""/metrics of the site: what it says of rows, who may read it, and what it answers when much or nothing
can be read."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from agents.models import ComponentState, LaunchSetting, Pool, Run, Server
from agents.provisioning import queue_counts
from agents.provisioning.queue_counts import Figures
from console.models import ApiToken
from console.processes import record_heartbeat
from exposition.declared import CONTENT_TYPE
from failures.models import SpoolMark
from ma_site.scrape import page, rows
from ma_site.scrape.declared import MOST_SETTINGS, OF_SITE
from tests.web.factories import World
from tests.web.rows import make_setting

TOKEN = "a-token-of-some-length"
Labels = tuple[tuple[str, str], ...]
Series = Mapping[tuple[str, Labels], float]


@pytest.fixture(autouse=True)
def begins_without_knowledge(settings: Any) -> Iterator[None]:
    settings.MA_METRICS_TOKEN = TOKEN
    page.forget()
    yield
    page.forget()


def parsed(content: bytes) -> Series:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(content.decode())
        for sample in family.samples
    }


def scraped(now: datetime | None = None) -> Series:
    page.forget()
    return parsed(page.scraped(now or timezone.now()))


def value(series: Series, name: str, **labels: str) -> float | None:
    return series.get((name, tuple(sorted(labels.items()))))


# -- what it says --------------------------------------------------------------------------------------------


def test_a_busy_site_has_a_series_of_every_metric(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Figures(waiting=5, delayed=2, in_delivery=1, consumers=2, dead=7, at=timezone.now())
    monkeypatch.setattr(rows, "figures_for", lambda asked: {each.key: known for each in asked})
    monkeypatch.setattr(rows, "feed_lag", lambda now: 3)
    record_heartbeat("beat", timezone.now())
    ComponentState.objects.create(name="redis", state="ok")
    names = {name for name, _ in scraped()}
    assert {each.name for each in OF_SITE} - names <= {"ma_pipeline_last_success_age_seconds"}


def test_a_setting_says_whether_it_is_enabled_and_tripped(world: World) -> None:
    series = scraped()
    for key, setting in world.settings.items():
        assert value(series, "ma_setting_enabled", setting=key) == setting.enabled
        tripped = setting.trips.filter(ended_at=None).exists()
        assert value(series, "ma_setting_tripped", setting=key) == tripped
    assert sum(found for (name, _), found in series.items() if name == "ma_setting_tripped") > 0


def test_counts_of_the_broker_are_shown_by_state_with_their_age(
    setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    known = Figures(
        waiting=5, delayed=2, in_delivery=1, consumers=4, dead=7, at=now - timedelta(seconds=8), stale=True
    )
    monkeypatch.setattr(rows, "figures_for", lambda asked: {each.key: known for each in asked})
    series = scraped(now)
    counts = [
        value(series, "ma_subscription_messages", setting=setting.key, state=state)
        for state in ("waiting", "delayed", "in_delivery")
    ]
    assert counts == [5, 2, 1]
    assert value(series, "ma_subscription_consumers", setting=setting.key) == 4
    assert value(series, "ma_dead_letters", setting=setting.key) == 7
    assert value(series, "ma_broker_counts_age_seconds") == 8


def test_what_the_broker_never_told_is_left_out_and_no_0(setting: LaunchSetting) -> None:
    queue_counts.note_away(timezone.now())
    series = scraped()
    assert {
        name for name, _ in series if name.startswith(("ma_subscription", "ma_dead", "ma_broker"))
    } == set()
    assert value(series, "ma_setting_enabled", setting=setting.key) == 0


def test_runs_of_two_epochs_on_one_server_add_up(world: World) -> None:
    run = Run.objects.filter(closed_at=None).select_related("activation__setting", "server").first()
    assert run is not None
    labels = {"setting": run.activation.setting.key, "server": run.server.name}
    before = value(scraped(), "ma_run_handled_total", **labels)
    Run.objects.create(activation=run.activation, server=run.server, epoch=run.epoch + 90, handled=1000)
    assert before is not None
    assert value(scraped(), "ma_run_handled_total", **labels) == before + 1000


def test_a_server_is_up_while_it_is_heard_and_its_age_grows(server: Server) -> None:
    now = timezone.now()
    Server.objects.update(last_seen_at=now - timedelta(seconds=4), spool_bytes=99)
    spool = SpoolMark.objects.create(
        spool="00000000-0000-0000-0000-000000000001", server=server, stored_up_to=40
    )
    SpoolMark.objects.create(
        spool="00000000-0000-0000-0000-000000000002", server=server, stored_up_to=2, set_aside=1, never_came=3
    )
    heard = scraped(now)
    assert value(heard, "ma_server_up", server="srv-1") == 1
    assert value(heard, "ma_server_heartbeat_age_seconds", server="srv-1") == 4
    assert value(heard, "ma_spool_bytes", server="srv-1") == 99
    assert value(heard, "ma_intake_records_total", server="srv-1") == 42
    assert value(heard, "ma_intake_refused_records_total", server="srv-1") == 1
    assert value(heard, "ma_intake_missing_records_total", server="srv-1") == 3
    silent = scraped(now + timedelta(minutes=5))
    assert value(silent, "ma_server_up", server="srv-1") == 0
    assert value(silent, "ma_server_heartbeat_age_seconds", server="srv-1") == 304
    assert spool.server_id == server.pk


def test_a_component_that_nobody_measures_is_not_up(db: None) -> None:
    now = timezone.now()
    ComponentState.objects.create(name="redis", state="ok", measured_at=now)
    ComponentState.objects.create(name="broker", state="down", measured_at=now)
    series = scraped(now)
    assert value(series, "ma_component_up", component="redis") == 1
    assert value(series, "ma_component_up", component="broker") == 0
    later = scraped(now + timedelta(minutes=1))
    assert value(later, "ma_component_up", component="redis") == 0
    assert value(later, "ma_component_measured_age_seconds", component="redis") == 60


def test_each_kind_of_alert_is_there_with_0_where_none_is_open(world: World) -> None:
    series = scraped()
    counts = {labels: found for (name, labels), found in series.items() if name == "ma_alerts_open"}
    assert 0 in counts.values() and sum(counts.values()) > 0
    assert {dict(labels)["severity"] for labels in counts} == {"warning", "critical"}


# -- bounds --------------------------------------------------------------------------------------------------


def test_of_too_many_settings_the_first_are_shown_and_the_rest_is_counted(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,000 here, for which the bound is lowered to a tenth: 10,000 take seconds to be made."""
    most = MOST_SETTINGS // 10
    monkeypatch.setattr(rows, "MOST_SETTINGS", most)
    LaunchSetting.objects.bulk_create(
        LaunchSetting(key=f"s-{number:03}", agent="a", pool=pool, kind="standalone", enabled=number == 999)
        for number in range(1000)
    )
    series = scraped()
    shown = {labels for name, labels in series if name == "ma_setting_enabled"}
    assert len(shown) == most
    assert value(series, "ma_label_values_left_out", label="setting") == 1000 - most
    assert value(series, "ma_setting_enabled", setting="s-999") == 1, "enabled ones come first"
    assert len(series) < 6 * most, "no other metric has what is left out"


def test_too_many_servers_and_runs_are_cut_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    there, runs = Server.objects.count(), Run.objects.filter(closed_at=None).count()
    monkeypatch.setattr(rows, "MOST_SERVERS", 1)
    monkeypatch.setattr(rows, "MOST_RUNS", 1)
    series = scraped()
    assert value(series, "ma_label_values_left_out", label="server") == there - 1 > 0
    assert value(series, "ma_label_values_left_out", label="run") == runs - 1 > 0
    for name in ("ma_server_up", "ma_spool_bytes", "ma_run_handled_total"):
        assert sum(each == name for each, _ in series) == 1


def test_the_number_of_queries_does_not_grow_with_the_rows(world: World) -> None:
    pool = next(iter(world.settings.values())).pool
    queue_counts.note_away(timezone.now())
    with CaptureQueriesContext(connection) as few:
        scraped()
    for number in range(50):
        make_setting(pool, key=f"more-{number}")
        Server.objects.create(name=f"more-{number}")
    with CaptureQueriesContext(connection) as many:
        scraped()
    assert len(many) == len(few) < 25


def test_scrapes_of_one_moment_read_the_rows_once(setting: LaunchSetting) -> None:
    now = timezone.now()
    page.scraped(now)
    with CaptureQueriesContext(connection) as again:
        page.scraped(now + timedelta(seconds=3))
    assert len(again) == 0
    with CaptureQueriesContext(connection) as later:
        page.scraped(now + timedelta(seconds=6))
    assert len(later) > 5


# -- while the database is away ------------------------------------------------------------------------------


def fails(now: datetime) -> Any:
    raise OperationalError("the database is away")


def test_what_was_read_is_answered_with_its_age_while_the_database_is_away(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    Server.objects.update(last_seen_at=now)
    page.scraped(now)
    monkeypatch.setattr(rows, "read_rows", fails)
    series = parsed(page.scraped(now + timedelta(seconds=60)))
    assert value(series, "ma_database_up") == 0
    assert value(series, "ma_rows_age_seconds") == 60
    assert value(series, "ma_server_heartbeat_age_seconds", server="srv-1") == 60
    monkeypatch.undo()
    back = parsed(page.scraped(now + timedelta(seconds=61)))
    assert (value(back, "ma_database_up"), value(back, "ma_rows_age_seconds")) == (1, 0)


def test_a_process_that_never_read_anything_says_that_the_database_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "read_rows", fails)
    series = parsed(page.scraped(timezone.now()))
    assert {name for name, _ in series} == {"ma_build_info", "ma_database_up"}
    assert value(series, "ma_database_up") == 0


def test_a_database_that_hangs_holds_up_nobody_but_who_asked_first(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    page.scraped(now)
    monkeypatch.setattr(page, "PATIENCE_SECONDS", 0.01)
    with page._reading:
        series = parsed(page.scraped(now + timedelta(seconds=20)))
    assert (value(series, "ma_database_up"), value(series, "ma_rows_age_seconds")) == (0, 20)


def test_the_token_needs_no_database(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """This test has none: any question to it would fail."""
    monkeypatch.setattr(rows, "read_rows", fails)
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, b"ma_database_up 0.0" in answer.content) == (200, True)


# -- who may read it -----------------------------------------------------------------------------------------


def status(**headers: str) -> int:
    return Client().get("/metrics", headers=headers).status_code


def test_the_token_of_the_environment_opens_it(setting: LaunchSetting) -> None:
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, CONTENT_TYPE)
    assert f'ma_setting_enabled{{setting="{setting.key}"}}'.encode() in answer.content
    assert "no-store" in answer.headers["Cache-Control"]
    assert Client().head("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert Client().post("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 405


def test_nobody_reads_it_from_loopback_alone(db: None, settings: Any) -> None:
    """The test client comes from 127.0.0.1, as all do behind a proxy on this machine."""
    assert status() == 401
    settings.MA_METRICS_TOKEN = ""
    assert (status(), status(Authorization="Bearer "), status(Authorization="Bearer")) == (401, 401, 401)


@pytest.mark.parametrize(
    "header", ["Bearer another-token-of-it", "Basic YTpi", "Bearer ma_nobody", "Bearer kma_nobody"]
)
def test_another_token_does_not_open_it(db: None, header: str) -> None:
    assert status(Authorization=header) == 401


def test_people_read_it_who_may_see_settings_and_servers(
    operator: User, viewer: User, outsider: User
) -> None:
    for person, expected in ((operator, 200), (viewer, 200), (outsider, 403)):
        token = ApiToken.issue(person, "prometheus", now=timezone.now())
        assert status(Authorization=f"Bearer {token}") == expected
        client = Client()
        client.force_login(person)
        assert client.get("/metrics").status_code == expected


def test_a_slash_too_many_and_a_post_are_answered_without_a_page() -> None:
    """Those who read it are programs."""
    client = Client(enforce_csrf_checks=True)
    moved = client.get("/metrics/")
    assert (moved.status_code, moved["Location"]) == (301, "/metrics")
    posted = client.post("/metrics")
    assert (posted.status_code, posted["Allow"]) == (405, "GET, HEAD")
    for answer in (moved, posted, client.post("/metrics/")):
        assert answer["Content-Type"] == "text/plain; charset=utf-8"
        assert b"<" not in answer.content
