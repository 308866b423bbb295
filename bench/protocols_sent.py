"""Batches of protocols as a KMA sends them, made before anything is measured, and two processes of gunicorn
that take them."""

import gzip
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Thread
from uuid import UUID, uuid4

import requests

from contract.messages import Record, RecordBatch
from contract.outcomes import Outcome
from contract.records import MessageIdentity, Protocol, RecordRun
from contract.wire import dump

BATCH = 100
TRACEBACK = 4096  # characters
KINDS = 20
SENDERS = 4


@dataclass(frozen=True, slots=True)
class Sender:
    """A server with its token; `batches` are bodies as they go over the wire."""

    token: str
    batches: list[bytes]


def senders(count: int, names: Sequence[str]) -> list[Sender]:
    """Servers of these names, each with an activation, that send `count` protocols together."""
    from django.utils import timezone

    from agents.models import Activation, Destination, LaunchSetting, Pool, Run, Server
    from agents.servers.admission import issue_server_token

    pool, _ = Pool.objects.get_or_create(name="intake")
    destination, _ = Destination.objects.get_or_create(name="intake")
    made = []
    for index, name in enumerate(names):
        server = Server.objects.create(name=name)
        setting = LaunchSetting.objects.create(
            key=name, agent="bench.fail", pool=pool, destination=destination
        )
        activation = Activation.objects.create(setting=setting)
        Run.objects.create(activation=activation, server=server, epoch=1)
        run = RecordRun(setting.key, activation.pk, 1, name, "bench.fail", "1")
        batches = _batches(run, count // len(names), random.Random(index))
        made.append(Sender(issue_server_token(server, now=timezone.now()), batches))
    return made


def _batches(run: RecordRun, count: int, dice: random.Random) -> list[bytes]:
    spool = uuid4()
    return [
        gzip.compress(json.dumps(dump(batch(run, spool, first, min(BATCH, count - first), dice))).encode(), 1)
        for first in range(0, count, BATCH)
    ]


def batch(run: RecordRun, spool: UUID, first: int, count: int, dice: random.Random) -> RecordBatch:
    records = []
    for number in range(first + 1, first + count + 1):
        content = dump(_protocol(run, number, dice))
        assert isinstance(content, dict)
        records.append(Record(number, uuid4(), "protocol", content))
    return RecordBatch(run.server, spool, tuple(records))


def _protocol(run: RecordRun, number: int, dice: random.Random) -> Protocol:
    kind = dice.randrange(KINDS)
    lines, length = ["Traceback (most recent call last):"], 0
    while length < TRACEBACK:
        lines.append(
            f'  File "/srv/agents/shop/part{dice.randrange(500)}.py", line {dice.randrange(900)}, in step'
        )
        lines.append(f"    return self.call{dice.randrange(10**6)}(order, {dice.randrange(10**6)})")
        length += len(lines[-1]) + len(lines[-2]) + 2
    return Protocol(
        run=run,
        outcome=Outcome.RAISED.value,
        exception_type=f"shop.errors.Error{kind}",
        exception_text=f"order {dice.randrange(10**9)} has no currency",
        traceback="\n".join(lines)[:TRACEBACK],
        fingerprint=f"v1:{kind:016x}",
        place=f"part{kind}.py:step",
        message=MessageIdentity(
            key=f"ID:{run.server}-{number}",
            queue=run.setting,
            destination="intake",
            body_size=1024,
            properties={"region": "north", "tenant": dice.randrange(50)},
        ),
        occurred_at=datetime.now(UTC),
        process_id=4711,
        duration_seconds=0.2,
    )


@contextmanager
def web(port: int) -> Iterator[str]:
    """The site as the Procfile serves it, with two processes. Yields the address of the intake."""
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "ma_site.wsgi",
        "--bind",
        f"127.0.0.1:{port}",
        "--workers",
        "2",
    ]
    command += [
        "--threads",
        "4",
        "--worker-class",
        "ma_site.requests.worker.Worker",
        "--keep-alive",
        "15",
        "--no-control-socket",
    ]
    process = subprocess.Popen(command, env=os.environ, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/api/v1/protocols/"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                requests.get(url, timeout=5)
                break
            except (requests.ConnectionError, requests.Timeout):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def send_all(url: str, all_senders: Sequence[Sender]) -> tuple[float, list[float]]:
    """Every sender at once, each its batches one after the other. Answers seconds in all, and of each
    request."""
    seconds: list[float] = []
    faults: list[BaseException] = []

    def work(sender: Sender) -> None:
        try:
            with requests.Session() as session:
                seconds.extend(send(session, url, sender.token, body) for body in sender.batches)
        except BaseException as error:
            faults.append(error)

    threads = [Thread(target=work, args=(sender,)) for sender in all_senders]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lasted = time.perf_counter() - began
    if faults:
        raise faults[0]
    return lasted, seconds


def send(session: requests.Session, url: str, token: str, body: bytes) -> float:
    """Seconds until the answer. Raises RuntimeError unless everything was new."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Content-Encoding": "gzip",
    }
    headers["Connection"] = "close"  # as a KMA does
    began = time.perf_counter()
    answer = session.post(url, data=body, headers=headers, timeout=60)
    lasted = time.perf_counter() - began
    if answer.status_code != 200 or answer.json()["new"] == 0:
        raise RuntimeError(f"{answer.status_code}: {answer.text[:500]}")
    return lasted
