"""A listener of its own answers whoever may read it, and nobody else."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from exposition.declared import CONTENT_TYPE
from exposition.listener import Address, Listener, check_token, has_token, may_read, parse_address

pytestmark = pytest.mark.process

TOKEN = "a-token-of-some-length"


@contextmanager
def listening(token: str = "", text: bytes = b"x_up 1\n") -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    listener = Listener(Address("127.0.0.1", port), token, lambda: text)
    listener.start()
    try:
        yield f"http://127.0.0.1:{listener.port}"
    finally:
        listener.stop()


def get(url: str, **headers: str) -> requests.Response:
    return requests.get(url, headers=headers, timeout=10)


def test_a_scrape_on_loopback_needs_no_token() -> None:
    with listening() as url:
        answer = get(f"{url}/metrics")
    assert (answer.status_code, answer.content) == (200, b"x_up 1\n")
    assert answer.headers["Content-Type"] == CONTENT_TYPE


def test_with_a_token_a_scrape_without_it_is_refused() -> None:
    with listening(TOKEN) as url:
        assert get(f"{url}/metrics").status_code == 401
        assert get(f"{url}/metrics", Authorization="Bearer another-token-of-it").status_code == 401
        assert get(f"{url}/metrics", Authorization=f"Bearer {TOKEN}").status_code == 200
        assert get(f"{url}/metrics", authorization=f"bearer {TOKEN}").status_code == 200


def test_nothing_else_is_there() -> None:
    with listening() as url:
        assert get(f"{url}/").status_code == 404
        assert requests.post(f"{url}/metrics", timeout=10).status_code == 501


def test_a_listener_that_others_reach_needs_a_token() -> None:
    with pytest.raises(ValueError, match="loopback"):
        Listener(Address("0.0.0.0", 1), "", bytes)


@pytest.mark.parametrize("host", ["127.0.0.1:9464", "localhost", "[::1]:9464", "127.8.8.8"])
def test_without_a_token_the_name_asked_for_is_of_this_machine(host: str) -> None:
    assert may_read("", host, "")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9464", "", "[::1", "10.0.0.1", "127.0.0.1.evil.example"]
)
def test_a_page_that_leads_its_own_name_here_reads_nothing(host: str) -> None:
    assert not may_read("", host, "")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ключ"]
)
def test_a_header_without_the_token_is_none(header: str) -> None:
    assert not has_token(header, TOKEN)
    assert not has_token(header, "")


def test_where_there_is_no_token_nobody_has_it() -> None:
    assert has_token(f"bearer {TOKEN}", TOKEN)
    assert not has_token("Bearer ", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9464", Address("127.0.0.1", 9464)),
        ("[::1]:9464", Address("::1", 9464)),
        ("metrics.example.org:80", Address("metrics.example.org", 80)),
    ],
)
def test_an_address_is_host_and_port(text: str, expected: Address) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    "text", ["", "9464", ":9464", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", "a:1/x", "b@a:1", "[::1:9"]
)
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_address(text)


def test_an_address_has_room_for_each_process() -> None:
    assert parse_address("127.0.0.1:65534", processes=2).moved(1) == Address("127.0.0.1", 65535)
    with pytest.raises(ValueError, match="host:port"):
        parse_address("127.0.0.1:65535", processes=2)


@pytest.mark.parametrize(
    "token", ["short", "with a space in it, long", "длинный-ключ-не-аскии", "a-token-of-some\n"]
)
def test_a_token_that_no_header_can_bring_or_that_is_guessed_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="16 characters"):
        check_token(token)


def test_no_token_and_a_long_one_are_taken() -> None:
    assert (check_token(""), check_token(TOKEN)) == ("", TOKEN)
