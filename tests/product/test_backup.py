"""A machine is lost in the middle of a replay and comes back from a backup: by truth files of the agents,
which no backup has, nothing is lost, and only what was handled since the backup is handled again."""

import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.layout import Layout
from deploy.processes import earlier_starts
from tests.product import scripted
from tests.product.house import House

pytestmark = pytest.mark.kill

SERVERS = ("srv-1", "srv-2")
KEY, MESSAGES, POISONED, LATER, PER_SECOND = "saved", 200, 40, 20, 1
PHRASE = "correct horse battery"


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


def lose(house: House) -> None:
    """`kill -9` of all at once, then of the data folder all but the programs and what agents wrote."""
    layout = Layout(house.data)
    pids = earlier_starts.find(layout)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert len(pids) > 6
    house.down()
    for lost in (layout.broker / "data", layout.data / "kma", layout.secrets, layout.run, layout.redis):
        shutil.rmtree(lost)
    for file in layout.data.glob("db.sqlite3*"):
        file.unlink()


def test_a_lost_machine_goes_on_where_its_backup_was_made(house: House, tmp_path: Path) -> None:
    phrase = tmp_path / "phrase"
    phrase.write_text(PHRASE)
    options = ("--passphrase-file", str(phrase))
    house.call("POST", "pools/", {"name": "demo", "servers": list(SERVERS)})
    address = house.setting(KEY, policy={"max_attempts": 1})
    house.enable(KEY)
    poisoned = set(range(0, MESSAGES, MESSAGES // POISONED))
    house.publish(
        address, [scripted.poisoned(n) if n in poisoned else scripted.ok(n) for n in range(MESSAGES)]
    )
    house.until("all is handled or dead", lambda: house.count(KEY, f"DLQ.{KEY}") == [0, POISONED])
    house.until("every letter is indexed", lambda: len(house.dead_letters(KEY)) == POISONED)
    house.until("every failure is stored", lambda: len(house.protocols(KEY)) == POISONED)
    house.mend(KEY)

    job = house.job(KEY, all=True, reason="mended", per_second=PER_SECOND)
    done = {n for n in range(MESSAGES) if n not in poisoned}
    house.until("a part is given back", lambda: len(house.truth(KEY)) > MESSAGES + POISONED // 8)
    # What agents wrote down until the very copy is known only where nothing runs.
    house.down()
    said = house.run("backup", str(tmp_path / "backups"), *options)
    at_backup = Counter(house.truth(KEY))
    assert "database, messages, secrets, spool" in said
    house.run("up", "--detach", "--no-demo")

    # It goes on, and is lost with all that it did since.
    house.until("more is given back", lambda: len(house.truth(KEY)) > sum(at_backup.values()) + 2)
    house.publish(address, [scripted.ok(n) for n in range(MESSAGES, MESSAGES + LATER)])
    house.until("later ones are handled", lambda: len(set(house.truth(KEY))) == MESSAGES + LATER)
    lose(house)
    at_loss = Counter(house.truth(KEY))
    assert any(at_loss[n] > at_backup[n] for n in poisoned), "some of the replay is lost"

    assert "whole" in house.run("restore", "--check", str(tmp_path / "backups"), *options)
    said = house.run("restore", "--apply", str(tmp_path / "backups"), *options)
    assert "everything that the backup has" in said and "processed again" in said
    house.run("up", "--detach", "--no-demo")

    path = f"replays/{job['id']}/"
    house.until("the replay is over", lambda: house.call("GET", path)["state"] not in ("planned", "running"))
    house.until("nothing waits", lambda: house.count(KEY, f"DLQ.{KEY}") == [0, 0])
    house.until("outcomes are known", lambda: house.call("GET", path)["outcomes"].get("handled") == POISONED)
    assert house.call("GET", path)["state"] == "done"
    after = Counter(house.truth(KEY))
    assert {n: after[n] for n in done} == dict.fromkeys(done, 1), "handled before the backup: not again"
    for n in poisoned:
        before, since = at_backup[n], at_loss[n] - at_backup[n]
        # Once as poison, and once mended, wherever it was; what was mended since the backup, once more.
        assert after[n] == (2 if before == 2 or since == 0 else 3), (n, before, since, after[n])
    assert {n: after[n] for n in range(MESSAGES, MESSAGES + LATER)} == dict.fromkeys(
        range(MESSAGES, MESSAGES + LATER), 1
    ), "published since: not in the backup, and handled before"
    assert len(house.protocols(KEY)) == POISONED, "no failure was lost, and none is stored twice"
    assert not list(house.data.glob("before-restore-*/kma"))


def test_under_a_running_site_nothing_is_restored(house: House, tmp_path: Path) -> None:
    house.run("backup", str(tmp_path / "backups"), "--without-secrets")
    assert "./ma down, then again. Nothing was changed" in house.refused(
        "restore", "--apply", str(tmp_path / "backups")
    )
    health = house.call("GET", "health/")
    assert any(row["component"] == "backup" for row in health["components"]), health
