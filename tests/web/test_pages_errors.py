"""Errors say what happened and what to do, in the frame of the site, with nothing inline."""

from django.template.loader import render_to_string
from django.test import Client

from tests.web.factories import World
from tests.web.pages import Elements, signed_in


def test_what_is_not_there_is_said_with_its_address(world: World) -> None:
    answer = signed_in(world, "viewer").get("/settings/no\u202ething/")
    page = Elements(answer.content.decode())

    assert answer.status_code == 404
    assert "Page not found or deleted (404)." in page.text and "/dead-letters/" in page.links()
    assert "\u202e" not in answer.content.decode()


def test_what_is_not_allowed_says_whom_to_ask(world: World) -> None:
    answer = signed_in(world, "outsider").get("/servers/")

    assert answer.status_code == 403
    assert "group “viewer” or “operator”" in answer.content.decode()


def test_a_form_that_is_too_old_says_that_nothing_was_changed(world: World) -> None:
    answer = signed_in(world, "operator", enforce_csrf_checks=True).post("/settings/orders-export/disable/")

    assert answer.status_code == 403
    assert "Nothing was changed" in answer.content.decode()


def test_our_own_failure_names_the_log_and_needs_nothing_to_be_shown() -> None:
    page = Elements(render_to_string("500.html"))

    assert "./ma logs web" in page.text and not page.inline_scripts


def test_a_stranger_is_not_shown_the_navigation(db: None, client: Client) -> None:
    assert "/dead-letters/" not in client.get("/login/").content.decode()


def test_a_page_that_is_not_there_keeps_person_language_and_theme(world: World) -> None:
    page = Elements(signed_in(world, "viewer").get("/nothing/").content.decode())

    assert "viewer" in page.text and "Log out" in page.text
    assert {"RU", "EN"} <= set(page.texts)
    assert any("theme-toggle" in (attributes.get("class") or "") for _tag, attributes in page.found)


def test_browsers_find_the_icon_where_they_look_for_it(db: None, client: Client) -> None:
    assert client.get("/favicon.ico").headers["Location"].endswith("/ma/icon.svg")
