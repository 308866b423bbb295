"""The program of the version before is taken over by ./ma upgrade in the middle of a replay, while its KMAs
go on and report: by truth files nothing is lost, and nothing is handled twice."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import pytest

from deploy.config import REPOSITORY
from deploy.layout import Layout
from tests.product import scripted
from tests.product.house import PORTS, House
from tests.services import cache

pytestmark = pytest.mark.night

SERVERS = ("srv-1", "srv-2")
KEY, MESSAGES, POISONED, LATER, PER_SECOND = "upgraded", 200, 40, 60, 1
VERSION, COMMIT = (REPOSITORY / "packaging" / "previous.txt").read_text("utf-8").split()


def clone() -> Path:
    """The version before, with the packages of this one: what it pins is older by patches alone."""
    folder = cache() / f"before-{COMMIT[:12]}"
    if not folder.exists():
        command = ["git", "archive", COMMIT]
        packed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True).stdout
        draft = folder.with_name(f"{folder.name}.{os.getpid()}")
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(draft, filter="tar")
        draft.replace(folder)
    for file in (*REPOSITORY.glob("requirements*.txt"), REPOSITORY / "constraints.txt"):
        shutil.copyfile(file, folder / file.name)
    shared = folder / ".venv"
    shared.unlink(missing_ok=True)
    shared.symlink_to((REPOSITORY / ".venv").resolve())
    return folder


class Old(House):
    def __init__(self, data: Path) -> None:
        super().__init__(data, SERVERS, DJANGO_SUPERUSER_PASSWORD="only for this house")
        self.root = clone()

    def up(self, *arguments: str) -> str:
        """Its own database: no copy of one that this version has migrated."""
        printed = self.run("up", "--detach", *arguments)
        self.facts = json.loads(self.run("env", "--json"))
        user = ["createsuperuser", "--noinput", "--username", "admin", "--email", "admin@example.org"]
        self.token = self.manage(user, ["create_api_token", "admin"]).split()[-1]
        return printed

    def manage(self, *commands: Sequence[str]) -> str:
        printed = ""
        for command in commands:
            done = subprocess.run(
                [sys.executable, "manage.py", *command], cwd=self.root, text=True, capture_output=True,
                env=self.environ | self.facts["environ"], timeout=120,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            printed += done.stdout
        return printed


class New(House):
    """This program, at the data folder of the other one."""

    def __init__(self, old: Old) -> None:
        super().__init__(old.data, SERVERS, **{name: old.environ[name] for name in PORTS})
        self.facts, self.token = old.facts, old.token
        self.environ = old.environ


@pytest.fixture
def old(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Old]:
    house = Old(Path(tmp_path_factory.mktemp("house")))
    try:
        house.up("--no-demo")
        yield house
    finally:
        New(house).down()


def codes(house: House) -> set[str]:
    """The program that each process of the site and each KMA was started from."""
    return {
        str(Path(f"/proc/{house.pid(name)}/cwd").readlink()) for name in ("web", "kma-srv-1", "kma-srv-2")
    }


@pytest.mark.timeout(1200)
def test_an_older_version_is_taken_over_in_the_middle_of_a_replay(old: Old) -> None:
    old.call("POST", "pools/", {"name": "demo", "servers": list(SERVERS)})
    address = old.setting(KEY, policy={"max_attempts": 1})
    old.enable(KEY)
    poisoned = set(range(0, MESSAGES, MESSAGES // POISONED))
    old.publish(address, [scripted.poisoned(n) if n in poisoned else scripted.ok(n) for n in range(MESSAGES)])
    old.until("all is handled or dead", lambda: old.count(KEY, f"DLQ.{KEY}") == [0, POISONED])
    old.until("every letter is indexed", lambda: len(old.dead_letters(KEY)) == POISONED)
    old.until("every failure is stored", lambda: len(old.protocols(KEY)) == POISONED)
    old.mend(KEY)
    job = old.job(KEY, all=True, reason="mended", per_second=PER_SECOND)
    old.until("a part is given back", lambda: len(old.truth(KEY)) > MESSAGES + 3)
    assert codes(old) == {str(old.root)}

    new = New(old)
    said = new.run("upgrade", "--check")
    assert "console.0002_lease" in said, "this version has other tables"
    assert "KMAs and broker go on meanwhile" in said and "1 jobs on messages are open" in said
    assert codes(old) == {str(old.root)}, "--check changes nothing"

    # What comes meanwhile is handled by KMAs of before, who report it to the site of this version.
    old.publish(address, [scripted.ok(n) for n in range(MESSAGES, MESSAGES + LATER)])
    said = new.run("upgrade")
    assert "backup of before" in said and "runs: ./ma doctor" in said
    assert codes(new) == {str(new.root)}

    path = f"replays/{job['id']}/"
    new.until("the replay is over", lambda: new.call("GET", path)["state"] not in ("planned", "running"))
    new.until("nothing waits", lambda: new.count(KEY, f"DLQ.{KEY}") == [0, 0])
    new.until("outcomes are known", lambda: new.call("GET", path)["outcomes"].get("handled") == POISONED)
    assert Counter(new.truth(KEY)) == {n: 2 if n in poisoned else 1 for n in range(MESSAGES + LATER)}, (
        "nothing lost, nothing twice"
    )
    assert len(new.protocols(KEY)) == POISONED
    new.until("spools are empty", lambda: all(row["spool_rows"] == 0 for row in new.pages("servers/")))
    assert {row["kma_version"] for row in new.pages("servers/")} != {VERSION}
    assert list((Layout(new.data).data / "upgrade-backups").glob("ma-backup-*"))

    # And back: none of these migrations is one that leads nowhere back.
    assert "the database is as the old version had it" in new.run("upgrade", "--back")
    old.run("up", "--detach", "--no-demo")
    assert codes(old) == {str(old.root)}
    assert len(old.protocols(KEY)) == POISONED and old.count(KEY, f"DLQ.{KEY}") == [0, 0]
