"""A Redis that takes connections and answers nothing, as under SIGSTOP: requests wait for it about a second,
once."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import current_app

from agents.models import LaunchSetting, Server
from agents.settings.enable import disable_setting, enable_setting
from console import task_queue
from console.reasons import said
from tests.services import RedisService
from tests.web.rows import NOW, make_alive

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def served(redis_server: RedisService, monkeypatch: pytest.MonkeyPatch) -> RedisService:
    monkeypatch.setattr(current_app.conf, "broker_url", redis_server.url)
    monkeypatch.setattr(current_app.conf, "broker_write_url", redis_server.url)
    monkeypatch.setattr(task_queue, "_away_until", 0.0)
    return redis_server


@pytest.fixture
def frozen(served: RedisService) -> Iterator[RedisService]:
    assert task_queue.send("kma.poll", queue="kma.srv-1"), "a connection from before is there"
    pid = int(redis.Redis.from_url(served.url).info()["process_id"])
    os.kill(pid, signal.SIGSTOP)
    yield served
    os.kill(pid, signal.SIGCONT)


def took(call: Any) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started


def test_what_is_sent_arrives(served: RedisService) -> None:
    client = redis.Redis.from_url(served.url)
    client.delete("kma.srv-7")

    assert task_queue.send("kma.poll", queue="kma.srv-7")

    assert client.llen("kma.srv-7") == 1


def test_a_queue_that_nobody_reads_does_not_grow(served: RedisService) -> None:
    """As that of a KMA without Redis, or of a server that is gone."""
    client = redis.Redis.from_url(served.url)
    for _ in range(5):
        assert task_queue.send("kma.poll", queue="kma.srv-8", keep=1)
    assert client.llen("kma.srv-8") == 1


def test_switching_waits_about_a_second_for_it_and_then_not_at_all(
    frozen: RedisService, setting: LaunchSetting, server: Server
) -> None:
    make_alive(server, now=NOW)

    first = took(lambda: enable_setting(setting, None, NOW))
    second = took(lambda: disable_setting(setting, None, said(""), NOW))

    assert first < 2
    assert second < 0.7
    assert not task_queue.send("agents.provision", 1)


def test_after_a_while_it_is_asked_again(frozen: RedisService, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.5 < took(lambda: task_queue.send("kma.poll", queue="kma.srv-1")) < 1.5
    assert took(lambda: task_queue.send("kma.poll", queue="kma.srv-1")) < 0.1

    monkeypatch.setattr(task_queue, "_away_until", 0.0)

    assert took(lambda: task_queue.send("kma.poll", queue="kma.srv-1")) > 0.5
