"""Whatever publishers, agents and people wrote: in a real browser nothing of it runs, asks elsewhere, or
turns a page around."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.test import Client

from broker.amqp.codec import encode
from broker.port import BodyKind, Message
from contract.typed import Typed
from dlq.dead_letters.rules.parser import letter_row
from dlq.index import store
from dlq.models import DeadLetter
from tests.browser.driver import Browser
from tests.web.factories import NODE, World

KEY = "mail-send"
MEGABYTE = 1024 * 1024
# Words of the browser's console that mean that something tried to run, or a page of ours broke its own
# policy.
TROUBLE = ("Content Security Policy", "Uncaught", "SyntaxError", "TypeError", "Refused to")
# Characters that turn text around; pages show them by name.
BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Elsewhere(BaseHTTPRequestHandler):
    """Another site, which must never be asked for anything."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def elsewhere() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    Elsewhere.asked.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def markup(elsewhere: str) -> str:
    """Every usual way to run in somebody else's page, and characters that turn text around."""
    call = f"fetch('{elsewhere}/ran');window.hostile=1;alert(1)"
    return (
        f"</pre></td></textarea></title></script><script>{call}</script>"
        f'<img class=hostile src="{elsewhere}/image" onerror="{call}"><svg class=hostile '
        f'onload="{call}"></svg>'
        f'"\' autofocus onfocus="{call}" x="<a class=hostile href="javascript:{call}">a</a>'
        f'<iframe class=hostile src="{elsewhere}/frame"></iframe><link rel=stylesheet '
        f'href="{elsewhere}/style">'
        f'<form class=hostile action="{elsewhere}/form"><b hx-get="{elsewhere}/hx" '
        f'hx-trigger="load">b</b></form>'
        f"<base href={elsewhere}/> {{{{ 7*7 }}}} {{% now 'Y' %}} &lt;b&gt; "
        "\u202egnp.exe\u202c\u2067\u200f\ufeff\x1b[31m"
    )


def letters(world: World, bad: str) -> list[DeadLetter]:
    """Rows as the feed makes them of what lies in the queue."""
    text = Typed("string", bad)
    properties = {
        bad[:150]: text,
        "html": text,
        "n": Typed("ulong", 2**64 - 1),
        "x-opt\u202e": Typed("symbol", "a"),
    }
    many = {f"property-{n:04}": Typed("string", f"<b class=hostile>{n}</b>") for n in range(5000)}
    doubtful = encode(
        Message(body=Typed("string", "GOODTEXT"), properties={"p": Typed("string", "GOODTEXT")})
    )
    found = [
        encode(Message(body=text, properties=properties, message_id=text, correlation_id=text, reply_to=bad)),
        encode(Message(body=Typed("binary", bad.encode()), body_kind=BodyKind.DATA,
        content_type="text/html")),
        encode(Message(body=Typed("string", json.dumps({bad: [bad, {"deep": bad}]})))),
        encode(Message(body=Typed("string",
        f"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>{bad}&e;</a>"))),
        encode(Message(body=Typed("binary", b"\xff\xfe\xc3(" * 40), body_kind=BodyKind.DATA)),
        doubtful.replace(b"GOODTEXT", b"\xff\xc0bad\xed\xa0"),
        b"\x00\x53\x75no message at all <script>alert(1)</script>",
        encode(Message(body=text, properties=many)),
        encode(Message(body=Typed("string", bad + "<script>alert(1)</script>" * (50 * MEGABYTE // 25)))),
        encode(Message(body=Typed("string", json.dumps("[" * 900 + "]" * 900) ))),
        encode(Message(body=Typed("string", "[" * 100_000))),
    ]  # fmt: skip
    rows = []
    for number, encoded in enumerate(found, start=1):
        row = letter_row(encoded, NODE, world.now - timedelta(minutes=number))
        row.queue, row.setting_key, row.orig_message_id = f"DLQ.{KEY}", KEY, 5_000_000 + number
        row.message_key = row.message_key or f"ID:bad-{number}"
        row.exception_type, row.place, row.fingerprint = bad[:255], bad[:300], f"v1:{bad[:50]}"
        rows.append(row)
    assert len(store.store(rows, world.now)) == len(found)
    return list(DeadLetter.objects.filter(setting_key=KEY, orig_message_id__gt=5_000_000).order_by("pk"))


def pages(world: World, rows: list[DeadLetter], bad: str) -> Iterator[str]:
    everything = urlencode(
        {"exception": bad[:200], "body": bad[:150], "fingerprint": "(a+)+$", "q": "(.*)*$ [z-a] \\"}
    )
    yield from (
        "/dead-letters/",
        f"/dead-letters/{KEY}/",
        f"/dead-letters/{KEY}/?state=every",
        "/replays/",
        "/audit/",
    )
    yield f"/dead-letters/{KEY}/?{everything}"
    yield f"/dead-letters/{KEY}/give-back/?all=1"
    yield f"/cases/?setting={KEY}&key={quote(rows[0].message_key)}"
    for row in rows:
        yield f"/letters/{row.pk}/"


def test_nothing_that_anybody_wrote_runs(
    live_server: Any, world: World, opened: Callable[..., Browser], elsewhere: str
) -> None:
    bad = markup(elsewhere)
    rows = letters(world, bad)
    browser = opened("chief")
    browser.log()
    for path in pages(world, rows, bad):
        browser.open(live_server.url + path)
        # An open dialog would refuse this call.
        state = browser.run(
            "return [window.hostile === undefined, document.querySelectorAll('.hostile').length, "
            "document.title,"
            " document.querySelector('main, #content') !== null, document.baseURI]"
        )
        assert state[:2] == [True, 0], path
        assert state[3], f"{path} is no page of ours: {state[2]}"
        assert state[4].startswith(live_server.url), path
        texts = browser.run(
            "return document.title + document.body.innerText + "
            "[...document.querySelectorAll('[title],[aria-label]')]"
            ".map(each => each.title + each.getAttribute('aria-label')).join()"
        )
        assert not BIDI.search(texts), (path, BIDI.search(texts))
        said = [entry["message"] for entry in browser.log()]
        assert not [each for each in said if any(word in each for word in TROUBLE) or elsewhere in each], (
            path,
            said,
        )
    assert Elsewhere.asked == []


@pytest.mark.process  # as dear: a site and another one beside it
def test_a_body_that_is_downloaded_is_never_a_page(world: World, elsewhere: str) -> None:
    client = Client()
    client.force_login(world.people["chief"])
    for row in letters(world, markup(elsewhere)):
        answer = client.get(f"/letters/{row.pk}/body/")
        assert answer.status_code == 200
        assert answer["Content-Disposition"].startswith("attachment")
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert not answer["Content-Type"].startswith(("text/html", "image/svg", "application/xhtml"))
