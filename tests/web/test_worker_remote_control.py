"""Whoever can write to Redis, as every KMA can, tells the site's worker nothing but its tasks."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery

from tests import environment
from tests.kma.fakes import eventually
from tests.services import RedisService

ROOT = Path(__file__).resolve().parents[2]
QUEUE = "ma"


@pytest.fixture
def stranger(redis_server: RedisService) -> Celery:
    """Another program with the password of Redis."""
    return Celery("stranger", broker=redis_server.url)


@pytest.fixture
def client(redis_server: RedisService) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
        yield client


@pytest.fixture
def worker(client: redis.Redis, redis_server: RedisService, tmp_path: Path) -> Iterator[Path]:
    """The site's worker; its log."""
    values = environment.values(tmp_path) | {"MA_REDIS_URL": redis_server.url}
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("MA_", "KMA_"))
    } | values
    log = tmp_path / "worker.log"
    command = [sys.executable, "-m", "celery", "-A", "ma_site", "worker", "--pool=threads", "-c", "1"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environ, cwd=ROOT, stdout=output, stderr=output)
    yield log
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    finally:
        process.kill()
        process.wait()


def is_consumed(stranger: Celery, log: Path, name: str) -> None:
    """The worker takes a task that it does not know, and says so."""
    stranger.send_task(name, queue=QUEUE)
    eventually(lambda: name in log.read_text(), f"the task {name} in {log}", 60)


def test_the_worker_keeps_its_queue_whatever_comes_over_redis(stranger: Celery, worker: Path) -> None:
    is_consumed(stranger, worker, "before.the.order")

    assert not stranger.control.ping(timeout=3), "no answer to an inspection"
    assert not stranger.control.cancel_consumer(QUEUE, reply=True, timeout=3)
    stranger.control.shutdown()

    is_consumed(stranger, worker, "after.the.order")
