"""Headers, health, OpenAPI and the environment of the site."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils import timezone

from agents.models import ComponentState, Pool, Server
from agents.servers.admission import issue_server_token
from agents.site.components import measure, note_state
from console.models import ApiToken
from console.processes import record_heartbeat
from deploy import config as configuration
from deploy.processes import readiness
from ma_site import env, health
from ma_site.logs import drop_forbidden
from ma_site.service_urls import parse_database
from tests import environment
from tests.tls import Authority
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.rows import make_person, make_roles


def test_every_answer_carries_the_strict_policy(client: Client, db: None) -> None:
    for path in ("/healthz/", "/api/v1/docs/", "/api/v1/settings/", "/login/", "/nothing"):
        headers = client.get(path).headers
        assert "script-src 'self';" in headers["Content-Security-Policy"], path
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")


def test_the_api_description_loads_only_from_here_and_without_inline_script(client: Client, db: None) -> None:
    page = client.get("/api/v1/docs/").content.decode().replace("http://www.w3.org/2000/svg", "")

    assert "https://" not in page and "http://" not in page
    assert "<style" not in page and " style=" not in page
    assert all("src=" in tag.split(">")[0] for tag in page.split("<script")[1:])
    assert client.get("/api/v1/schema/", HTTP_ACCEPT="application/vnd.oai.openapi+json").status_code == 200


def test_the_api_description_has_the_frame_of_the_site_and_leads_back(world: World) -> None:
    client = signed_in(world, "viewer")
    page = looked_at(client, "/api/v1/docs/")
    assert {"/", "/settings/", "/api/v1/schema/"} <= set(page.links()) and "Log out" in page.text
    assert ("html", "en") in [(tag, attributes.get("lang")) for tag, attributes in page.found]
    assert page.texts.count("REST API") == 2, "entry and heading"
    assert "SwaggerUIBundle" in client.get("/api/v1/docs/?script=").content.decode()

    client.cookies["django_language"] = "ru"
    page = looked_at(client, "/api/v1/docs/")
    assert ("html", "ru") in [(tag, attributes.get("lang")) for tag, attributes in page.found]
    assert "Для каждого запроса нужен токен" in page.text


def test_a_stranger_reads_the_api_description_without_the_navigation(client: Client, db: None) -> None:
    page = looked_at(client, "/api/v1/docs/")
    assert "/settings/" not in page.links() and "/" in page.links()


def all_well() -> None:
    now = timezone.now()
    for name in ("beat", "feed"):
        record_heartbeat(name, now)
    for name in ("broker", "redis"):
        note_state(name, "ok", now)


def test_health_names_each_part_in_one_word(client: Client, db: None) -> None:
    now = timezone.now()
    pool = Pool.objects.create(name="demo")
    pool.servers.add(Server.objects.create(name="srv-1", last_seen_at=now - timedelta(seconds=3)))
    record_heartbeat("beat", now)
    record_heartbeat("feed", now - timedelta(minutes=5))
    note_state("redis", "ok", now)
    note_state("broker", "down", now)
    answer = client.get("/healthz/")

    assert answer.status_code == 200
    assert answer.json() == {
        "status": "degraded",
        "parts": {"database": "ok", "redis": "ok", "broker": "down", "beat": "ok", "feed": "down"},
    }


def test_health_says_stale_when_nobody_measures_any_more(client: Client, db: None) -> None:
    all_well()
    assert client.get("/healthz/").json()["status"] == "ok"
    ComponentState.objects.update(measured_at=timezone.now() - timedelta(seconds=31))

    body = client.get("/healthz/").json()
    assert (body["status"], body["parts"]["broker"], body["parts"]["redis"]) == ("degraded", "stale", "stale")
    ComponentState.objects.all().delete()
    assert client.get("/healthz/").json()["parts"]["broker"] == "unknown"


def test_health_names_servers_to_those_alone_who_may_see_them(
    client: Client, db: None, settings: Any
) -> None:
    make_roles()
    Server.objects.create(name="srv-1", last_seen_at=timezone.now() - timedelta(seconds=3))
    Server.objects.create(name="srv-2")

    def servers(secret: str = "", **session: Any) -> Any:
        asking = Client()
        if session:
            asking.force_login(session["who"])
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return asking.get("/healthz/", headers=headers).json().get("servers")

    viewer, outsider = make_person("viewer", "viewer"), make_person("outsider")
    told = servers(who=viewer)
    assert 3 <= told["srv-1"] < 30 and told["srv-2"] is None
    assert servers() is None and servers("nonsense") is None
    assert servers(who=outsider) is None
    assert servers(ApiToken.issue(viewer, "x", now=timezone.now()))["srv-2"] is None
    assert servers(ApiToken.issue(outsider, "x", now=timezone.now())) is None
    assert servers(health.installation_token(settings.SECRET_KEY)) is not None


def test_the_installation_asks_with_the_token_that_the_site_knows(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "django_key").write_text("key of the site\n")
    asked = readiness._question(configuration.read({"MA_DATA": str(tmp_path)}))

    assert asked.get_header("Authorization") == f"Bearer {health.installation_token('key of the site')}"


def test_a_measurement_keeps_since_when_and_gives_way_to_a_later_one(db: None) -> None:
    now = timezone.now()

    def row() -> tuple[str, datetime, datetime]:
        return ComponentState.objects.values_list("state", "since", "measured_at").get(name="broker")

    note_state("broker", "ok", now)
    note_state("broker", "ok", now + timedelta(seconds=5))
    assert row() == ("ok", now, now + timedelta(seconds=5))
    note_state("broker", "down", now + timedelta(seconds=10), {"reason": "away"})
    assert row() == ("down", now + timedelta(seconds=10), now + timedelta(seconds=10))
    note_state("broker", "ok", now + timedelta(seconds=7))
    assert row() == ("down", now + timedelta(seconds=10), now + timedelta(seconds=10))


def test_what_is_away_is_measured_as_down(db: None) -> None:
    measure(timezone.now())

    assert dict(ComponentState.objects.values_list("name", "state")) == {"broker": "down", "redis": "down"}


def test_health_is_ok_when_every_part_is(client: Client, db: None) -> None:
    all_well()
    server = Server.objects.create(name="srv-1", last_seen_at=timezone.now() - timedelta(seconds=16))
    assert client.get("/healthz/").json()["status"] == "ok"
    Pool.objects.create(name="demo").servers.add(server)
    assert client.get("/healthz/").json()["status"] == "degraded"


def test_a_server_that_was_never_heard_degrades_the_house_once_somebody_counts_on_it(
    client: Client, db: None
) -> None:
    all_well()
    server = Server.objects.create(name="srv-1")
    assert client.get("/healthz/").json()["status"] == "ok"

    issue_server_token(server, now=timezone.now())
    assert client.get("/healthz/").json()["status"] == "degraded"


# -- environment ---------------------------------------------------------------------------------------------


def test_every_problem_of_the_environment_is_told_at_once() -> None:
    wrong = environment.VALUES | {
        "MA_REDIS_URL": "http://x",
        "MA_DEBUG": "yes",
        "MA_AMQP_URL": "amqp://u:secret@h:1",
    }
    del wrong["MA_SECRET_KEY"]
    with pytest.raises(ImproperlyConfigured) as refused:
        env.read(wrong)

    for name in ("MA_REDIS_URL", "MA_DEBUG", "MA_AMQP_URL", "MA_SECRET_KEY is not set"):
        assert name in str(refused.value)
    assert "secret" not in str(refused.value).lower().replace("ma_secret_key", "")


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("MA_AMQP_URL", "amqp://10.0.0.1:5672,amqp://127.0.0.1:5672", "broker"),
        ("MA_STOMP_ADDRESS", "broker.example:61613", "broker"),
        ("MA_REDIS_URL", "redis://:pw@redis.example:6379/0", "redis"),
        ("MA_DATABASE_URL", "postgresql://ma:pw@db.example/ma?sslmode=prefer", "database"),
    ],
)
def test_what_would_leave_this_machine_in_clear_needs_a_word_of_its_own(
    name: str, value: str, kind: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"{name}: .* not be encrypted.* list {kind} in MA_ALLOW"):
        env.read(environment.VALUES | {name: value, "MA_ALLOW_UNENCRYPTED": "site"})
    assert kind in env.read(environment.VALUES | {name: value, "MA_ALLOW_UNENCRYPTED": kind}).unencrypted


@pytest.mark.process
def test_a_certificate_takes_the_place_of_user_and_password(tmp_path: Path) -> None:
    certificate, key = map(str, Authority.create(tmp_path / "authority").sign("ma", subject="ma-ops"))
    given = environment.VALUES | {
        "MA_AMQP_URL": "amqps://a.example,amqps://b.example",
        "MA_STOMP_ADDRESS": "stomps://a.example,stomps://b.example",
        "MA_BROKER_TLS_CERT": certificate,
    }
    for name in ("MA_BROKER_USER", "MA_BROKER_PASSWORD"):
        del given[name]
    read = env.read(given | {"MA_BROKER_TLS_KEY": key})
    assert (read.broker_user, read.broker_password) == ("", "")
    with pytest.raises(ImproperlyConfigured, match="MA_BROKER_TLS_KEY is not set"):
        env.read(given)
    with pytest.raises(ImproperlyConfigured, match="MA_BROKER_TLS_CERT needs TLS"):
        env.read(given | {"MA_BROKER_TLS_KEY": key, "MA_STOMP_ADDRESS": "127.0.0.1:1"})


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
    assert parse_database(url)["NAME"] == name


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://relative/x", "sqlite:///", "postgresql://host"])
def test_other_database_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError):
        parse_database(url)


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
