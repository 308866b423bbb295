"""A KMA whose version is not supported goes on, and is named on Servers, on Health, by doctor and by an
alert."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone, translation

from agents.models import Pool, Server
from alerts.evaluation import evaluate_kind
from alerts.models import Alert
from alerts.sources import kind_of
from contract import __version__
from ma_site.checks.kmas import check_kmas
from tests.web.rows import api_client, make_alive

pytestmark = pytest.mark.django_db

MAJOR, MINOR = (int(part) for part in __version__.split(".")[:2])
OLD, BEFORE, NEW = f"{MAJOR}.{MINOR - 2}.7", f"{MAJOR}.{MINOR - 1}.7", f"{MAJOR}.{MINOR + 1}.0"
NOT_SUPPORTED = f"The KMA on srv-1 has version {OLD}, which is no longer supported"
NEWER = f"The KMA on srv-1 has version {NEW}, which is newer than this site ({__version__})"


@pytest.fixture
def now(server: Server, pool: Pool) -> datetime:
    moment = timezone.now()
    make_alive(server, now=moment)
    return moment


def has(server: Server, version: str) -> None:
    Server.objects.filter(pk=server.pk).update(kma_version=version)


def health_of(who: User) -> dict[str, Any]:
    parts = api_client(who).get("/api/v1/health/").json()["servers"]
    return next(dict(part) for part in parts if part["name"] == "srv-1")


@pytest.mark.parametrize(("version", "says"), [(OLD, NOT_SUPPORTED), (NEW, NEWER)])
def test_it_is_named_in_plain_words(
    version: str, says: str, server: Server, now: datetime, admin_client: Client, admin_user: User
) -> None:
    has(server, version)
    assert says in admin_client.get("/servers/").content.decode()
    page = admin_client.get("/servers/srv-1/").content.decode()
    assert says in page and "Upgrade " in page
    found = health_of(admin_user)
    assert found["says"].startswith(says) and found["state"] == "degraded" and found["what_to_do"]
    (finding,) = [each for each in check_kmas(now) if each.detail.startswith("The KMA on srv-1")]
    assert not finding.ok and finding.detail.startswith(says)


@pytest.mark.parametrize("version", [__version__, BEFORE, "", "1"])
def test_a_supported_or_unknown_one_is_not(
    version: str, server: Server, now: datetime, admin_user: User
) -> None:
    has(server, version)
    assert health_of(admin_user)["state"] == "ok"
    assert [each.ok for each in check_kmas(now) if each.detail == "srv-1 is online"] == [True]


def test_a_full_spool_is_said_first(server: Server, now: datetime, admin_user: User) -> None:
    has(server, OLD)
    Server.objects.filter(pk=server.pk).update(spool_full=True)
    found = health_of(admin_user)
    assert found["state"] == "degraded" and "takes no more messages" in found["what_to_do"]


def test_the_alert_opens_after_an_upgrade_had_its_time_and_closes_when_it_is_done(
    server: Server, now: datetime
) -> None:
    kind = kind_of("kma_unsupported")
    assert kind is not None
    has(server, OLD)

    def look(minutes: float) -> list[str]:
        at = now + timedelta(minutes=minutes)
        make_alive(server, now=at)
        evaluate_kind(kind, at)
        return list(Alert.objects.filter(kind="kma_unsupported").values_list("state", flat=True))

    for minute in range(10):
        look(minute)
    assert not Alert.objects.filter(kind="kma_unsupported", state="open").exists()
    assert look(10) == ["open"]
    alert = Alert.objects.get(kind="kma_unsupported")
    assert kind.says(alert.facts, alert.value).startswith(NOT_SUPPORTED)
    with translation.override("ru"):
        assert "больше не поддерживается" in kind.says(alert.facts, alert.value)
    has(server, BEFORE)
    assert look(11) == ["open"]
    assert look(12) == ["closed"]
    alert.refresh_from_db()
    assert kind.says(alert.facts, alert.value).startswith(NOT_SUPPORTED)


def test_the_site_says_its_own_version_to_those_who_signed_in(
    client: Client, admin_client: Client, admin_user: User
) -> None:
    assert api_client(admin_user).get("/api/v1/health/").json()["version"] == __version__
    assert f"MA {__version__}" in admin_client.get("/servers/").content.decode()
    assert f"MA {__version__}" not in client.get("/login/").content.decode()
