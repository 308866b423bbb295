"""An installation that encrypts every connection: the main job, and nobody who listens in clear."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.product.house import PORTS, House
from tests.product.test_main_job import main_job

GREETINGS = {
    "MA_PORT": b"GET /healthz/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "MA_AMQP_PORT": b"AMQP\x03\x01\x00\x00",
    "MA_STOMP_PORT": b"CONNECT\naccept-version:1.2\nhost:ma\n\n\0",
    "MA_CORE_PORT": b"HORNETQ",
    "MA_REDIS_PORT": b"PING\r\n",
}


@pytest.fixture(scope="module")
def house(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("tls"))
    house.tls = True
    try:
        house.up()
        yield house
    finally:
        house.down()


def test_the_main_job_over_tls(house: House) -> None:
    assert house.facts["url"].startswith("https://")
    main_job(house, 500)


@pytest.mark.parametrize("port", PORTS)
def test_nobody_answers_a_greeting_in_clear(house: House, port: str) -> None:
    assert set(GREETINGS) == set(PORTS)
    with socket.create_connection(("127.0.0.1", int(house.environ[port])), timeout=10) as one:
        one.sendall(GREETINGS[port])
        one.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionError):
            while piece := one.recv(4096):
                answer += piece
    # At most the alert of TLS.
    assert len(answer) <= 7 and answer[:1] in (b"", b"\x15"), answer


def test_a_key_is_its_owner_s_alone(house: House) -> None:
    files = [
        path for path in (Path(house.data) / "tls").iterdir() if path.suffix == ".key" or "pair" in path.name
    ]
    assert len(files) == 3 and {path.stat().st_mode & 0o077 for path in files} == {0}


def test_the_next_start_goes_on_with_tls_or_asks(house: House) -> None:
    house.down()
    assert "MA_TLS: 1, now not set" in house.refused("up", "--detach")
    certificate = (house.data / "tls" / "server.pem").read_bytes()
    house.run("up", "--detach", "--remembered")
    assert (house.data / "tls" / "server.pem").read_bytes() == certificate
    assert house.call("GET", "settings/")["results"] is not None
