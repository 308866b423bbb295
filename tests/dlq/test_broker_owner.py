"""Two real sites, one real broker: it belongs to one of them, whatever dies, until a person takes it over."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.stomp.client import StompManagement
from tests import environment, migrated
from tests.dlq.forked import Forked, Started
from tests.dlq.stage import Stage
from tests.dlq.test_feed import kill_messages
from tests.services import ArtemisService

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
FOREIGN = 3


class Worker:
    """Of Celery, with the interface of `Started`."""

    def __init__(self, environ: dict[str, str], log: Path) -> None:
        self._log = log
        command = [sys.executable, "-m", "celery", "-A", "ma_site", "worker", "--pool=threads", "-c", "1"]
        with log.open("w") as output:
            self._process = subprocess.Popen(command, env=environ, cwd=ROOT, stdout=output, stderr=output)

    def poll(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def said(self) -> str:
        return self._log.read_text()


class Site:
    """A database of its own; every process gets this environment."""

    def __init__(self, folder: Path, broker: ArtemisService) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.environ = dict(os.environ) | environment.values(folder) | {
            "MA_AMQP_URL": broker.amqp_url,
            "MA_STOMP_ADDRESS": broker.stomp_address,
            "MA_BROKER_USER": broker.ops.user,
            "MA_BROKER_PASSWORD": broker.ops.password,
            "MA_DATABASE_URL": migrated.make_file(folder / "db.sqlite3"),
            "DJANGO_SETTINGS_MODULE": "ma_site.settings",
        }  # fmt: skip
        self._forked = Forked(self.environ)
        self._started: list[Started | Worker] = []

    def start(self, *arguments: str) -> Started:
        started = self._forked.start(*arguments)
        self._started.append(started)
        return started

    def end_all(self) -> None:
        """A test that failed leaves nothing to the next one."""
        for process in self._started:
            process.kill()
        self._started.clear()

    def run(self, *arguments: str, status: int = 0) -> str:
        done = self._forked.run(*arguments)
        said = done.stderr + done.stdout  # what it answers comes last
        assert done.returncode == status, said
        return said

    def python(self, code: str, status: int = 0) -> str:
        return self.run("shell", "-c", code, status=status)

    def feed(self) -> Started:
        return self.start("follow_dead_letters")

    def worker(self) -> "Worker":
        worker = Worker(self.environ, self.folder / f"worker-{len(self._started)}.log")
        self._started.append(worker)
        return worker

    def copy(self, folder: Path) -> None:
        """Its database is put in the place of what is there."""
        shutil.copy(self.folder / "db.sqlite3", folder / "db.sqlite3")


@pytest.fixture(scope="module")
def own_broker(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArtemisService]:
    service = ArtemisService.create(tmp_path_factory.mktemp("owned") / "broker")
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def sites(own_broker: ArtemisService, tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Site]:
    """Two that were begun apart from each other."""
    folder = tmp_path_factory.mktemp("sites")
    return Site(folder / "first", own_broker), Site(folder / "second", own_broker)


@pytest.fixture
def first(sites: tuple[Site, Site]) -> Iterator[Site]:
    yield sites[0]
    sites[0].end_all()


@pytest.fixture
def second(sites: tuple[Site, Site]) -> Iterator[Site]:
    yield sites[1]
    sites[1].end_all()


@pytest.fixture
def stage(own_broker: ArtemisService) -> Iterator[Stage]:
    """The broker belongs to nobody when a test begins."""
    stage = Stage(own_broker)
    forget_owner(stage.management)
    for row in stage.management.attribute("broker", "QueueNames"):
        if row.startswith("DLQ.") and row.removeprefix("DLQ.") not in ("feed", "unknown", "bin"):
            stage.management.call("broker", "destroyQueue", row)
    stage.drain_feed()
    yield stage
    stage.close()


def forget_owner(management: StompManagement) -> None:
    if "MA.site" in management.attribute("broker", "QueueNames"):
        management.call("broker", "destroyQueue", "MA.site")


def says(process: Started | Worker, words: str) -> None:
    until(lambda: words in process.said(), lambda: f"no {words}: {process.said()[-2000:]}")


def ended(process: Started | Worker) -> str:
    """What it said until it ended by itself."""
    until(
        lambda: process.poll() is not None,
        lambda: f"it goes on beside the other site: {process.said()[-2000:]}",
    )
    return process.said()


def stop(process: Started) -> None:
    process.send_signal(signal.SIGTERM)
    until(lambda: process.poll() is not None, "it goes on")
    assert process.poll() == 0, process.said()


def dead_letter(stage: Stage) -> None:
    """One that no setting of either site knows waits for a feed."""
    kill_messages(stage, stage.key("strange"), 1)
    until(lambda: stage.count("DLQ.feed") == 1, "it is dead")


def until(true: Callable[[], bool], what: str | Callable[[], str]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.1)


def feed_of_owner(site: Site, stage: Stage) -> None:
    """The site's own feed follows the broker once, to the end."""
    feed = site.feed()

    def follows() -> bool:
        return int(stage.management.attribute("queue.DLQ.feed", "ConsumerCount")) > 0

    until(lambda: feed.poll() is not None or follows(), "its feed follows")
    stop(feed)


def test_the_feed_of_another_site_takes_no_letter(first: Site, second: Site, stage: Stage) -> None:
    feed_of_owner(first, stage)
    dead_letter(stage)
    said = ended(second.feed())
    assert "./ma up --adopt-broker" in said
    assert stage.count("DLQ.feed") == 1


def test_the_worker_of_another_site_does_not_start(first: Site, second: Site, stage: Stage) -> None:
    feed_of_owner(first, stage)
    assert "./ma up --adopt-broker" in ended(second.worker())


def test_an_empty_site_does_not_begin_on_a_broker_whose_settings_it_does_not_know(
    first: Site, stage: Stage
) -> None:
    """A broker of an older version has no mark, but queues of settings."""
    dead_letter(stage)
    said = ended(first.feed())
    assert "settings unknown to this site (strange-" in said
    assert stage.count("DLQ.feed") == 1


def test_a_site_that_knows_the_settings_claims_a_broker_of_an_older_version(
    first: Site, second: Site, stage: Stage
) -> None:
    key = stage.key("known")
    stage.key("other")
    first.python(
        "from agents.models import LaunchSetting, Pool; pool, _ = Pool.objects.get_or_create(name='p'); "
        f"LaunchSetting.objects.create(key='{key}', pool=pool, agent='a', kind='standalone')"
    )
    assert "belongs to this site" in first.run("claim_broker")
    assert "belongs to the site" in second.run("claim_broker", status=FOREIGN)
    first.python(
        f"from agents.models import LaunchSetting; LaunchSetting.objects.filter(key='{key}').delete()"
    )


def test_of_two_sites_that_claim_at_once_one_wins(first: Site, second: Site, stage: Stage) -> None:
    both = [site.start("claim_broker") for site in (first, second)]
    until(lambda: None not in [process.poll() for process in both], "both have an answer")
    assert {process.poll() for process in both} == {0, FOREIGN}


@pytest.mark.kill
def test_the_owner_stays_when_the_broker_is_killed(
    first: Site, second: Site, stage: Stage, own_broker: ArtemisService
) -> None:
    first.run("claim_broker")
    own_broker.kill()
    own_broker.start()
    first.run("claim_broker")
    second.run("claim_broker", status=FOREIGN)


def test_a_database_that_was_put_back_goes_on(
    first: Site, second: Site, stage: Stage, tmp_path: Path
) -> None:
    first.run("claim_broker")
    kept = tmp_path / "kept"
    kept.mkdir()
    second.copy(kept)
    first.copy(second.folder)
    try:
        second.run("claim_broker")
    finally:
        shutil.copy(kept / "db.sqlite3", second.folder / "db.sqlite3")


def test_a_person_takes_a_broker_over_and_the_audit_knows(first: Site, second: Site, stage: Stage) -> None:
    first.run("claim_broker")
    second.run("claim_broker", "--adopt", "--reason", "moved")
    second.run("claim_broker", "--adopt")  # nothing is left to do, and nothing is written twice
    first.run("claim_broker", status=FOREIGN)
    audit = second.python(
        "from console.audit.models import AuditEntry; print([(row.reason, row.detail['before'] != '') "
        "for row in AuditEntry.objects.filter(action='adopt_broker')])"
    )
    assert "[('moved', True)]" in audit


def consumers(stage: Stage) -> int:
    return int(stage.management.attribute("queue.DLQ.feed", "ConsumerCount"))


def letters_of(site: Site, key: str) -> str:
    code = (
        "from dlq.models import DeadLetter; print('letters', "
        "DeadLetter.objects.filter(orig_queue='%s').count())"
    )
    return site.python(code % key)


ALERTS = """
from django.utils import timezone
from alerts.evaluation import evaluate_all
from alerts.models import Alert
evaluate_all(timezone.now())
print([alert.kind for alert in Alert.objects.filter(state="open")])
"""


def test_a_running_site_whose_broker_was_taken_over_takes_no_letter_any_more_and_says_so(
    first: Site, second: Site, stage: Stage
) -> None:
    first.run("claim_broker")
    key = stage.key("late")
    feed, worker = first.feed(), first.worker()
    until(lambda: consumers(stage) == 1, "the feed follows")
    says(worker, "Cannot connect to redis")  # it has found Artemis its own, and begins
    second.run("claim_broker", "--adopt", "--reason", "moved")
    kill_messages(stage, key, 1)
    assert "worker stops" in ended(worker)
    until(lambda: consumers(stage) == 0, "the feed lets go")
    assert stage.count("DLQ.feed") == 1
    assert "took it over" in first.run("doctor", status=1)
    assert "broker_adopted" in first.python(ALERTS)

    feed_of_owner(second, stage)
    until(lambda: stage.count("DLQ.feed") == 0, "the new owner's feed has it")
    assert "letters 0" in letters_of(first, key) and "letters 1" in letters_of(second, key)

    first.run("claim_broker", "--adopt")
    until(lambda: consumers(stage) == 1, "it goes on by itself when it is given back")
    stop(feed)
    assert "broker_adopted" not in first.python(ALERTS).splitlines()[-1]


DIES_BETWEEN = """
import os, signal
from broker.management import site_claim
site_claim.claim = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
from django.core.management import call_command
call_command("claim_broker", "--adopt")
"""


@pytest.mark.kill
def test_a_takeover_that_is_killed_half_way_is_done_by_the_next_one(
    first: Site, second: Site, stage: Stage
) -> None:
    dead_letter(stage)
    first.run("claim_broker", "--adopt")
    second.python(DIES_BETWEEN, status=-signal.SIGKILL)
    assert "MA.site" not in stage.management.attribute("broker", "QueueNames")
    second.run("claim_broker", status=FOREIGN)  # nobody's, and of settings that it does not know
    second.run("claim_broker", "--adopt")
    first.run("claim_broker", status=FOREIGN)


def test_a_feed_waits_for_a_broker_that_is_away_and_refuses_it_then(
    first: Site, second: Site, stage: Stage, own_broker: ArtemisService
) -> None:
    first.run("claim_broker")
    own_broker.stop()
    try:
        feed, worker = second.feed(), second.worker()
        says(feed, "owner of the broker")
        says(worker, "owner of the broker")
    finally:
        own_broker.start()
    assert "./ma up --adopt-broker" in ended(feed)
    assert "worker stops" in ended(worker)
