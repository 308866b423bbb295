"""Messages while the live broker is killed or cut off: each handed over once, and dead letters keep who they
are."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.config import REPOSITORY
from tests.network.hosts import Network, network
from tests.network.pair import PORTS, Kind, Pair, start_zookeeper, until

pytestmark = pytest.mark.kill

PASSWORD = "of-tests"
MESSAGES = 2000


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path, "one", "two", "locks", "client") as made:
        yield made


def said(log: Path) -> list[tuple[str, Any]]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [(word, content) for word, content in (json.loads(line) for line in lines if line[:1] == "[")]


def handled(log: Path) -> int:
    return max((content for word, content in said(log) if word == "handled"), default=0)


def killed(hosts: Network, pair: Pair) -> None:
    pair.primary.kill()
    pair.until_live(pair.backup)


def cut(hosts: Network, pair: Pair) -> None:
    hosts["one"].cut()
    until("the backup is live", lambda: pair.backup.live)
    hosts["one"].mend()
    pair.primary.stop()


def asked(
    hosts: Network, kind: Kind, harm: Callable[[Network, Pair], None], what: str, times: int = 2
) -> list[tuple[str, Any]]:
    """What the program `tests.network.<what>` said of a pair whose primary was harmed so many times in the
    middle of it."""
    if kind is Kind.REPLICATED:
        start_zookeeper(hosts["locks"], hosts.folder / "zookeeper")
    passwords = dict.fromkeys(("kma", "publisher", "ma-ops"), PASSWORD)
    pair = Pair.create(hosts, kind, ("one", "two"), passwords, "locks:2181")
    pair.primary.start()
    pair.until_live(pair.primary)
    pair.backup.start()
    pair.until_backed_up()

    log = hosts.folder / "client.log"
    amqp = ",".join(f"amqp://{host}:{PORTS.amqp}" for host in ("one", "two"))
    stomp = ",".join(f"{host}:{PORTS.stomp}" for host in ("one", "two"))
    client = hosts["client"].start(
        log, sys.executable, "-m", f"tests.network.{what}", amqp, stomp, PASSWORD, str(MESSAGES),
        cwd=REPOSITORY,
    )  # fmt: skip

    def reached(number: int) -> bool:
        assert client.poll() is None, log.read_text()[-3000:]
        return handled(log) > number * MESSAGES // 4

    for number in range(1, times + 1):
        until(f"part {number} is handled; see {log}", lambda: reached(number))  # noqa: B023
        assert handled(log) < MESSAGES
        harm(hosts, pair)
        pair.primary.start()
        pair.until_live(pair.primary)
        pair.until_backed_up()
    until(f"all is handled; see {log}", lambda: client.poll() is not None)

    found = said(log)
    assert found[-1][0] == "end", log.read_text()[-3000:]
    return found


@pytest.mark.parametrize(
    ("kind", "harm"),
    [
        (Kind.SHARED, killed),
        pytest.param(Kind.REPLICATED, killed, marks=pytest.mark.night),
        pytest.param(Kind.REPLICATED, cut, marks=pytest.mark.night),
    ],
    ids=["shared", "replicated", "cut off"],
)
def test_each_message_is_handed_over_once_there_and_back(
    hosts: Network, kind: Kind, harm: Callable[[Network, Pair], None]
) -> None:
    found = asked(hosts, kind, harm, "traffic")
    before, after = (content for word, content in found if word == "letters")
    assert len(before) == 100 and after == before
    assert dict(found)["walked"] == 100
    assert dict(found)["done"] == list(range(MESSAGES))
    assert dict(found)["left"] == 0


def test_each_letter_is_replayed_once_though_the_primary_is_killed_meanwhile(hosts: Network) -> None:
    found = asked(hosts, Kind.SHARED, killed, "replaying", times=1)
    assert dict(found)["begun"] == MESSAGES
    assert dict(found)["strangers"] == 0
    assert dict(found)["replayed"] == list(range(MESSAGES))
