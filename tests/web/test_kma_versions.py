"""A KMA whose version of the wire the site does not speak is said to be that: it is not just silent."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.models import Pool, Server
from alerts import text
from alerts.evaluation import evaluate_kind
from alerts.models import Alert
from alerts.sources import kind_of
from contract.messages import OLDEST_VERSION, VERSION
from ma_site.checks import run_checks
from tests.web.pages import looked_at
from tests.web.rows import api_client, heartbeat_json, make_alive


def beat(server: Server, version: int) -> int:
    body = heartbeat_json(server.name) | {"version": version, "of_that_version": {"unknown": True}}
    if OLDEST_VERSION <= version <= VERSION:
        del body["of_that_version"]
    return int(api_client(server).post("/api/v1/heartbeat/", body, format="json").status_code)


def page_of(viewer: User, path: str) -> str:
    client = Client()
    client.force_login(viewer)
    return looked_at(client, path).text


@pytest.mark.django_db(transaction=True)
def test_one_that_is_too_old_is_said_to_be_that_until_it_is_upgraded(
    server: Server, pool: Pool, viewer: User
) -> None:
    make_alive(server, now=timezone.now() - timedelta(minutes=5))
    assert beat(server, OLDEST_VERSION - 1) == 400
    problem = (
        f"srv-1 is too old for this site: its protocol version is {OLDEST_VERSION - 1}, "
        f"but the site needs at least {OLDEST_VERSION}"
    )
    assert problem in page_of(viewer, "/servers/srv-1/")
    assert problem in page_of(viewer, "/health/")
    assert any(problem in finding.detail for finding in run_checks(timezone.now()))
    kind = kind_of("server_silent")
    assert kind is not None
    for seconds in (0, 30):
        evaluate_kind(kind, timezone.now() + timedelta(seconds=seconds))
    alert = Alert.objects.get(kind="server_silent", subject="srv-1")
    assert problem in text.says(alert) and (
        "Upgrade the KMA. Until then, it keeps running its instances and stores records locally."
    ) in text.what_to_do(alert)

    assert beat(server, VERSION) == 200
    assert "is too old for this site: its protocol version is" not in page_of(
        viewer, "/servers/srv-1/"
    ) + page_of(viewer, "/health/")


@pytest.mark.django_db(transaction=True)
def test_one_that_is_newer_than_the_site_is_told_apart(server: Server, pool: Pool, viewer: User) -> None:
    make_alive(server, now=timezone.now() - timedelta(minutes=5))
    assert beat(server, VERSION + 1) == 400
    assert f"srv-1 is newer than this site: its protocol version is {VERSION + 1}" in page_of(
        viewer, "/servers/srv-1/"
    )
