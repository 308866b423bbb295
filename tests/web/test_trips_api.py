"""Trips over REST, and the addresses that are told of them."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import BreakerTrip, LaunchSetting, Pool, Server
from agents.settings.enable import enable_setting
from alerts.models import Notice, NoticeTarget
from tests.web.rows import NOW, api_client, make_alive, make_setting
from tests.web.test_breaker_trips import give_up, started

pytestmark = pytest.mark.django_db(transaction=True)
HOOK = "https://alerts.example.org/ma"
HOOK_SEEN = "https://alerts.example.org/…"


@pytest.fixture
def trip(setting: LaunchSetting, server: Server, second_server: Server) -> BreakerTrip:
    make_alive(server, second_server, now=NOW)
    NoticeTarget.objects.create(setting=setting, channel="webhook", address=HOOK, secret="s3cret")
    (run,) = started(setting).values()
    give_up(run)
    return BreakerTrip.objects.get()


def test_a_trip_tells_its_evidence_what_was_done_and_who_was_told(trip: BreakerTrip, viewer: User) -> None:
    answer = api_client(viewer).get(f"/api/v1/trips/{trip.pk}/")

    assert answer.status_code == 200
    told = answer.json()
    assert (told["setting"], told["reason"], told["ended_at"], told["reopened"]) == (
        "orders",
        "same_type",
        None,
        0,
    )
    assert told["quorum"]["interrupted"] == ["srv-1"]
    assert [effect["what"] for effect in told["effects"]] == ["setting_disabled", "notice"]
    (interruption,) = told["interruptions"]
    assert (interruption["server"], interruption["any_count"], len(interruption["evidence"])) == (
        "srv-1",
        3,
        3,
    )
    (notice,) = told["notices"]
    assert (notice["address"], notice["state"]) == (HOOK_SEEN, "pending")
    assert b"s3cret" not in answer.content


def test_the_list_is_narrowed_and_paged_by_key(
    trip: BreakerTrip, pool: Pool, viewer: User, operator: User
) -> None:
    client, other = api_client(viewer), make_setting(pool, key="other", address="t.other")
    for index in range(3):
        at = NOW + timedelta(minutes=index)
        BreakerTrip.objects.create(setting=other, reason="any_type", at=at, ended_at=at)

    first = client.get("/api/v1/trips/?page_size=2").json()
    second = client.get(first["next"]).json()
    assert [row["id"] for row in first["results"] + second["results"]] == [
        each.pk for each in BreakerTrip.objects.order_by("-at", "-id")
    ]
    found = client.get("/api/v1/trips/?setting=orders").json()["results"]
    assert [row["id"] for row in found] == [trip.pk]
    assert [row["id"] for row in client.get("/api/v1/trips/?open=true").json()["results"]] == [trip.pk]
    assert len(client.get("/api/v1/trips/?open=false").json()["results"]) == 3
    enable_setting(trip.setting, operator, NOW + timedelta(hours=1))
    assert client.get("/api/v1/trips/?open=true").json()["results"] == []
    assert client.get(f"/api/v1/trips/{trip.pk}/").json()["ended_by"] == "operator"


@pytest.mark.parametrize("query", ["state=open", "open=perhaps", "setting=" + "x" * 62])
def test_a_filter_that_is_wrong_is_400(trip: BreakerTrip, viewer: User, query: str) -> None:
    assert api_client(viewer).get(f"/api/v1/trips/?{query}").status_code == 400


def test_an_outsider_sees_no_trip(trip: BreakerTrip, outsider: User) -> None:
    assert api_client(outsider).get("/api/v1/trips/").status_code == 403
    assert api_client(outsider).get(f"/api/v1/trips/{trip.pk}/").status_code == 403


def test_the_secret_of_a_webhook_is_shown_once(setting: LaunchSetting, operator: User) -> None:
    client = api_client(operator)

    made = client.post(
        "/api/v1/notice-targets/", {"setting": "orders", "channel": "webhook", "address": HOOK}
    )

    assert made.status_code == 201
    secret = made.json()["secret"]
    target = NoticeTarget.objects.get()
    assert len(secret) >= 32 and target.secret == secret
    for address in ("", f"{target.pk}/"):
        assert secret not in client.get(f"/api/v1/notice-targets/{address}").content.decode()
    renewed = client.post(f"/api/v1/notice-targets/{target.pk}/renew-secret/").json()["secret"]
    target.refresh_from_db()
    assert renewed == target.secret != secret


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"setting": "orders", "pool": "demo", "channel": "webhook", "address": HOOK}, ""),
        ({"setting": "orders", "channel": "webhook", "address": "ftp://x/"}, "address"),
        ({"setting": "orders", "channel": "email", "address": "ops@example.org"}, "channel"),
        ({"setting": "orders", "channel": "pigeon", "address": "loft"}, "channel"),
        ({"setting": "gone", "channel": "webhook", "address": HOOK}, "setting"),
        ({"setting": "orders", "channel": "webhook", "address": HOOK, "secret": "mine"}, "secret"),
    ],
)
def test_a_target_that_is_wrong_is_refused_at_the_field(
    setting: LaunchSetting, operator: User, body: dict[str, Any], where: str
) -> None:
    answer = api_client(operator).post("/api/v1/notice-targets/", body)

    assert answer.status_code == 400, answer.content
    assert where in answer.json()["where"]
    assert not NoticeTarget.objects.exists()


def test_only_who_may_edit_makes_tests_or_removes_a_target(
    setting: LaunchSetting, operator: User, viewer: User, outsider: User
) -> None:
    target = NoticeTarget.objects.create(
        setting=setting, channel="webhook", address="http://127.0.0.1:1/", secret="s"
    )
    url, body = "/api/v1/notice-targets/", {"pool": "demo", "channel": "webhook", "address": HOOK}
    for person in (viewer, outsider):
        client = api_client(person)
        answers = [
            client.post(url, body), client.post(f"{url}{target.pk}/test/"),
            client.post(f"{url}{target.pk}/renew-secret/"), client.delete(f"{url}{target.pk}/"),
        ]  # fmt: skip
        assert [answer.status_code for answer in answers] == [403] * 4
    assert not Notice.objects.exists()

    client = api_client(operator)
    assert client.post(url, body).status_code == 201
    tested = client.post(f"{url}{target.pk}/test/").json()
    assert (tested["state"], tested["attempts"]) == ("failed", 1)
    assert "Connection" in tested["problem"]
    assert client.delete(f"{url}{target.pk}/").status_code == 204
