"""A broker and its backup, both real, on hosts of their own: one after the other is live, and never both."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.network.hosts import Network, network
from tests.network.pair import Kind, Pair, start_zookeeper, until

pytestmark = pytest.mark.kill

PASSWORDS = {"kma": "of-tests", "publisher": "of-tests", "ma-ops": "of-tests"}


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Network]:
    with network(tmp_path, "one", "two", "locks") as made:
        yield made


def started(three: Network, kind: Kind) -> Pair:
    """With the backup ready to take over."""
    if kind is Kind.REPLICATED:
        start_zookeeper(three["locks"], three.folder / "zookeeper")
    pair = Pair.create(three, kind, ("one", "two"), PASSWORDS, "locks:2181")
    pair.primary.start()
    pair.until_live(pair.primary)
    pair.backup.start()
    pair.until_backed_up()
    return pair


@pytest.mark.parametrize(
    "kind", [Kind.SHARED, pytest.param(Kind.REPLICATED, marks=pytest.mark.night)], ids=lambda kind: kind.value
)
def test_a_killed_primary_is_replaced_and_takes_over_again(three: Network, kind: Kind) -> None:
    pair = started(three, kind)
    for _ in range(2):
        pair.primary.kill()
        pair.until_live(pair.backup)
        pair.primary.start()
        pair.until_live(pair.primary)
        pair.until_backed_up()


@pytest.mark.night
def test_a_primary_that_is_cut_off_stops_before_its_backup_is_live(three: Network) -> None:
    pair = started(three, Kind.REPLICATED)
    three["one"].cut()
    until("the backup is live", lambda: _only(pair) == [pair.backup])
    three["one"].mend()
    for _ in range(40):
        assert _only(pair) == [pair.backup]
        time.sleep(0.5)

    pair.primary.stop()
    pair.primary.start()
    pair.until_live(pair.primary)


def _only(pair: Pair) -> list[object]:
    live = pair.live
    assert len(live) < 2, "both are live"
    return list(live)
