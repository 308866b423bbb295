"""How many files one reads to follow a replay and a posted batch: figures that may only get better. What is
counted says tests/web/executed_files.py."""

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.provisioning import queue_counts as figures
from console import broker
from console.database import bulk
from contract.wire import dump
from dlq.models import ReplayJob
from dlq.replay.preflight.rules import CODES
from failures.models import FailureProtocol
from tests.architecture.ratchet import TO_THE_JOB, TO_THE_MOVE, TO_THE_ROWS, assert_no_worse
from tests.dlq.jobs import run_replay
from tests.dlq.letter_world import KEYS, World
from tests.web import reports
from tests.web.executed_files import ExecutedFiles

pytestmark = pytest.mark.django_db
KEY = KEYS[0]
# The first time fills what is kept in the process; the second one is counted.
TIMES = 2


class AtOnce:
    """In place of a pool of one thread: what else its owner does meanwhile is not on the way to the move."""

    def __init__(self, *_: Any) -> None: ...

    def __enter__(self) -> "AtOnce":
        return self

    def __exit__(self, *_: Any) -> None: ...

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work())
        return done


class Moving:
    """The broker's management, which ends what is counted when it is told to move letters."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.counted = inner, ExecutedFiles()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def call(self, of: str, operation: str, *arguments: Any) -> Any:
        if operation == "moveMessages":
            self.counted.stop()
        return self._inner.call(of, operation, *arguments)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(broker, "_connection", Moving(world.management))
    monkeypatch.setattr(broker, "_process", os.getpid())
    monkeypatch.setattr("console.jobs.engine.send", world.asked_to_run)
    monkeypatch.setattr("dlq.replay.worker.mover.ThreadPoolExecutor", AtOnce)
    return world


def die(world: World, label: str) -> None:
    world.publish(KEY, label, strong=True)
    world.kma_takes(KEY, "dead")
    world.bring_everything()


def asked(client: Client) -> tuple[ReplayJob, list[str]]:
    """As an operator who confirms the page."""
    figures.forget()
    counted = ExecutedFiles()
    with patch.object(ReplayJob, "save", counted.until(ReplayJob.save)):
        counted.start()
        answer = client.post(f"/dead-letters/{KEY}/give-back/", {"all": "1", "acknowledge": [*CODES]})
    assert answer.status_code == 302 and not counted.running
    return ReplayJob.objects.get(state="planned"), counted.files


def moved(job: ReplayJob) -> list[str]:
    """As the worker that gets the task."""
    broker.management().counted = counted = ExecutedFiles()  # type: ignore[attr-defined]  # a `Moving`
    counted.start()
    run_replay(str(job.pk))
    assert not counted.running
    job.refresh_from_db()
    assert (job.state, job.counts["given_back"]) == ("done", 1)
    return counted.files


def test_a_replay_is_followed_through_no_more_files(world: World, operator: User, client: Client) -> None:
    client.force_login(operator)
    for time in range(TIMES):
        die(world, f"m{time}")
        job, to_the_job = asked(client)
        to_the_move = moved(job)
    print(*to_the_job, "", *to_the_move, sep="\n")
    assert {"dlq/pages/preflight.py", "dlq/replay/creation.py"} <= {*to_the_job}
    assert {"dlq/tasks.py", "dlq/replay/worker/mover.py", "broker/management/dead_letters.py"} <= {
        *to_the_move
    }
    assert_no_worse({TO_THE_JOB: len(to_the_job), TO_THE_MOVE: len(to_the_move)})


def are_protocols(rows: Sequence[Any]) -> bool:
    return isinstance(rows[0], FailureProtocol)


def test_a_batch_is_followed_through_no_more_files(client: Client) -> None:
    run = reports.run(reports.setting(), reports.server())
    spool, of = reports.Spool(), reports.run_of(run)
    bearer = reports.bearer_of_server(run.server)
    for _ in range(TIMES):
        body = json.dumps(dump(spool.batch(reports.protocol(of), reports.recovered(of))))
        counted = ExecutedFiles()
        with patch.object(bulk, "insert_rows", counted.until(bulk.insert_rows, are_protocols)):
            counted.start()
            client.post("/api/v1/protocols/", body, content_type="application/json", headers=bearer)
        assert not counted.running
    assert FailureProtocol.objects.count() == TIMES
    print(*counted.files, sep="\n")
    assert {"failures/api/intake.py", "failures/intake/kinds/messages.py"} <= {*counted.files}
    assert_no_worse({TO_THE_ROWS: len(counted.files)})
