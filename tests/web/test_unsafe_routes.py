"""Which routes that change something leave no entry in the audit: a figure that may only get better. The
list of them is approved, so that one more, or one less, is a visible diff."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.db import connection, transaction
from django.test import Client

from agents.models import ScheduledGroup
from console.audit.models import AuditEntry
from ma_site.api import every_command
from tests.architecture.approval import assert_approved
from tests.architecture.ratchet import UNAUDITED, assert_no_worse
from tests.web import launching_requests, letter_requests
from tests.web.factories import World
from tests.web.letter_requests import KEY
from tests.web.pipeline import use
from tests.web.remote_client import Ran, RemoteClient, command_for, words_for
from tests.web.rows import api_client
from tests.web.unsafe_routes import PASSWORD, Ask, of_pages, of_rest, of_the_admin

pytestmark = pytest.mark.django_db
PLACE = re.compile(r"\{\w+\}|<[\w:]+>")
# A look, a page that leads elsewhere, the language of one browser.
CHANGE_NOTHING = (
    Ask("POST /api/v1/preflight/", said={"setting": KEY, "all": True}),
    Ask("POST /agents/launchsetting/<id>/delete/"),
    Ask("POST /agents/scheduledgroup/<id>/delete/", [lambda: ScheduledGroup.objects.create(name="night").pk]),
    Ask("POST /agents/server/<id>/delete/"),
    Ask("POST /favicon.ico"),
    Ask("POST /healthz/"),
    Ask("POST /metrics/"),
    Ask("POST /i18n/setlang/", said={"language": "ru"}),
    Ask("POST /r/<path:content_type_id>/<path:object_id>/"),
    Ask("POST /records/"),
)
# As often as messages come; the row of the delivery says who.
OF_MACHINES = {"POST /api/v1/acknowledgements/"}
# But who is signed in, and when a token was used last.
WRITES = re.compile(r'(INSERT|UPDATE|DELETE|REPLACE)\b(?!.*"(django_session|console_apitoken)")', re.DOTALL)


@pytest.fixture
def person(db: None) -> User:
    """May do everything."""
    return User.objects.create_superuser("root", password=PASSWORD)


@pytest.fixture
def letters(person: User, monkeypatch: pytest.MonkeyPatch, sent: list[str]) -> Iterator[letter_requests.Rows]:
    rows = letter_requests.Rows(person, monkeypatch)
    yield rows
    rows.house.close()


@pytest.fixture
def launching(
    world: World, person: User, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> launching_requests.Rows:
    use(settings, tmp_path, "well")
    settings.MA_EMAIL_READY = True
    return launching_requests.Rows(world, person, monkeypatch)


def prepared(person: User, ask: Ask) -> Callable[[], Any]:
    """Sends it: REST by a token, a page by a browser."""
    method, route = ask.route.split()[:2]
    places = iter(ask.of)
    address = PLACE.sub(lambda _: str(now(next(places, "1"))), route)
    said = {name: now(value) for name, value in ask.said.items()}
    if address.startswith("/api/"):
        data = json.dumps(said) if said else ""
        return partial(api_client(person).generic, method, address, data, content_type="application/json")
    browser = Client()
    if route != "/login/":
        browser.force_login(person)
    return partial(browser.post, address, said)


def now(value: Any) -> Any:
    return value() if callable(value) else value


def done(answer: Any) -> bool:
    """A page that did it leads on; it may lead on as well where it only says why not."""
    if answer.wsgi_request.path.startswith(("/api/", "/logout/")):
        return bool(answer.status_code < 400)
    said = [message.level for message in get_messages(answer.wsgi_request)]
    return bool(answer.status_code == 302 and max(said, default=0) < messages.WARNING)


def entries() -> int:
    return AuditEntry.objects.filter(result="done").count()


def walk(
    person: User, requests: Iterator[Ask], by: Callable[[User, Ask], Callable[[], Any]] = prepared
) -> Iterator[tuple[str, Any, int]]:
    """Route, answer, and entries that it left; then nothing of it is left."""
    while True:
        before = transaction.savepoint()
        ask = next(requests, None)
        if ask is None:
            return
        if ask.first:
            prepared(person, ask.first)()
        found = entries()
        answer = by(person, ask)()
        yield ask.route, answer, entries() - found
        transaction.savepoint_rollback(before)


@pytest.mark.both_databases
@pytest.mark.process  # no process, but as dear as one
def test_no_more_routes_leave_no_entry(
    launching: launching_requests.Rows, letters: letter_requests.Rows, person: User
) -> None:
    launching.lie_on(letters.house.management)
    client = Client()
    client.force_login(person)
    routes = {*of_rest(), *of_pages(client), *of_the_admin(person)} - {ask.route for ask in CHANGE_NOTHING}
    routes -= OF_MACHINES
    found, not_done = dict[str, bool](), []
    for route, answer, left in walk(person, chain(letters.requests(), launching.requests())):
        if not done(answer):
            not_done.append((route, answer.status_code, answer.content[:200]))
        if route not in OF_MACHINES:
            found[route] = left > 0
    assert not_done == []
    assert found.keys() == routes, "a new route has its request in tests/web/*_requests.py"
    unaudited = sorted((route.split()[1:], route) for route, left in found.items() if not left)
    assert_approved("unaudited-routes.txt", "\n".join(route for _, route in unaudited))
    assert_no_worse({UNAUDITED: len(unaudited)})


@pytest.mark.process  # no process, but as dear as one
def test_each_route_that_changes_something_is_done_by_its_remote_command(
    launching: launching_requests.Rows,
    letters: letter_requests.Rows,
    person: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launching.lie_on(letters.house.management)
    remote, commands = RemoteClient(person, monkeypatch), every_command()

    def by_remote(_person: User, ask: Ask) -> Callable[[], Ran | None]:
        method, path = ask.route.split()[:2]
        if not path.startswith("/api/"):
            return lambda: None
        said = {name: now(value) for name, value in ask.said.items()}
        command = command_for(commands, method, path, said)
        return partial(remote, *words_for(command, [now(place) for place in ask.of], said))

    found, not_done = set(), []
    for route, ran, left in walk(person, chain(letters.requests(), launching.requests()), by_remote):
        if ran is None:
            continue
        found.add(route)
        if ran.code != 0 or (not left and route not in OF_MACHINES):
            not_done.append((route, ran))
    assert not_done == []
    assert found | {"POST /api/v1/preflight/"} == {*of_rest()}


@pytest.mark.parametrize("ask", CHANGE_NOTHING, ids=lambda ask: ask.route)
def test_what_needs_no_entry_writes_nothing(letters: letter_requests.Rows, person: User, ask: Ask) -> None:
    written = []

    def note(execute: Any, sql: str, *arguments: Any) -> Any:
        if WRITES.match(sql):
            written.append(sql)
        return execute(sql, *arguments)

    send = prepared(person, ask)
    with connection.execute_wrapper(note):
        answer = send()
    assert (answer.status_code < 500, written) == (True, [])
