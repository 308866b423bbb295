"""Strangers who send slowly, read slowly, send much or hold many connections delay nobody: with the real
gunicorn."""

import gzip
import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from django.utils import timezone

from agents.models import Server
from agents.servers.admission import issue_server_token
from contract.wire import dump
from failures.models import FailureProtocol
from tests.web import reports
from tests.web.real_site import Site, answer_to, head_of, real_site
from tests.web.rows import heartbeat_json

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]
MANY = 64
PARTS = "multipart/form-data; boundary=b"


@pytest.fixture(scope="module", params=["clear", "tls"])
def site(request: pytest.FixtureRequest, django_db_setup: None) -> Iterator[Site]:
    with real_site(tls=request.param == "tls") as running:
        yield running


@pytest.fixture
def token() -> str:
    return issue_server_token(Server.objects.create(name="srv-1"), now=timezone.now())


def request(
    path: str, length: int, body: bytes = b"", kind: str = "application/json", more: str = ""
) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: testserver\r\nContent-Type: "
        f"{kind}\r\nContent-Length: {length}\r\n{more}\r\n"
    )
    return head.encode() + body


def answered(site: Site, token: str) -> dict[str, int | None]:
    """What people, watchers and KMAs need, asked at once."""
    found: dict[str, int | None] = {}
    bearer = {"Authorization": f"Bearer {token}", "Host": "testserver"}
    batch = reports.Spool().batch(
        reports.recovered(reports.run_of(reports.run(reports.setting(), Server.objects.get())))
    )
    beat = heartbeat_json("srv-1", sent_at=timezone.now())
    asked = {
        "health": ("GET", "/healthz/", {"headers": {"Host": "testserver"}}),
        "sign-in": ("GET", "/login/", {"headers": {"Host": "testserver"}}),
        "heartbeat": ("POST", "/api/v1/heartbeat/", {"json": beat, "headers": bearer}),
        "intake": ("POST", "/api/v1/protocols/", {"json": dump(batch), "headers": bearer}),
    }  # fmt: skip

    def ask(name: str) -> None:
        method, path, more = asked[name]
        found[name] = site.status(method, path, **more)

    threads = [threading.Thread(target=ask, args=(name,)) for name in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


GOOD = {"health": 200, "sign-in": 200, "heartbeat": 200, "intake": 200}


def test_clients_that_hold_a_byte_of_a_body_delay_nobody(site: Site, token: str) -> None:
    with ExitStack() as held:
        for _ in range(MANY):
            held.enter_context(
                site.connect(request("/login/", 1000, b"a", "application/x-www-form-urlencoded"))
            )
        assert answered(site, token) == GOOD


def test_clients_that_hold_a_head_delay_nobody(site: Site, token: str) -> None:
    with ExitStack() as held:
        for _ in range(MANY):
            held.enter_context(site.connect(b"GET /login/ HTTP/1.1\r\nHost: testserver\r\nX-A: b"))
        assert answered(site, token) == GOOD


def test_clients_that_do_not_read_their_answers_delay_nobody(site: Site, token: str) -> None:
    large = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js.map"
    asked = f"GET {large} HTTP/1.1\r\nHost: testserver\r\n\r\n".encode()
    with ExitStack() as held:
        for _ in range(24):
            held.enter_context(site.connect(asked * 4, receive=4096))
        assert answered(site, token) == GOOD


def test_clients_that_do_not_shake_hands_delay_nobody(site: Site, token: str) -> None:
    """With TLS a connection alone is not even a client."""
    with ExitStack() as held:
        for _ in range(MANY):
            held.enter_context(socket.create_connection(("127.0.0.1", site.port)))
        assert answered(site, token) == GOOD


def test_a_body_that_does_not_come_is_given_up_and_so_is_a_head(site: Site) -> None:
    body = site.connect(request("/login/", 1000, b"a"))
    head = site.connect(b"GET /login/ HTTP/1.1\r\nHost: tests")
    with body, head:
        assert head_of(body) == b"HTTP/1.1 408 Request Timeout"
        assert head_of(head) == b"HTTP/1.1 408 Request Timeout"


def test_more_connections_than_places_shut_nobody_out(site: Site, token: str) -> None:
    with ExitStack() as held:
        for _ in range(560):
            held.enter_context(site.connect(b"G"))
        assert answered(site, token) == GOOD


@pytest.mark.parametrize(
    ("path", "length", "kind"),
    [
        ("/login/", 2_000_000, PARTS),
        ("/api/v1/heartbeat/", 2_000_000, "application/json"),
        ("/api/v1/protocols/", 17 * 1024 * 1024, "application/json"),
        ("/nothing", 2_000_000, "application/json"),
    ],
)
def test_a_body_that_is_too_large_is_refused_before_it_is_sent(
    site: Site, path: str, length: int, kind: str
) -> None:
    with site.connect(request(path, length, b"", kind, "Expect: 100-continue\r\n")) as client:
        answer = answer_to(client)

    assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]
    assert (b"too_large" if path.startswith("/api/") else b"<h1>Request is too large</h1>") in answer


def test_who_sends_too_much_all_the_same_can_read_why(site: Site) -> None:
    assert site.status("POST", "/login/", data=b"x" * 8_000_000, headers={"Host": "testserver"}) == 413


def test_a_body_in_chunks_is_refused(site: Site) -> None:
    def parts() -> Iterator[bytes]:
        yield b"{}"

    assert site.status("POST", "/api/v1/heartbeat/", data=parts(), headers={"Host": "testserver"}) == 411


def test_strangers_send_nothing_large_and_fill_no_disk(site: Site) -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n' + b"x" * 3_000_000
    for path in ("/login/", "/dead-letters/orders/import/", "/api/v1/protocols/"):
        with site.connect(request(path, 4_000_000, b"", PARTS)) as client:
            sender = threading.Thread(target=_send, args=(client, part))
            sender.start()
            assert head_of(client).split()[1:2] in ([b"413"], [b"401"], [b"403"]), path
            sender.join()
    assert list((site.folder / "tmp").rglob("*.upload*")) == []


def _send(client: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        client.sendall(data)


@pytest.mark.parametrize("packed", [True, False])
def test_a_large_batch_of_a_kma_is_taken(site: Site, token: str, packed: bool) -> None:
    run = reports.run_of(reports.run(reports.setting(), Server.objects.get()))
    noise = [os.urandom(24_000).hex() for _ in range(60)]
    batch = reports.Spool().batch(*[reports.protocol(run, traceback=each) for each in noise])
    body = json.dumps(dump(batch)).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Host": "testserver"}
    if packed:
        body, headers = gzip.compress(body), headers | {"Content-Encoding": "gzip"}
    assert len(body) > 1024 * 1024
    answers: list[int | None] = []

    def send() -> None:
        answers.append(site.status("POST", "/api/v1/protocols/", data=body, headers=headers))

    threads = [threading.Thread(target=send) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [200] * 12
    assert FailureProtocol.objects.count() == 60


def test_requests_on_one_connection_are_answered_one_after_the_other(site: Site) -> None:
    asked = b"GET /favicon.ico HTTP/1.1\r\nHost: testserver\r\n\r\n"
    posted = request("/api/v1/heartbeat/", 2, b"{}")
    last = b"HEAD /login/ HTTP/1.1\r\nHost: testserver\r\nConnection: close\r\n\r\n"
    whole = asked * 3 + posted + asked + last
    with site.connect(whole[:70]) as client:
        client.sendall(whole[70:200])
        client.sendall(whole[200:])
        answer = answer_to(client)

    assert re.findall(rb"HTTP/1.1 (\d+) ", answer) == [b"302", b"302", b"302", b"401", b"302", b"200"]
    assert answer.endswith(b"\r\n\r\n")


def test_a_client_that_has_ended_its_side_gets_its_answer(site: Site) -> None:
    with site.connect(b"GET /login/ HTTP/1.1\r\nHost: testserver\r\n\r\n") as client:
        socket.socket.shutdown(client, socket.SHUT_WR)  # below TLS, where it is spoken
        assert head_of(client) == b"HTTP/1.1 200 OK"


def test_a_sender_that_waits_for_continue_is_told_to_go_on(site: Site) -> None:
    with site.connect(
        request("/api/v1/heartbeat/", 2, b"", more="Expect: 100-continue\r\nConnection: close\r\n")
    ) as client:
        assert head_of(client) == b"HTTP/1.1 100 Continue"
        client.sendall(b"{}")
        answer = answer_to(client)

    assert b"HTTP/1.1 401 " in answer and b"100 Continue" not in answer


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"GET / HTTP/1.1\r\nHost: testserver\r\n" + b"X: " + b"a" * 90_000, b"431"),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 200 + b"\r\n", b"431"),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", b"414"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n\r\nabc", b"400"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(site: Site, sent: bytes, code: bytes) -> None:
    with site.connect(sent) as client:
        assert head_of(client).split()[1:2] == [code]
    assert site.status("GET", "/favicon.ico") == 302
