"""Headers, health, OpenAPI and the environment of the site."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils import timezone

from agents.models import Pool, Server
from agents.services.signs import sign_of_life
from agents.services.tokens import issue_server_token
from ma_site import env, health
from ma_site.logs import drop_forbidden
from tests import environment


def test_every_answer_carries_the_strict_policy(client: Client, db: None) -> None:
    for path in ("/healthz/", "/api/v1/docs/", "/api/v1/settings/", "/login/", "/nothing"):
        headers = client.get(path).headers
        assert "script-src 'self';" in headers["Content-Security-Policy"], path
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")


def test_the_api_description_loads_only_from_here_and_without_inline_script(client: Client, db: None) -> None:
    page = client.get("/api/v1/docs/").content.decode()

    assert "https://" not in page and "http://" not in page
    assert "<style" not in page and " style=" not in page
    assert all("src=" in tag.split(">")[0] for tag in page.split("<script")[1:])
    assert client.get("/api/v1/schema/", HTTP_ACCEPT="application/vnd.oai.openapi+json").status_code == 200


def test_health_names_each_part_in_one_word(client: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    pool = Pool.objects.create(name="demo")
    pool.servers.add(Server.objects.create(name="srv-1", last_seen_at=now - timedelta(seconds=3)))
    pool.servers.add(Server.objects.create(name="srv-2"))
    sign_of_life("beat", now)
    sign_of_life("feed", now - timedelta(minutes=5))
    monkeypatch.setattr(health, "_redis", lambda: None)
    answer = client.get("/healthz/")

    assert answer.status_code == 200
    body = answer.json()
    assert body["status"] == "degraded"
    assert body["parts"] == {"database": "ok", "redis": "ok", "broker": "down", "beat": "ok", "feed": "down"}
    assert 3 <= body["servers"]["srv-1"] < 10 and body["servers"]["srv-2"] is None


def test_health_is_ok_when_every_part_is(client: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("beat", "feed"):
        sign_of_life(name, timezone.now())
    monkeypatch.setattr(health, "_redis", lambda: None)
    monkeypatch.setattr(health, "_broker", lambda: None)

    assert client.get("/healthz/").json()["status"] == "ok"

    server = Server.objects.create(name="srv-1", last_seen_at=timezone.now() - timedelta(seconds=16))
    assert client.get("/healthz/").json()["status"] == "ok"
    Pool.objects.create(name="demo").servers.add(server)
    assert client.get("/healthz/").json()["status"] == "degraded"


def test_a_server_that_was_never_heard_degrades_the_house_once_somebody_counts_on_it(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("beat", "feed"):
        sign_of_life(name, timezone.now())
    monkeypatch.setattr(health, "_redis", lambda: None)
    monkeypatch.setattr(health, "_broker", lambda: None)
    server = Server.objects.create(name="srv-1")
    assert client.get("/healthz/").json()["status"] == "ok"

    issue_server_token(server, now=timezone.now())
    assert client.get("/healthz/").json()["status"] == "degraded"


# -- environment --------------------------------------------------------------------------------------------------


def test_every_problem_of_the_environment_is_told_at_once() -> None:
    wrong = environment.VALUES | {"MA_REDIS_URL": "http://x", "MA_DEBUG": "yes", "MA_AMQP_URL": "amqp://u:secret@h:1"}
    del wrong["MA_SECRET_KEY"]
    with pytest.raises(ImproperlyConfigured) as refused:
        env.read(wrong)

    for name in ("MA_REDIS_URL", "MA_DEBUG", "MA_AMQP_URL", "MA_SECRET_KEY is not set"):
        assert name in str(refused.value)
    assert "secret" not in str(refused.value).lower().replace("ma_secret_key", "")


def test_a_secret_may_come_from_a_file_but_not_from_both(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from the file\n")
    given = dict(environment.VALUES)
    del given["MA_BROKER_PASSWORD"]
    assert env.read(given | {"MA_BROKER_PASSWORD_FILE": str(file)}).broker_password == "from the file"
    with pytest.raises(ImproperlyConfigured, match="both set"):
        env.read(environment.VALUES | {"MA_BROKER_PASSWORD_FILE": str(file)})


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("sqlite:///var/ma.db", "/var/ma.db"),
        ("sqlite:////var/ma.db", "/var/ma.db"),
        ("sqlite:///var/a%20b.db", "/var/a b.db"),
        ("postgresql://u:p%40w@host:5433/ma", "ma"),
    ],
)
def test_database_urls_are_read(url: str, name: str) -> None:
    assert env.parse_database(url)["NAME"] == name


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://relative/x", "sqlite:///", "postgresql://host"])
def test_other_database_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError):
        env.parse_database(url)


def test_secrets_are_in_no_repr() -> None:
    shown = repr(env.read(environment.VALUES | {"MA_BROKER_PASSWORD": "very-hidden"}))
    assert "very-hidden" not in shown and environment.VALUES["MA_SECRET_KEY"] not in shown


def test_payloads_and_secrets_are_dropped_from_log_lines() -> None:
    event: Any = {"event": "seen", "body": "card 4711", "token": "kma_x", "setting": "orders"}

    assert drop_forbidden(None, "info", event) == {
        "event": "seen",
        "body": "left out",
        "token": "left out",
        "setting": "orders",
    }


def test_log_lines_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    import logging

    from ma_site.logs import formatter

    record = logging.LogRecord("x", logging.INFO, __file__, 1, "hello %s", ("there",), None)
    assert json.loads(formatter().format(record))["event"] == "hello there"
