"""Which routes that change something leave no entry in the audit: a figure that may only get better.

A route counts as long as no request of tests/web/unsafe_requests.py shows that what it does is in the audit:
whoever gives it an entry writes a request for it there. Approved is the list of those without one."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from dlq.models import AuditEntry
from tests.architecture.approval import assert_approved
from tests.architecture.ratchet import UNAUDITED, assert_no_worse
from tests.web.rows import api_client
from tests.web.unsafe_requests import KEY, Ask, Rows
from tests.web.unsafe_routes import of_pages, of_rest, of_the_admin

pytestmark = pytest.mark.django_db
PLACE = re.compile(r"\{\w+\}|<[\w:]+>")
# A look, a page that leads elsewhere, the language of one browser.
CHANGE_NOTHING = (
    Ask("POST /api/v1/preflight/", said={"setting": KEY, "all": True}),
    Ask("POST /favicon.ico"),
    Ask("POST /healthz/"),
    Ask("POST /i18n/setlang/", said={"language": "ru"}),
    Ask("POST /r/<path:content_type_id>/<path:object_id>/"),
    Ask("POST /records/"),
)
# But who is signed in, and when a token was used last.
WRITES = re.compile(r'(INSERT|UPDATE|DELETE|REPLACE)\b(?!.*"(django_session|agents_apitoken)")', re.DOTALL)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch, sent: list[str]) -> Iterator[Rows]:
    rows = Rows(monkeypatch)
    yield rows
    rows.house.close()


def prepared(rows: Rows, ask: Ask) -> Callable[[], Any]:
    """Sends it as one who may do everything: REST by a token, a page by a browser."""
    method, route = ask.route.split()
    places = iter(ask.of)
    address = PLACE.sub(lambda _: str(next(places, "1")), route)
    if address.startswith("/api/"):
        data = json.dumps(ask.said) if ask.said else ""
        token = api_client(rows.person)
        return partial(token.generic, method, address, data, content_type="application/json")
    browser = Client()
    if route != "/login/":
        browser.force_login(rows.person)
    return partial(browser.post, address, ask.said)


def entries() -> int:
    return AuditEntry.objects.filter(result="done").count()


def walk(rows: Rows) -> Iterator[tuple[str, int, int]]:
    """Route, status, and entries that it left; then nothing of it is left."""
    asked = rows.requests()
    while True:
        before = transaction.savepoint()
        ask = next(asked, None)
        if ask is None:
            return
        found = entries()
        status = prepared(rows, ask)().status_code
        yield ask.route, status, entries() - found
        transaction.savepoint_rollback(before)


def test_no_more_routes_leave_no_entry(rows: Rows) -> None:
    client = Client()
    client.force_login(rows.person)
    routes = {*of_rest(), *of_pages(client), *of_the_admin(rows.person)}
    audited, missed = set[str](), []
    for route, status, left in walk(rows):
        if status < 400 and left:
            audited.add(route)
        else:
            missed.append((route, status, left))
    assert missed == [], "what these do is not done, or not in the audit"
    assert audited <= routes
    unaudited = routes - audited - {ask.route for ask in CHANGE_NOTHING}
    by_address = sorted(unaudited, key=lambda route: (route.split()[1:], route))
    assert_approved("unaudited-routes.txt", "\n".join(by_address))
    assert_no_worse({UNAUDITED: len(unaudited)})


@pytest.mark.parametrize("ask", CHANGE_NOTHING, ids=lambda ask: ask.route)
def test_what_needs_no_entry_writes_nothing(rows: Rows, ask: Ask) -> None:
    written = []

    def note(execute: Any, sql: str, *arguments: Any) -> Any:
        if WRITES.match(sql):
            written.append(sql)
        return execute(sql, *arguments)

    send = prepared(rows, ask)
    with connection.execute_wrapper(note):
        answer = send()
    assert (answer.status_code < 500, written) == (True, [])
