"""The page Retention: the rule in force, what goes next, what went, and what went wrong."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import LaunchSetting, Pool
from console.reasons import said
from contract.names import HISTORY_KEY
from failures.models import FailureProtocol
from retention import pages
from retention.models import RetentionFigure, RetentionRun
from retention.protocols.holds import HOLDS, Hold, dead_letters_keep_nothing_before, of_dead_letters
from retention.text import nothing_line
from retention.worker import run_retention_turn
from tests.web.retention_rows import NOW, activation, of_today, protocols, recoveries
from tests.web.rows import make_setting

pytestmark = pytest.mark.django_db


@pytest.fixture
def look(client: Client, viewer: User) -> Any:
    def open_page(**asked: str) -> str:
        client.force_login(viewer)
        return " ".join(client.get("/retention/", asked).content.decode().split())

    return open_page


def test_who_may_look(client: Client, viewer: User, outsider: User) -> None:
    client.force_login(viewer)
    assert client.get("/retention/").status_code == 200
    assert client.post("/retention/").status_code == 405
    client.force_login(outsider)
    assert client.get("/retention/").status_code == 403


def test_the_rule_in_force_with_its_numbers(look: Any, settings: Any) -> None:
    settings.MA_RETENTION_DAYS, settings.MA_RETENTION_SILENT_DAYS = 1, 45
    html = look()
    assert (
        "If the activation finished with an error, only protocols created more than 1 day "
        "before its start are deleted. A setting can override this number."
    ) in html
    assert (
        "If no activation has finished for 45 days, all protocols older than that are "
        "deleted, including those of an activation that never ends."
    ) in html
    assert (
        "Failure protocols of dead letters are deleted too, but each message keeps a copy of "
        "its last failure."
    ) in html

    settings.MA_RETENTION_SILENT_DAYS, settings.MA_RETENTION_KEEP_DEAD = 0, True
    html = look()
    assert "Protocols are not deleted just because of their age." in html
    assert "Failure protocols of messages that are still in the DLQ are kept." in html


def test_each_setting_says_what_goes_next(look: Any, pool: Pool) -> None:
    activation(make_setting(pool, "good", retention_days=7), 5, well=True)
    bad = activation(make_setting(pool, "bad"), 5, well=False)
    make_setting(pool, "new")
    html = look()

    assert "finished successfully" in html
    assert "everything up to and including the last finished activation" in html
    assert "finished with an error" in html
    assert f"{bad.started_at - timedelta(days=30):%b %Y}" in html
    assert "none yet" in html


def test_of_a_setting_that_has_only_begun_nothing_has_finished_yet(look: Any, pool: Pool) -> None:
    running = activation(make_setting(pool, "young"), of_today(1), going_on=True)
    protocols(running, 1, of_today(0))
    html = look()
    assert "no activation has finished yet" in html and "everything before" not in html

    protocols(running, 1, 3000)
    html = look()
    assert "no activation has finished yet" not in html and "everything before" in html

    activation(make_setting(pool, "silent", address="t.silent"), 3000, well=True)
    FailureProtocol.objects.all().delete()
    html = look()
    assert "no activation has finished yet" in html and "everything before" in html


def test_made_up_history_says_that_a_person_removes_it(look: Any, pool: Pool) -> None:
    activation(make_setting(pool, HISTORY_KEY), 5, well=False)
    html = look()
    assert "no activation has finished yet" not in html and "demo_history --remove" in html
    assert nothing_line(HISTORY_KEY, []).endswith("demo_history --remove")


def test_what_went_and_what_was_kept_and_why(look: Any, setting: LaunchSetting) -> None:
    well = activation(setting, 5, well=True)
    recoveries(protocols(well, 6, 5))
    kept = {each.pk for each in protocols(well, 2, 5)}
    HOLDS["dead"] = Hold(lambda picked, now: {each.id for each in picked} & kept, lambda now: None)
    try:
        run_retention_turn(NOW)
    finally:
        HOLDS["dead"] = Hold(of_dead_letters, dead_letters_keep_nothing_before)
    html = look()

    assert "6 failure protocols" in html
    assert "6 recovered messages" in html
    assert "2 kept: their messages are still in the DLQ" in html
    assert "failure protocols: 6" in html


def test_a_fault_is_shown_here_and_on_the_health_page(look: Any, client: Client) -> None:
    RetentionRun.objects.create(
        state="failed", ended_at=timezone.now(), problem=said("orders: <b>RuntimeError</b>")
    )
    html = look()

    assert "orders: &lt;b&gt;RuntimeError" in html
    assert "last run partly failed" in client.get("/health/").content.decode()


def test_one_that_does_not_begin_any_more_is_degraded(look: Any, client: Client) -> None:
    RetentionRun.objects.create(state="done", started_at=timezone.now() - timedelta(hours=4))
    look()

    assert "no recent runs" in client.get("/health/").content.decode()


def test_many_settings_are_shown_page_by_page(look: Any, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE", 2)
    for key in ("aa", "bb", "cc"):
        make_setting(pool, key)
    first = look()
    assert "/settings/bb/" in first
    assert "/settings/cc/" not in first
    assert '<a class="end" rel="next" href="?after=bb">' in first
    second = look(after="bb")
    assert "/settings/cc/" in second
    assert "of no setting" not in second


def test_questions_do_not_grow_with_what_there_is(look: Any, setting: LaunchSetting) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            look()
        return len(queries)

    activation(setting, 50, well=True)
    run = RetentionRun.objects.create(state="done")
    asked()
    few = asked()
    for days in range(30):
        activation(setting, days, well=False)
        RetentionFigure.objects.create(run=run, what="recovered", setting_key=f"s{days}", deleted=1)
    protocols(activation(setting, 1, well=False), 300, 1)

    assert asked() == few
