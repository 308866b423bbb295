"""Alerts from the minutes that KMAs report: goals that are missed, servers that fail more often than
others."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.models import LaunchSetting
from alerts import text
from alerts.evaluation import evaluate_kind
from alerts.models import Alert
from alerts.sources import kind_of
from contract.histogram import bucket, packed
from metrics import rollup
from tests.web.rows import api_client
from tests.web.test_minute_figures import HOUR, MINUTE, NOON, Hall, settle

pytestmark = pytest.mark.django_db
QUICK, SLOW = bucket(1.0), bucket(900.0)


def look(name: str, now: Any) -> list[str]:
    kind = kind_of(name)
    assert kind is not None
    evaluate_kind(kind, now)
    return list(Alert.objects.filter(kind=name, state="open").values_list("subject", flat=True))


def handle(hall: Hall, minute: int, succeeded: int, *, failed: int = 0, late: int = 0) -> None:
    critical = packed({QUICK: succeeded - late, SLOW: late})
    at = NOON + minute * MINUTE
    hall.send(hall.minute(at, succeeded=succeeded, failed=failed, recovered=0, critical=critical))
    rollup.fold_all(at + 2 * MINUTE)


def goal(hall: Hall) -> None:
    LaunchSetting.objects.filter(pk=hall.setting.pk).update(goal_seconds=300.0, goal_percent=99.0)
    hall.setting.refresh_from_db()


# -- goals ---------------------------------------------------------------------------------------------------


def test_a_goal_that_burns_is_told_until_messages_are_in_time_again() -> None:
    hall = Hall()
    goal(hall)
    for minute in range(10):
        handle(hall, minute, 100)
    assert look("goal_burning", NOON + 11 * MINUTE) == []
    for minute in range(10, 20):
        handle(hall, minute, 100, late=60)
    now = NOON + 20 * MINUTE
    assert look("goal_burning", now) == ["orders"]
    assert text.says(Alert.objects.get()) == (
        "“orders”: in the last 1 h, 30 % of messages were processed more than 5 min after "
        "sending. The goal allows 1 %. At this rate, the 30-day error budget lasts 1 d."
    )
    assert look("goal_burning_slowly", now) == ["orders"]
    for minute in range(20, 60):
        handle(hall, minute, 100)
    assert look("goal_burning", NOON + 60 * MINUTE) == []


def test_without_a_goal_or_with_a_few_late_messages_nothing_is_told() -> None:
    hall = Hall()
    handle(hall, 0, 100, late=100)
    assert look("goal_burning", NOON + 2 * MINUTE) == []
    goal(hall)
    LaunchSetting.objects.update(goal_seconds=3600.0)
    assert look("goal_burning", NOON + 2 * MINUTE) == []
    other = Hall("few")
    goal(other)
    handle(other, 0, 4, late=4)
    assert look("goal_burning", NOON + 2 * MINUTE) == []


def test_the_setting_shows_its_goal_its_budget_and_how_fast_it_burns(
    client: Client, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    hall = Hall()
    client.force_login(operator)
    monkeypatch.setattr(timezone, "now", lambda: NOON + 2 * MINUTE)
    assert "Error budget left" not in client.get("/settings/orders/").content.decode()
    goal(hall)
    page = client.get("/settings/orders/").content.decode()
    assert "99 % of messages processed within 5 min" in page and "No messages with a sending time" in page
    handle(hall, 0, 1000, late=4)
    page = client.get("/settings/orders/").content.decode()
    assert "99.60 %" in page or "99.6 %" in page
    assert "60 %" in page and "×0.4" in page


def test_a_goal_is_set_and_refused_over_rest(operator: User) -> None:
    Hall()
    client = api_client(operator)
    answer = client.patch("/api/v1/settings/orders/", {"goal_seconds": 300, "goal_percent": 99.5})
    assert answer.status_code == 200, answer.content
    assert (answer.json()["goal_seconds"], answer.json()["goal_percent"]) == (300.0, 99.5)
    for wrong in ({"goal_percent": 100}, {"goal_percent": 0}, {"goal_seconds": -1}):
        assert client.patch("/api/v1/settings/orders/", wrong).status_code == 400, wrong


# -- servers -------------------------------------------------------------------------------------------------


@pytest.fixture
def halls() -> tuple[Hall, Hall]:
    return Hall("orders", "srv-1"), Hall("orders", "srv-2")


def test_a_server_that_fails_more_often_is_told_on_overview_setting_and_server(
    halls: tuple[Hall, Hall], client: Client, operator: User
) -> None:
    bad, good = halls
    for minute in range(5):
        handle(bad, minute, 18, failed=2)
        handle(good, minute, 20)
    assert look("server_odd", NOON + 6 * MINUTE) == ["orders@srv-1"]
    alert = Alert.objects.get()
    said = text.says(alert)
    assert said == (
        "“orders”: the failure rate on srv-1 is higher than on the other servers. Failed "
        "attempts: 10 of 100; on the other servers: 0 of 100."
    )
    assert (alert.setting, alert.server) == (bad.setting, bad.server)
    client.force_login(operator)
    for page in ("/", "/settings/orders/", "/servers/srv-1/"):
        assert "failure rate on srv-1 is higher" in client.get(page).content.decode(), page
    assert "failure rate on" not in client.get("/servers/srv-2/").content.decode()


@pytest.mark.parametrize("failed", [(2, 2), (1, 0)], ids=["equal rates", "small numbers"])
def test_equal_rates_and_small_numbers_are_silent(halls: tuple[Hall, Hall], failed: tuple[int, int]) -> None:
    for minute in range(4):
        for hall, number in zip(halls, failed, strict=True):
            handle(hall, minute, 25 - number, failed=number)
    assert look("server_odd", NOON + 6 * MINUTE) == []


def test_what_was_packed_into_hours_counts_and_what_is_older_does_not(halls: tuple[Hall, Hall]) -> None:
    bad, good = halls
    for minute in range(0, 50, 10):
        handle(bad, minute, 18, failed=2)
        handle(good, minute, 20)
    settle(NOON + 80 * MINUTE)
    assert look("server_odd", NOON + 81 * MINUTE) == ["orders@srv-1"]
    assert look("server_odd", NOON + 2 * HOUR + MINUTE) == ["orders@srv-1"], "ten minutes of quiet are needed"
    assert look("server_odd", NOON + 2 * HOUR + 12 * MINUTE) == []


def test_it_is_looked_at_once_a_minute_and_stays_open_in_between(halls: tuple[Hall, Hall]) -> None:
    bad, good = halls
    for minute in range(5):
        handle(bad, minute, 18, failed=2)
        handle(good, minute, 20)
    now = NOON + 6 * MINUTE
    assert look("server_odd", now) == ["orders@srv-1"]
    LaunchSetting.objects.all()
    assert look("server_odd", now + timedelta(seconds=10)) == ["orders@srv-1"]
