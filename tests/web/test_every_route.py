"""Every route of the API, found by walking the addresses: each answers OPTIONS and HEAD with the right of
what it does, and no answer is kept by a cache."""

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient

from tests.web.factories import World
from tests.web.rows import api_client

# Everybody may read what the API looks like.
OPEN = ("/api/v1/schema/", "/api/v1/docs/", "/api/v1/commands/")
FOR_SERVERS = ("/api/v1/heartbeat/",)


def patterns(found: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for each in found:
        if isinstance(each, URLResolver):
            yield from patterns(each.url_patterns, before + str(each.pattern))
        elif isinstance(each, URLPattern):
            yield before + str(each.pattern), each.callback


def filled(route: str, world: World) -> str:
    """The address of a thing that exists, or of one that might."""
    key = "orders-export"
    path = re.sub(r"\(\?P<(key|name)>[^)]*\)|<str:key>", key, route)
    path = re.sub(r"\(\?P<acknowledgement>[^)]*\)", "none", path)
    path = path.replace("<uuid:pk>", str(UUID(int=7))).replace("<int:pk>", str(world.letters[0].pk))
    return "/" + re.sub(r"\(\?P<pk>[^)]*\)", "1", path).replace("^", "").replace("$", "")


def routes(world: World) -> dict[str, Any]:
    found = {}
    for route, view in patterns(get_resolver().url_patterns):
        kind = getattr(view, "cls", None) or getattr(view, "view_class", None)
        if route.startswith("api/v1/") and kind is not None:
            actions = getattr(view, "actions", None)
            found[filled(route, world)] = set(actions) if actions else {
                each for each in ("get", "post", "put", "patch", "delete") if hasattr(kind, each)
            }  # fmt: skip
    assert len(found) > 90
    return found


def faults(client: APIClient, world: World, method: str, expected: Any) -> dict[str, int]:
    """What each route answered, where it is not expected."""
    found = {}
    for path, takes in routes(world).items():
        answer = client.generic(method, path)
        read_to_the_end(answer)
        if answer.status_code not in expected(path, takes):
            found[path] = answer.status_code
    return found


def read_to_the_end(answer: Any) -> None:
    """A file that is sent holds one of few places until it is read."""
    if answer.streaming:
        list(answer)


def statuses(client: APIClient, world: World) -> dict[str, int]:
    """Of every GET."""
    found = {}
    for path, takes in routes(world).items():
        if "get" in takes:
            answer = client.get(path)
            read_to_the_end(answer)
            found[path] = answer.status_code
    return found


def test_every_route_tells_those_who_may_read_what_it_takes(world: World) -> None:
    client = api_client(User.objects.create_superuser("root"))

    assert faults(client, world, "OPTIONS", lambda path, _: {401} if path in FOR_SERVERS else {200}) == {}


def test_options_need_the_right_of_what_the_route_does(world: World) -> None:
    """What a route that only does something asks of a person may depend on the setting that the body
    names."""
    client = api_client(User.objects.get(username="outsider"))
    got = statuses(client, world)
    assert sum(code == 403 for code in got.values()) > 50

    def expected(path: str, takes: set[str]) -> set[int]:
        if path in FOR_SERVERS:
            return {401}
        return {200} if got.get(path) == 200 else {200, 403}

    assert faults(client, world, "OPTIONS", expected) == {}
    assert len(faults(client, world, "OPTIONS", lambda path, takes: {200, 401})) > 50


@pytest.mark.parametrize("name", ["", "outsider"])
def test_a_head_is_answered_as_its_get_without_the_body(world: World, name: str) -> None:
    client = api_client(User.objects.get(username=name) if name else User.objects.create_superuser("root"))
    got = statuses(client, world)

    def expected(path: str, takes: set[str]) -> set[int]:
        return {got[path]} if "get" in takes else {401 if path in FOR_SERVERS else 405}

    assert faults(client, world, "HEAD", expected) == {}


def test_no_answer_of_the_api_is_kept_by_a_cache_or_given_to_another_token(world: World) -> None:
    person = api_client(User.objects.create_superuser("root"))
    stranger = Client()
    for path, takes in routes(world).items():
        for answer in (
            stranger.get(path),
            person.options(path),
            *([person.get(path)] if "get" in takes else []),
        ):
            read_to_the_end(answer)
            assert "no-store" in answer.headers.get("Cache-Control", ""), path
            assert "authorization" in answer.headers.get("Vary", "").lower(), path


def test_an_address_that_leads_elsewhere_ends_on_the_overview_after_signing_in(
    client: Client, db: None
) -> None:
    User.objects.create_superuser("root", password="correct horse")
    data = {"username": "root", "password": "correct horse", "next": "//evil.example/"}

    answer = client.post("/login/?next=//evil.example/", data)

    assert (answer.status_code, answer.headers["Location"]) == (302, "/")


def test_the_cookie_of_the_language_is_kept_from_scripts(client: Client, db: None) -> None:
    client.post("/i18n/setlang/", {"language": "ru", "next": "/"})
    cookie = client.cookies["django_language"]

    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")


def test_no_list_takes_a_filter_that_it_does_not_know(world: World) -> None:
    """Misspelt, it would match everything."""
    client = api_client(User.objects.create_superuser("root"))
    lists, taken = 0, []
    for path, takes in routes(world).items():
        if "get" not in takes or path in OPEN or not is_list(client.get(path)):
            continue
        lists += 1
        if client.get(path, {"misspelt": "1"}).status_code != 400:
            taken.append(path)
    assert not taken, " ".join(taken)
    assert lists > 20


def is_list(answer: Any) -> bool:
    read_to_the_end(answer)
    if answer.status_code != 200 or answer.get("Content-Type") != "application/json":
        return False
    body = answer.json()
    return isinstance(body, list) or "results" in body
