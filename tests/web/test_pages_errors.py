"""Errors say what happened and what to do, in the frame of the site, with an id that the log has."""

import json
import logging
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import LaunchSetting
from ma_site import logs
from tests.web.factories import World
from tests.web.pages import Elements, signed_in

ID = re.compile(r"<code>([0-9a-f]{12})</code>")


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The lines of the log as they are written, from warnings on."""
    lines: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(self.format(record)))

    handler = Kept(logging.WARNING)
    handler.setFormatter(logs.formatter())
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [*root.handlers, handler])
    return lines


def error_id(answer: Any) -> str:
    (found,) = ID.findall(answer.content.decode())
    assert found == answer.headers["X-Request-Id"]
    return str(found)


def headings(answer: Any) -> list[str]:
    return re.findall(r"<h1[^>]*>(.*?)</h1>", answer.content.decode())


@pytest.fixture
def breaks(operator: User, setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Somebody for whom the page of a setting fails."""

    def broken(*_args: object, **_options: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("agents.pages.settings.operation_buttons", broken)
    client = Client(raise_request_exception=False)
    client.force_login(operator)
    return client


def test_what_is_not_there_is_said_with_its_address(world: World, logged: list[dict[str, Any]]) -> None:
    answer = signed_in(world, "viewer").get("/settings/no\u202ething/")
    page = Elements(answer.content.decode())

    assert (answer.status_code, headings(answer)) == (404, ["Not found"])
    assert "Check the address" in page.text and "/dead-letters/" in page.links()
    assert "\u202e" not in answer.content.decode()
    assert [line["request_id"] for line in logged] == [error_id(answer)]


@pytest.mark.parametrize(
    ("path", "words", "name"),
    [
        ("/servers/", "Can view servers", "agents.view_server"),
        ("/dead-letters/", "Can view dead letters", "dlq.view_deadletter"),
        ("/replays/", "Can view dead letters", "dlq.view_deadletter"),
        ("/destinations/1/apply/", "Can view destinations", "agents.view_destination"),
    ],
)
def test_what_is_not_allowed_names_the_permission_and_whom_to_ask(
    world: World, logged: list[dict[str, Any]], path: str, words: str, name: str
) -> None:
    answer = signed_in(world, "outsider").get(path)

    assert (answer.status_code, headings(answer)) == (403, ["Permission denied"])
    assert f"<li><b>{words}</b> <code>{name}</code></li>" in answer.content.decode()
    assert "group “viewer” or “operator”" in answer.content.decode()
    assert error_id(answer) in [line.get("request_id") for line in logged]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/settings/orders-export/disable/", "agents.can_disable"),
        ("/servers/srv-1/cordon/", "agents.can_change_duty"),
    ],
)
def test_an_operation_names_the_permission_that_it_needs(world: World, path: str, name: str) -> None:
    for answer in (signed_in(world, "viewer").get(path), signed_in(world, "viewer").post(path)):
        assert answer.status_code == 403
        assert f"<code>{name}</code></li>" in answer.content.decode()


def test_a_refusal_is_said_in_russian(world: World) -> None:
    client = signed_in(world, "outsider")
    client.cookies["django_language"] = "ru"

    text = Elements(client.get("/servers/").content.decode()).text
    assert "Недостаточно прав" in text and "Не хватает права:" in text and "agents.view_server" in text
    assert "Идентификатор ошибки:" in text
    assert "Проверьте адрес" in Elements(client.get("/nothing/").content.decode()).text


def test_a_form_that_is_too_old_says_that_nothing_was_changed(world: World) -> None:
    answer = signed_in(world, "operator", enforce_csrf_checks=True).post("/settings/orders-export/disable/")

    assert (answer.status_code, headings(answer)) == (403, ["Form not accepted"])
    assert "Nothing was changed" in answer.content.decode()


@pytest.mark.parametrize(
    ("language", "heading"), [("en", "Something went wrong"), ("ru", "Произошла ошибка")]
)
def test_our_own_failure_has_an_id_under_which_the_log_has_the_cause(
    breaks: Client, logged: list[dict[str, Any]], language: str, heading: str
) -> None:
    breaks.cookies["django_language"] = language
    answer = breaks.get("/settings/orders/")
    page = Elements(answer.content.decode())

    assert (answer.status_code, headings(answer)) == (500, [heading])
    assert "./ma logs web" in page.text and not page.inline_scripts and "/" in page.links()
    (line,) = [each for each in logged if "RuntimeError: broken" in each.get("exception", "")]
    assert line["request_id"] == error_id(answer)


def test_the_errors_of_the_interface_for_programs_have_the_id_too(
    breaks: Client, logged: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = breaks.get("/api/v1/nothing/")
    assert (answer.status_code, answer.json()["id"]) == (404, answer.headers["X-Request-Id"])
    answer = breaks.get("/api/v1/settings/")
    assert (answer.status_code, answer.json()["id"]) == (401, answer.headers["X-Request-Id"])

    monkeypatch.setattr("console.tokens.authentication.bearer", lambda _request: 1 / 0)
    answer = breaks.get("/api/v1/settings/")
    assert (answer.status_code, answer.json()["id"]) == (500, answer.headers["X-Request-Id"])
    (line,) = [each for each in logged if "ZeroDivisionError" in each.get("exception", "")]
    assert line["request_id"] == answer.json()["id"] and answer.json()["id"] in answer.json()["detail"]


def test_each_request_has_an_id_of_its_own_whatever_it_sends(client: Client) -> None:
    named = {"HTTP_X_REQUEST_ID": "of-somebody"}
    ids = [client.get("/favicon.ico", **named).headers["X-Request-Id"] for _ in range(2)]  # type: ignore[arg-type]  # headers
    assert len({*ids, "of-somebody"}) == 3


def test_a_stranger_is_not_shown_the_navigation(db: None, client: Client) -> None:
    assert "/dead-letters/" not in client.get("/login/").content.decode()


def test_a_page_that_is_not_there_keeps_person_language_and_theme(world: World) -> None:
    page = Elements(signed_in(world, "viewer").get("/nothing/").content.decode())

    assert "viewer" in page.text and "Log out" in page.text
    assert {"RU", "EN"} <= set(page.texts)
    assert any("theme-toggle" in (attributes.get("class") or "") for _tag, attributes in page.found)


def test_browsers_find_the_icon_where_they_look_for_it(db: None, client: Client) -> None:
    assert client.get("/favicon.ico").headers["Location"].endswith("/ma/icon.svg")
