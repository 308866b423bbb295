"""The site's database is put back from a copy: what the KMAs had reported since then comes again, once."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from deploy.layout import Layout
from tests.product import scripted
from tests.product.house import House

pytestmark = pytest.mark.night

SERVERS = ("srv-1", "srv-2")
SITE = ("web", "worker", "feed", "beat")
KEY = "restored"


@pytest.fixture
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    own = House(
        Path(tmp_path_factory.mktemp("house")), SERVERS, DJANGO_SUPERUSER_PASSWORD="only for this house"
    )
    try:
        own.up("--no-demo")
        yield own
    finally:
        own.down()


def stored(house: House) -> dict[str, str]:
    """{record: message key}"""
    rows = list(house.pages(f"protocols/?setting={KEY}&page_size=500"))
    found = {row["id"]: row["message_key"] for row in rows}
    assert len(found) == len(rows), "none twice"
    return found


def fail(house: House, address: str, first: int, until: int) -> None:
    house.publish(address, [scripted.poisoned(n) for n in range(first, until)])
    house.until(f"{until} failures are stored", lambda: len(stored(house)) == until)


def put_back(house: House, copy: Path) -> None:
    """As operators do: the site is away, and so is what it had written since."""
    database = Layout(house.data).database
    for name in SITE:
        house.runner.stop(name)
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    database.write_bytes(copy.read_bytes())
    house.kill("kma-srv-1")
    for name in reversed(SITE):
        house.runner.start(name)


@pytest.mark.timeout(1200)
def test_failures_that_were_reported_after_the_copy_come_again(house: House, tmp_path: Path) -> None:
    house.call("POST", "pools/", {"name": "demo", "servers": list(SERVERS)})
    address = house.setting(KEY, policy={"max_attempts": 1})
    house.enable(KEY)
    house.until(
        "both servers consume", lambda: house.call("GET", f"queues/{KEY}/")["consumers"] == len(SERVERS)
    )
    fail(house, address, 0, 30)
    copy = tmp_path / "copy.sqlite3"
    with closing(sqlite3.connect(Layout(house.data).database)) as of, closing(sqlite3.connect(copy)) as to:
        of.backup(to)

    fail(house, address, 30, 60)
    house.call(
        "POST", f"settings/{KEY}/disable/", {"reason": "a second activation, of which the copy knows nothing"}
    )
    house.until("the servers have let go", lambda: house.call("GET", f"queues/{KEY}/")["consumers"] == 0)
    house.enable(KEY)
    fail(house, address, 60, 100)
    before = stored(house)

    put_back(house, copy)
    house.until("everything is stored again", lambda: len(stored(house)) == 100)
    assert stored(house) == before
    house.until("spools are empty", lambda: all(row["spool_rows"] == 0 for row in house.pages("servers/")))

    # And the setting goes on.
    house.until("somebody consumes", lambda: house.call("GET", f"queues/{KEY}/")["consumers"] > 0)
    fail(house, address, 100, 110)
    house.until("nothing waits", lambda: house.count(KEY, f"DLQ.{KEY}") == [0, 110])
