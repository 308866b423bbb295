import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.config import REPOSITORY
from deploy.console import DeployError
from deploy.layout import Layout
from deploy.processes import earlier_starts
from deploy.services.ports import Wanted, free_ports, refuse_taken

pytestmark = pytest.mark.process


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_in_use_is_one_line_with_the_port_and_its_variable(taken: int) -> None:
    with pytest.raises(DeployError) as caught:
        refuse_taken((Wanted("127.0.0.1", taken, "MA_AMQP_PORT", "the broker, AMQP"),))
    assert str(caught.value) == (
        f"Port {taken} (the broker, AMQP) is in use: stop the process that uses it, or set MA_AMQP_PORT"
    )


def test_all_ports_in_use_are_named_at_once(taken: int) -> None:
    both = (
        Wanted("127.0.0.1", taken, "MA_PORT", "the site"),
        Wanted("127.0.0.1", taken, "MA_REDIS_PORT", "Redis"),
    )
    with pytest.raises(DeployError, match=r"MA_PORT\n.*MA_REDIS_PORT"):
        refuse_taken(both)


def test_free_ports_pass() -> None:
    ports = free_ports(3)
    assert len(set(ports)) == 3
    refuse_taken(tuple(Wanted("127.0.0.1", port, "MA_PORT", "the site") for port in ports))


def test_processes_that_ask_at_the_same_time_never_get_the_same_port() -> None:
    """Not even before something listens there: so many that a choice by chance would collide. This process is
    none of them: of its own ports services of other tests hold some."""
    ask = "from deploy.services.ports import free_ports; print(*free_ports(90)); input()"
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", ask], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(7)
    ]
    answers = [asked.stdout.readline().split() for asked in asking if asked.stdout]
    for asked in asking:
        asked.communicate(b"\n")
    assert len({port for answer in answers for port in answer}) == 7 * 90


def test_no_port_is_one_that_the_kernel_gives_to_outgoing_connections() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert not set(free_ports(5)) & set(range(first, last + 1))


def test_an_address_of_another_machine_is_said_plainly() -> None:
    with pytest.raises(DeployError, match=r"Cannot listen on 192\.0\.2\.1"):
        refuse_taken((Wanted("192.0.2.1", free_ports(1)[0], "MA_PORT", "the site"),))


def test_up_shows_the_line_and_no_traceback(taken: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    names = ("MA_PORT", "MA_AMQP_PORT", "MA_STOMP_PORT", "MA_CORE_PORT")
    ports = dict(zip(names, map(str, free_ports(4)), strict=True))
    data = tmp_path_factory.mktemp("data") / "new"
    environ = {"PATH": "/usr/bin:/bin", "MA_DATA": str(data)}
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "ma"), "up", "--detach"],
        env=environ | ports | {"MA_REDIS_PORT": str(taken)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert (
        done.stderr
        == f"ma: Port {taken} (Redis) is in use: stop the process that uses it, or set MA_REDIS_PORT\n"
    )
    assert done.stdout == ""
    assert not data.exists()


def test_a_second_start_of_the_same_folder_is_refused(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "data")
    with (
        earlier_starts.only_one(layout),
        pytest.raises(DeployError, match="another ./ma up"),
        earlier_starts.only_one(layout),
    ):
        pass
    with earlier_starts.only_one(layout):
        pass
