"""The address of a webhook is a secret as a rule: only who may edit what it belongs to sees more than its
host."""

import re
from datetime import datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from agents.models import BreakerTrip, LaunchSetting, Pool, Server
from alerts.models import NoticeTarget
from alerts.notices.channels.request import OutgoingRequest
from alerts.notices.http import Undelivered, post
from console.ui.text import masked
from tests.web.rows import NOW, api_client, make_alive
from tests.web.teams import teammate
from tests.web.test_breaker_trips import give_up, started

HOOK = "https://alerts.example.org:8443/team-7/hook?key=q1w2e3"
SEEN = "https://alerts.example.org:8443/…"


@pytest.fixture
def target(setting: LaunchSetting) -> NoticeTarget:
    return NoticeTarget.objects.create(setting=setting, channel="webhook", address=HOOK)


@pytest.fixture
def trip(target: NoticeTarget, server: Server, second_server: Server) -> BreakerTrip:
    make_alive(server, second_server, now=NOW)
    (run,) = started(target.setting).values()  # type: ignore[arg-type]
    give_up(run)
    return BreakerTrip.objects.get()


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        (HOOK, SEEN),
        ("http://user:password@host/x", "http://host/…"),
        ("http://host", "http://host/…"),
        ("http://[::1]:80/x", "http://[::1]:80/…"),
        ("http://host:port/x", "http://…"),
        ("oncall@shop.example", "oncall@shop.example"),
    ],
)
def test_scheme_and_host_are_left_of_an_address(address: str, seen: str) -> None:
    assert masked(address) == seen


def told_of(client: APIClient, trip: BreakerTrip) -> list[str]:
    """Every address that REST tells of."""
    targets = client.get("/api/v1/notice-targets/").json()["results"]
    whole, listed = (
        client.get(f"/api/v1/trips/{trip.pk}/").json(),
        client.get("/api/v1/trips/").json()["results"],
    )
    effects = [
        each["name"] for row in (whole, *listed) for each in row["effects"] if each["what"] == "notice"
    ]
    one = client.get(f"/api/v1/notice-targets/{targets[0]['id']}/").json()
    return [targets[0]["address"], one["address"], whole["notices"][0]["address"], *effects]


@pytest.mark.django_db(transaction=True)
def test_rest_tells_the_whole_address_to_editors_only(
    trip: BreakerTrip, viewer: User, operator: User, pool: Pool
) -> None:
    other = teammate(Pool.objects.create(name="other"), name="stranger")

    assert told_of(api_client(viewer), trip) == [SEEN] * 5 == told_of(api_client(other), trip)
    assert told_of(api_client(operator), trip) == [HOOK] * 5 == told_of(api_client(teammate(pool)), trip)


@pytest.mark.django_db(transaction=True)
def test_one_of_a_pool_is_for_who_may_edit_in_the_pool(
    setting: LaunchSetting, groups: None, pool: Pool
) -> None:
    NoticeTarget.objects.create(pool=pool, channel="webhook", address=HOOK)
    seen = []
    for who in (teammate(pool), teammate(pool, name="runner", rights=("run",))):
        seen.append(api_client(who).get("/api/v1/notice-targets/").json()["results"][0]["address"])

    assert seen == [HOOK, SEEN]


@pytest.mark.django_db(transaction=True)
def test_pages_show_the_whole_address_to_editors_only(
    trip: BreakerTrip, target: NoticeTarget, viewer: User, operator: User, client: Client
) -> None:
    pages = [
        reverse("admin:setting", args=["orders"]),
        reverse("admin:trip", args=[trip.pk]),
        reverse("admin:alerts_noticetarget_change", args=[target.pk]),
    ]
    client.force_login(viewer)
    for page in (*pages, reverse("admin:alerts_noticetarget_changelist")):
        told = client.get(page).content.decode()
        assert SEEN in told and "team-7" not in told and "q1w2e3" not in told, page
    assert SEEN in client.get(reverse("admin:alerts_noticetarget_changelist") + "?q=q1w2e3").content.decode()
    client.force_login(operator)
    for page in pages:
        assert "team-7/hook?key=q1w2e3" in client.get(page).content.decode(), page


@pytest.mark.process
@pytest.mark.parametrize("address", ["http://127.0.0.1:1/team-7?key=q1w2e3", "http://[bad/team-7?key=q1w2e3"])
def test_what_went_wrong_does_not_tell_the_address(address: str) -> None:
    with pytest.raises(Undelivered) as told:
        post(OutgoingRequest(address, b"{}"), datetime.now(NOW.tzinfo))

    assert not re.search("team-7|q1w2e3", str(told.value)), told.value
