"""What the children of a WorkerHost do, each in a process of its own, on the database and the broker of the test."""

import time
from collections import Counter
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Destination, LaunchSetting, Pool
from agents.services.broker import management
from broker.amqp_adapter import AmqpConsumer, AmqpPublisher
from dlq import tasks
from dlq.feed import Feed, Inbox
from dlq.models import DeadLetter, ReplayItem, ReplayJob
from dlq.replay import control, jobs, moving, pieces, planning
from dlq.replay.options import Options

DLA = "MA.DLA"
RULE = [{"op": "set_property", "name": "edited", "type": "string", "value": "yes"}]


def _small(size: int = 2) -> None:
    """Several slices for a few letters, and nobody is sent for."""
    planning.RANGE_SLICE, pieces.IN_ORDER, planning.SLICE = size, size, size
    jobs.send = control.start = lambda *_, **__: True  # type: ignore[assignment]


def prepare(key: str, count: int) -> list[int]:
    """A setting of which so many letters lie at the broker, and all that the feed has; the rows of its letters."""
    pool = Pool.objects.get_or_create(name="p")[0]
    destination = Destination.objects.get_or_create(name=f"t.{key}")[0]
    LaunchSetting.objects.create(key=key, agent="a", pool=pool, destination=destination)
    User.objects.get_or_create(username="operator")
    inbox, account = Inbox(), settings.MA_BROKER_AMQP
    feed = Feed(AmqpConsumer(account, DLA, "DLQ.feed", inbox), inbox, management(), AmqpPublisher(account), DLA)
    feed.start()
    rows = DeadLetter.objects.filter(setting_key=key).order_by("pk")
    deadline = time.monotonic() + 30
    while rows.count() < count and time.monotonic() < deadline:
        feed.step(0.1)
    feed.stop()
    return list(rows.values_list("pk", flat=True))


def ask(key: str, action: str, scope: str, letters: list[int] | None = None, **options: Any) -> str:
    _small()
    how = Options(**options, **({"edit_rule": RULE} if action == "edit" else {}))
    job = jobs.create_job(
        LaunchSetting.objects.get(key=key), action=action, scope=scope, letters=letters, options=how,
        by=User.objects.get(username="operator"), now=timezone.now(),
    )  # fmt: skip
    return str(job.pk)


def change(job: str, how: str) -> None:
    _small()
    getattr(control, how)(ReplayJob.objects.get(pk=job), by=User.objects.get(username="operator"), now=timezone.now())


def work(job: str, turns: int = 20, *, vanishing: bool = False) -> dict[str, Any]:
    """A worker, as often as beat would send one, until the job is over; whoever had it before is silent too long.
    `vanishing`: the oldest letter expires when it is planned and nothing is moved yet."""
    _small()
    if vanishing:
        _let_one_vanish()
    for _ in range(turns):
        ReplayJob.objects.filter(pk=job).update(lease_until=None)
        tasks.run_replay(job)
        if ReplayJob.objects.filter(pk=job).exclude(finished_at=None).exists():
            break
    return tell(job)


def _let_one_vanish() -> None:
    run = moving.Moves.run

    def after_a_loss(self: moving.Moves) -> moving.Ended:
        source, letters = self._job.source_queue, self._job.items.order_by("letter__orig_message_id")
        oldest = letters.values_list("letter__orig_message_id", flat=True)[0]
        self._queues.management.call(f"queue.{source}", "removeMessages", f"_AMQ_ORIG_MESSAGE_ID = {oldest}")
        return run(self)

    moving.Moves.run = after_a_loss  # type: ignore[method-assign]


def tend(asked: list[str], size: int = 2) -> list[dict[str, Any]]:
    """Beat and its worker, until these jobs are over; nobody takes a job from anybody who has it."""
    _small(size)
    tasks.PAUSE = timedelta(seconds=0.3)
    sent: list[str] = []

    def asked_to_run(_: str, job: str, **__: Any) -> bool:
        sent.append(job)
        return True

    jobs.send = asked_to_run  # type: ignore[assignment]
    while ReplayJob.objects.filter(pk__in=asked, finished_at=None).exists():
        sent.clear()
        tasks.tend_replays()
        for job in list(sent):
            tasks.run_replay(job)
        time.sleep(0.02)
    return [tell(job) for job in asked]


def tell(job: str) -> dict[str, Any]:
    row = ReplayJob.objects.get(pk=job)
    items = ReplayItem.objects.filter(job=job)
    return {
        "state": row.state,
        "total": row.total,
        "problem": row.problem,
        "counts": {state: number for state, number in row.counts.items() if number},
        "items": Counter(items.values_list("state", flat=True)),
        "letters": Counter(items.values_list("letter__state", flat=True)),
        "dead": DeadLetter.objects.filter(queue=row.source_queue, setting_key=row.setting_key, state="dead").count(),
        "in_bin": DeadLetter.objects.filter(queue="DLQ.bin", setting_key=row.setting_key, state="dead").count(),
    }
