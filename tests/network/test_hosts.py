"""The hosts themselves: who reaches whom, by name, and what a capture sees."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.network import capture
from tests.network.hosts import Network, end, network

pytestmark = pytest.mark.process

LISTENS = """
import socket
with socket.create_server(("", 7000)) as server:
    print("ready", flush=True)
    while True:
        with server.accept()[0] as one:
            while one.recv(65536): pass
"""
SENDS = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 7000), timeout=2) as one:
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in (b"a planted ", b"secret", b"x" * 300_000, b"a planted secret"):
        one.sendall(piece)
        time.sleep(0.05)
"""


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path, "alpha", "beta", "gamma") as made:
        log = tmp_path / "beta.log"
        made["beta"].start(log, sys.executable, "-c", LISTENS)
        while b"ready" not in log.read_bytes():
            pass
        yield made


def test_what_one_host_tells_another_is_seen_on_their_links_only(three: Network) -> None:
    with three.captured() as files:
        assert three["alpha"].run(sys.executable, "-c", SENDS, "beta").returncode == 0

    seen = {name: capture.found(file, b"a planted secret") for name, file in files.items()}
    assert seen == {"alpha": 2, "beta": 2, "gamma": 0}


def test_a_host_whose_cable_is_out_is_not_reached_until_it_is_mended(three: Network) -> None:
    def reached() -> bool:
        return three["gamma"].run(sys.executable, "-c", SENDS, "beta").returncode == 0

    assert reached()
    three["beta"].cut()
    assert not reached()
    three["beta"].mend()
    assert reached()


def test_what_runs_on_a_host_is_ended_by_its_pid(three: Network) -> None:
    (process,) = three.processes
    assert Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(sys.executable.encode())
    end(process)
    assert not Path(f"/proc/{process.pid}").exists()
    assert three["alpha"].run(sys.executable, "-c", SENDS, "beta").returncode != 0
