"""An installation of before 0.9.0 comes over, and goes back, by the commands of docs/how-to/upgrade.md. The
program of then comes out of the history of this repository, and installs its own packages."""

import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.config import REPOSITORY
from deploy.layout import Layout
from tests.handbook.blocks import DOCS, Reader
from tests.product import scripted
from tests.product.house import PORTS, ROOT, House
from tests.services import cache

pytestmark = pytest.mark.night

COMMIT = "74bb82c"
QUEUES = ("orders", "DLQ.orders", "later", "DLQ.later")
SETTINGS = """
pools:
  main: {servers: [srv-1]}
destinations:
  t.orders: {max_attempts: 1}
  t.later: {max_attempts: 1}
settings:
  orders:
    agent: demo.scripted
    pool: main
    destination: t.orders
    breaker_m: 1000
    parameters: {truth_file: DATA/truth-orders.jsonl}
  later:
    agent: demo.scripted
    pool: main
    destination: t.later
    parameters: {truth_file: DATA/truth-later.jsonl}
  nightly:
    agent: demo.scripted
    timing: DELAYED
    pool: main
    destination: t.orders
    schedule: {crontab: "30 2 * * *", time_zone: Europe/Berlin}
  weekly: {agent: demo.scripted, timing: DELAYED, pool: main, destination: t.later}
groups:
  week: {members: [weekly], schedule: {every_seconds: 604800}}
"""
OURS = "own words on an account"
PAGE = DOCS / "how-to" / "upgrade.md"
# Another version in the folder of the clone, in which the person's files stay.
LINK = "find . -maxdepth 1 -type l -delete && ln -s {root}/* {root}/.venv ."


class Before(House):
    """The program of then, with all that it makes by itself at its first start."""

    def __init__(self, data: Path) -> None:
        super().__init__(data, ["srv-1"], KMA_AGENTS="kma.samples.scripted", DJANGO_SUPERUSER_PASSWORD=OURS)
        self.root = clone()
        self.python = self.root / ".venv" / "bin" / "python"

    def up(self, *arguments: str) -> str:
        return started(self, *arguments)

    def tell(self, *arguments: str) -> dict[str, int]:
        """What its spool has to tell."""
        file = Layout(self.data).kma("srv-1") / "spool.sqlite3"
        done = subprocess.run(
            [self.python, "-m", "kma.spool", file], cwd=self.root, capture_output=True, text=True, check=True
        )
        return dict(json.loads(done.stdout))


class After(House):
    """This program, in the data folder of the other one."""

    def __init__(self, before: Before) -> None:
        ports = {name: before.environ[name] for name in PORTS}
        super().__init__(before.data, before.servers, **ports)

    def up(self, *arguments: str) -> str:
        return started(self, *arguments)


def started(house: House, *arguments: str) -> str:
    """As a person starts it: no copies of what other tests have made."""
    printed = house.run("up", "--detach", "--no-demo", *arguments)
    house.facts = json.loads(house.run("env", "--json"))
    return printed


def operator(house: House, folder: Path) -> Reader:
    """At a shell in the folder of the clone, which is made of links here: `manage.py` works in the folder
    behind them. There is no archive; what a plan would change is its exit status, and what the doctor of
    then says is not the matter here."""
    instead = {
        "before-": f"{folder}/ma/before-",
        "mv var/archive": ": var/archive",
        "var/": f"{house.data}/",
        "./ma doctor": "./ma doctor || true",
        "--dry-run": "--dry-run || test $? = 2",
        "git pull": LINK.format(root=ROOT),
        "git checkout VERSION-OF-BEFORE": LINK.format(root=clone()),
    }
    state = folder / f"exported-by-{type(house).__name__}"
    return Reader(folder / "ma", house.environ, state, instead)


def clone() -> Path:
    """Kept with its packages: what it was does not change any more."""
    folder = cache() / "before-0.9.0"
    if not folder.exists():
        packed = subprocess.run(
            ["git", "archive", COMMIT], cwd=REPOSITORY, capture_output=True, check=True
        ).stdout
        draft = folder.with_name(f"{folder.name}.{os.getpid()}")
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(draft, filter="tar")
        draft.replace(folder)
    return folder


@pytest.fixture
def before(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Before]:
    house = Before(Path(tmp_path_factory.mktemp("house")))
    try:
        house.up()
        yield house
    finally:
        house.down()


def content(data: Path) -> dict[str, bytes]:
    """Of what must not change while nothing comes over."""
    kept = [data / "db.sqlite3", *sorted((data / "broker" / "data").rglob("*")), *(data / "kma").rglob("*")]
    return {str(path.relative_to(data)): path.read_bytes() for path in kept if path.is_file()}


def exported(house: House) -> Any:
    return yaml.safe_load(house.run("manage", "export"))


def protocols(house: House, key: str) -> set[str]:
    return {row["id"] for row in house.protocols(key)}


@pytest.mark.timeout(2400)
def test_no_message_is_lost_and_every_letter_can_be_given_back(before: Before, tmp_path: Path) -> None:
    before.run("manage", "createsuperuser", "--noinput", "--username", "admin", "--email", "a@example.org")
    before.token = before.run("manage", "create_api_token", "admin").split()[-1]
    wanted = tmp_path / "wanted.yaml"
    wanted.write_text(SETTINGS.replace("DATA", str(before.data)))
    before.run("manage", "apply", str(wanted), "--by", "admin")
    before.run("manage", "settings", "enable", "orders", "--as", "admin")
    before.until("a server consumes", lambda: before.call("GET", "queues/orders/")["consumers"] > 0)
    before.until(
        "the other has its queue too",
        lambda: before.call("GET", "settings/later/")["provision_state"] == "ready",
    )
    before.publish("t.orders", [scripted.ok(n) for n in range(10)])
    before.publish("t.orders", [scripted.poisoned(n) for n in range(10, 15)])
    before.publish("t.later", [scripted.ok(n) for n in range(20, 30)])
    before.until("five are dead", lambda: len(before.dead_letters("orders")) == 5)
    before.until("all were tried", lambda: sorted(before.truth("orders")) == [*range(15)])

    # While the site is away a spool fills; it is drained first.
    before.runner.stop("web")
    before.publish("t.orders", [scripted.poisoned(n) for n in (15, 16)])
    before.until("seven are dead", lambda: before.count(*QUEUES) == [0, 7, 10, 0])
    assert before.tell()["rows"] >= 2
    before.runner.start("web")
    before.until("the spool is empty", lambda: before.tell()["rows"] == 0)
    before.until("seven are known", lambda: len(before.dead_letters("orders")) == 7)
    failed, asked = protocols(before, "orders"), exported(before)
    assert len(failed) == 7
    (tmp_path / "ma").mkdir()
    subprocess.run(LINK.format(root=clone()), cwd=tmp_path / "ma", shell=True, check=True)
    then = operator(before, tmp_path)
    *first, put_aside = then.blocks(PAGE, "With the program of before")
    for block in first:
        then.do(block)
    assert before.tell()["rows"] == 0

    # Nothing is changed before somebody has read what it takes.
    after, kept = After(before), content(before.data)
    for command in (("up", "--detach", "--adopt-broker"), ("manage", "migrate")):
        told = after.refused(*command)
        assert f"{before.data / 'db.sqlite3'} was made by a version before 0.9.0" in told
        assert "docs/how-to/upgrade.md" in told
    assert content(before.data) == kept

    then.do(put_aside)
    now = operator(after, tmp_path)
    up, people, token, apply, enable = now.blocks(PAGE, "With 0.9.0")
    now.do(up)
    after.facts = json.loads(after.run("env", "--json"))
    after.publish("t.orders", [scripted.ok(30)])
    after.publish("t.later", [scripted.ok(31)])
    for block in (people, token, apply):
        now.do(block)
    after.token = before.token
    assert exported(after) == allowing_all(asked)
    after.until("the letters are found", lambda: len(after.dead_letters("orders")) == 7, seconds=300)
    assert after.count(*QUEUES) == [1, 7, 11, 0]
    assert after.call("GET", "queues/later/")["waiting"] == 11

    now.do(enable)
    after.run("manage", "settings", "enable", "later", "--as", "admin")
    after.until("what waited is handled", lambda: after.count("orders", "later") == [0, 0])
    assert sorted(after.truth("later")) == [*range(20, 30), 31]
    assert sorted(after.truth("orders")) == [*range(17), 30]
    after.until("failures come again", lambda: protocols(after, "orders") == failed)

    after.mend("orders")
    done = after.replay_all("orders")
    assert (done["state"], done["total"]) == ("done", 7)
    after.until("all are handled", lambda: after.count(*QUEUES) == [0, 0, 0, 0])
    assert sorted(after.truth("orders")) == sorted([*range(17), *range(10, 17), 30])

    now.follow(PAGE, "When it goes wrong")
    before.facts = json.loads(before.run("env", "--json"))
    assert protocols(before, "orders") >= failed


def allowing_all(settings: Any) -> Any:
    """What a pool of then could not say."""
    for pool in settings["pools"].values():
        pool.setdefault("allowed_agents", None)
    return settings
