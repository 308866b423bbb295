"""An installation that encrypts every connection: the main job, and nobody who listens in clear."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from deploy.layout import Layout
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


def test_a_jms_client_sends_by_the_address_that_env_prints(house: House) -> None:
    address = house.setting("by-jms")
    broker = house.facts["broker"]
    account = broker["accounts"]["publisher"]
    subprocess.run(
        [house.data / "broker" / "bin" / "artemis", "producer", "--silent", "--message-count", "3",
         "--destination", f"topic://{address}", "--url", broker["core"], "--user", account["user"],
         "--password", account["password"]],
        capture_output=True, timeout=300, check=True,
    )  # fmt: skip
    house.until("three have come", lambda: house.count("by-jms") == [3])


def test_nobody_listens_who_is_not_greeted_below(house: House) -> None:
    """But for figures, which are in clear on loopback."""
    figures = {int(each.rpartition(":")[2]) for each in (*house.metrics_of_site, *house.metrics_of_kmas)}
    ports = {int(house.environ[name]) for name in PORTS}
    listening = set().union(*map(listening_ports, family(Layout(house.data).supervisor_pid)))
    assert ports <= listening <= ports | figures


def family(pid_file: Path) -> set[int]:
    """Of a process and all that came from it."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, more = set(), {int(pid_file.read_text())}
    while more:
        found |= more
        more = {pid for pid, parent in parents.items() if parent in more}
    return found


LISTEN = "0A"


def listening_ports(pid: int) -> set[int]:
    """Over IPv4 and IPv6."""
    held = set()
    for each in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError):
            held.add(str(each.readlink()))
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    return {
        int(row[1].rpartition(":")[2], 16)
        for row in rows
        if row[3] == LISTEN and f"socket:[{row[9]}]" in held
    }


@pytest.mark.parametrize("port", PORTS)
def test_nobody_answers_a_greeting_in_clear(house: House, port: str) -> None:
    assert set(GREETINGS) == set(PORTS)
    with socket.create_connection(("127.0.0.1", int(house.environ[port])), timeout=10) as one:
        one.sendall(GREETINGS[port])
        with suppress(OSError):  # the site has cut it already
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
