"""The guides and the reference of the REST interface: every command of them is run, one page after the other,
in one installation with its demo."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from deploy.services.postgres import Cluster
from tests.handbook.blocks import DOCS
from tests.product import scripted
from tests.product.clone import Clone, started

# They need nothing but the demo.
PAGES = (
    "another-environment.md",
    "bulk.md",
    "disk-full.md",
    "erase.md",
    "freeze.md",
    "rehearse.md",
    "reindex.md",
    "settings-in-git.md",
    "site-away.md",
    "take-over-broker.md",
)
FAILING = ("KeyError", "InvalidMessage")


@pytest.fixture(scope="module")
def installation(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    with started(tmp_path_factory.mktemp("guides")) as clone:
        # What is asked for and refused is an error, as where a person reads the answer.
        (clone.data.parent / ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n")
        clone.environ["CURL_HOME"] = str(clone.data.parent)
        yield clone


@pytest.fixture
def clone(installation: Clone) -> Clone:
    """It runs, whatever the page before has done."""
    installation.run("up", "--detach")
    return installation


def dead(clone: Clone, *types: str) -> bool:
    found = {row["exception_type"].rpartition(".")[2] for row in clone.dead_letters("orders")}
    return found >= set(types)


@pytest.mark.parametrize("page", PAGES)
def test_a_guide_is_done_as_it_stands_there(clone: Clone, page: str, tmp_path: Path) -> None:
    clone.reader(tmp_path / "exported").follow(DOCS / "how-to" / page)


def test_a_script_is_connected(clone: Clone, tmp_path: Path) -> None:
    clone.reader(tmp_path / "exported").follow(DOCS / "how-to" / "scripts.md")
    # Nobody starts its KMA, which `./ma status` would say from here on.
    clone.call("DELETE", "servers/srv-3/")


def test_dead_letters_are_replayed_as_the_guide_says(clone: Clone, tmp_path: Path) -> None:
    clone.until("each kind is dead-lettered", lambda: dead(clone, *FAILING))
    operator = clone.reader(tmp_path / "exported")
    operator.follow(DOCS / "how-to" / "replay.md")
    jobs = list(clone.pages("replays/?setting=orders"))
    assert {job["action"] for job in jobs} >= {"give_back", "discard"}
    assert (clone.root / "orders.jsonl").read_text().startswith("{")


def test_the_rest_interface_answers_as_its_reference_says(clone: Clone, tmp_path: Path) -> None:
    clone.call("POST", "pools/", {"name": "main", "servers": ["srv-1"]})
    clone.setting("nightly", timing="DELAYED", parameters={})
    clone.enable("nightly")
    address = clone.setting("payments", mode="CLIENT", concurrency=1, parameters={})
    clone.enable("payments")
    clone.publish_with_ids(address, {"ID:41": scripted.ok(1)})

    def waiting() -> list[dict[str, str]]:
        return list(clone.pages("acknowledgements/?setting=payments"))

    clone.until("a delivery waits for its answer", lambda: len(waiting()) == 1)
    clone.until("a message is dead-lettered", lambda: dead(clone, "KeyError"))
    instead = {"ma_…": clone.token, "c3J2LTE.5b0c….1.…": waiting()[0]["acknowledgement"]}
    program = clone.reader(tmp_path / "exported", instead)
    program.follow(DOCS / "reference" / "rest.md")
    assert '"committed"' in program.printed[-1]


def test_the_remote_command_does_as_its_guide_says(clone: Clone, tmp_path: Path) -> None:
    instead = {"https://ma.example": clone.facts["url"].rstrip("/"), "ma_…": clone.token}
    clone.reader(tmp_path / "exported", instead).follow(DOCS / "how-to" / "remote.md")


def test_a_backup_is_put_back(clone: Clone, tmp_path: Path) -> None:
    operator = clone.reader(tmp_path / "exported", {"/srv/ma-backup": str(tmp_path / "backup")})
    operator.follow(DOCS / "how-to" / "backup.md")
    assert re.search(r"everything was stopped for \d+\.\d s", operator.printed[-1])
    assert "messages, secrets, spool" in operator.printed[-1], "the last one has all parts"
    clone.call("POST", "pools/", {"name": "made-since"})
    operator.follow(DOCS / "how-to" / "restore-database.md")
    assert "made-since" not in {row["name"] for row in clone.pages("pools/")}


def test_a_key_is_converted_for_the_pipeline(clone: Clone, tmp_path: Path) -> None:
    subprocess.run(["openssl", "genrsa", "-out", tmp_path / "client.key"], check=True, capture_output=True)
    clone.reader(tmp_path / "exported", {"/etc/ma": str(tmp_path)}).follow(DOCS / "how-to" / "tls.md")
    assert (tmp_path / "client.key.pk8").stat().st_size > 0


def test_an_installation_is_operated(clone: Clone, tmp_path: Path) -> None:
    operator = clone.reader(tmp_path / "exported")
    operator.follow(DOCS / "how-to" / "operations.md")
    assert "stopped" in operator.printed[-1]


def test_agents_are_offered(clone: Clone, tmp_path: Path) -> None:
    (clone.root / "shop_agents.py").write_text("")
    clone.reader(tmp_path / "exported").follow(DOCS / "how-to" / "agents.md")


def test_a_site_moves_to_postgresql(clone: Clone, postgres: Cluster, tmp_path: Path) -> None:
    """The last one: the installation has another database from here on."""
    with psycopg.connect(postgres.url(), autocommit=True) as cluster:
        cluster.execute("CREATE DATABASE guides")
    (tmp_path / "database_url").write_text(postgres.url("guides"))
    operator = clone.reader(tmp_path / "exported", {"/etc/ma": str(tmp_path)})
    operator.follow(DOCS / "how-to" / "postgresql.md")
    assert clone.call("GET", "settings/orders/")["key"] == "orders"
