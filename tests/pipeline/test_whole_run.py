"""The whole pipeline with the real Spark: from rows of the site to results on its pages, and the same over a
standalone cluster of two workers."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from agents.models import Activation, BreakerTrip, Run
from deploy.installing import artemis_download
from deploy.services.ports import free_ports
from dlq.models import DeadLetter
from failures.models import FailureProtocol, RecoveredMessage
from insights.archive.readiness import submit_program
from insights.models import (
    ActivationHealth,
    BreakerSuggestion,
    FailureDay,
    FailureTrend,
    InsightTable,
    PipelineRun,
)
from insights.models.archive import ArchiveBlock
from insights.runs.folder import TABLES, tail_of_log
from tests.pipeline.classes import SHORT_LIVED
from tests.services import cache
from tests.web.factories import World, make_world
from tests.web.pipeline import use, worked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process, pytest.mark.timeout(900)]


@pytest.fixture
def world() -> World:
    """Its rows came yesterday: what comes in the last minutes is left to the next run."""
    made = make_world(letters=21)
    yesterday = timezone.now() - timedelta(days=1)
    FailureProtocol.objects.update(received_at=yesterday)
    RecoveredMessage.objects.update(received_at=yesterday)
    Activation.objects.exclude(ended_at=None).update(ended_at=yesterday)
    Run.objects.exclude(closed_at=None).update(closed_at=yesterday)
    BreakerTrip.objects.update(at=yesterday)
    DeadLetter.objects.update(seen_at=yesterday)
    return made


@pytest.fixture
def spark(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", SHORT_LIVED)
    use(settings, tmp_path, "well")
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    settings.MA_PIPELINE_SUBMIT = ""
    settings.MA_PIPELINE_MASTER = "local[2]"
    settings.MA_PIPELINE_MEMORY_MB = 3072
    settings.MA_PIPELINE_DRIVERS = tuple(
        map(str, artemis_download.ensure_fetched(cache() / "log" / "install.log"))
    )


def done(**more: Any) -> PipelineRun:
    run = worked(**more)
    assert run.state == "done", (run.problem, run.stages, tail_of_log(run, 6000))
    return run


def results() -> dict[str, list[tuple[Any, ...]]]:
    """What was found, without the run and the key of each row. Sizes of the archive are of each archive."""
    found = {}
    for name, model in TABLES.items():
        left_out = ("id", "run_id", "archive_bytes", "database_bytes")
        fields = [field.attname for field in model._meta.concrete_fields if field.attname not in left_out]
        found[name] = sorted((tuple(row) for row in model._default_manager.values_list(*fields)), key=repr)
    return found


def test_from_the_rows_of_the_site_to_its_pages(world: World, spark: None, client: Client) -> None:
    first = done()

    there = FailureProtocol.objects.count()
    assert sum(FailureTrend.objects.values_list("count", flat=True)) == there > 0
    assert sum(FailureDay.objects.exclude(standing="gone").values_list("count", flat=True)) == there
    assert ActivationHealth.objects.exists() and BreakerSuggestion.objects.exists()
    assert set(ArchiveBlock.objects.filter(rows__gt=0).values_list("computed_in", flat=True)) == {first.pk}
    assert first.memory_peak_bytes > 0 and first.versions["spark"].startswith("4.") and first.window_until
    client.force_login(world.people["chief"])
    assert client.get("/insights/").status_code == 200

    before = results()
    second = done()
    assert results() == before and second.percent == 100
    tables = InsightTable.objects.filter(run=first)
    assert tables.filter(name="failure_trends").exists()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    with running_cluster(tmp_path) as url:
        yield url


@contextmanager
def running_cluster(folder: Path, properties: str = "") -> Iterator[str]:
    """A master and two workers of one core each, as a company has them: processes of their own. `properties`:
    a file with settings of Spark."""
    program = submit_program()
    assert program is not None
    spark_class, (port, web) = program.with_name("spark-class"), free_ports(2)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MA_", "KMA_"))}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(folder / "local")}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    url, processes = f"spark://127.0.0.1:{port}", list[subprocess.Popen[bytes]]()
    more = ("--properties-file", properties) if properties else ()

    def begin(name: str, *arguments: str) -> Path:
        log = folder / f"{name}-{len(processes)}.log"
        command = [str(spark_class), f"org.apache.spark.deploy.{name.lower()}.{name}", *more, *arguments]
        with log.open("wb") as file:
            processes.append(
                subprocess.Popen(
                    command, env=environment, stdout=file, stderr=file, process_group=0, cwd=folder
                )
            )
        return log

    try:
        master = begin("Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web))
        said(master, "Starting Spark master")
        for number in range(2):
            work = str(folder / f"work-{number}")
            worker = begin(
                "Worker", "-c", "1", "-m", "1g", "-d", work, "--webui-port", "0", "-h", "127.0.0.1", url
            )
            said(worker, "Successfully registered with master")
        yield url
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def said(log: Path, words: str) -> None:
    until = time.monotonic() + 60
    while words not in log.read_text(errors="replace"):
        assert time.monotonic() < until, log.read_text(errors="replace")[-3000:]
        time.sleep(0.2)


SMALL = (
    "spark.executor.memory 768m\nspark.executor.cores 1\nspark.cores.max 2\nspark.driver.host 127.0.0.1\n"
    "spark.driver.bindAddress 127.0.0.1\n"
)


@pytest.mark.night
def test_a_cluster_of_two_workers_finds_the_same_as_one_machine(
    world: World, spark: None, cluster: str, settings: Any, tmp_path: Path
) -> None:
    properties = tmp_path / "spark.properties"
    properties.write_text(SMALL)
    # Two jobs: one with shuffles alone, one with a window over each run and results derived into the archive.
    jobs = ["failure_trends", "breaker_backtest"]
    done(jobs=jobs)
    local = results()
    models: list[type[Model]] = [*TABLES.values(), InsightTable, ArchiveBlock, PipelineRun]
    for model in models:
        model._default_manager.all().delete()
    shutil.rmtree(tmp_path / "archive")

    settings.MA_PIPELINE_PROPERTIES = str(properties)
    run = done(master=cluster, jobs=jobs)
    assert results() == local
    assert local["failure_trends"] and local["breaker_backtest"]
    executors = sorted(tmp_path.glob("work-*/app-*/*"))
    assert len(executors) == 2, executors
    assert run.master == cluster


# As docs/how-to/cluster.md has it.
PROTECTED = """spark.authenticate true
spark.authenticate.secret {secret}
spark.network.crypto.enabled true
spark.network.crypto.saslFallback false
spark.io.encryption.enabled true
"""


@contextmanager
def watched_commands(secret: str) -> Iterator[list[str]]:
    """Command lines of this machine that hold the secret meanwhile."""
    found, ending = list[str](), threading.Event()

    def watch() -> None:
        while not ending.wait(0.2):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    if secret in (line := file.read_text(errors="replace")):
                        found.append(line)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        ending.set()
        thread.join()


def holding(secret: str, folder: Path, *, but: Path) -> list[Path]:
    """The files below that hold it, `but` one."""
    files = [file for file in folder.rglob("*") if file.is_file() and file != but]
    return [file for file in files if secret.encode() in file.read_bytes()]


@pytest.mark.night
def test_a_cluster_that_asks_for_a_secret_writes_neither_it_nor_the_password_of_the_database_anywhere(
    world: World, spark: None, settings: Any, tmp_path: Path
) -> None:
    secret, password = secrets.token_hex(16), connection.settings_dict["PASSWORD"]
    properties = tmp_path / "spark.properties"
    properties.touch(0o600)
    properties.write_text(SMALL + PROTECTED.format(secret=secret))
    settings.MA_PIPELINE_PROPERTIES = str(properties)
    with running_cluster(tmp_path, str(properties)) as url, watched_commands(secret) as seen:
        done(master=url, jobs=["failure_trends"])
        executors = sorted(tmp_path.glob("work-*/app-*/*/stderr"))
        assert len(executors) == 2 and all(file.stat().st_size for file in executors)
        assert FailureTrend.objects.exists() and seen == []
        for hidden in filter(None, (secret, password)):
            assert holding(hidden, tmp_path, but=properties) == []

        planted = executors[0].with_name("planted")
        planted.write_text(f"control {secret}")
        assert holding(secret, tmp_path, but=properties) == [planted]

        properties.write_text(SMALL + PROTECTED.format(secret="another"))
        run = worked(master=url, jobs=["failure_trends"])
        assert run.state == "failed"
