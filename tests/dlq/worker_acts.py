"""What the children of a WorkerHost do, each in a process of its own, on the database and the broker of the
test."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from agents.models import Activation, Destination, LaunchSetting, Pool, Run, RunPhase, Server
from agents.provisioning.provision import provision_setting
from broker.amqp.browser import AmqpBrowser
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher
from broker.management import dead_letters as moves
from broker.port import Settle
from console.audit.models import AuditEntry
from console.broker import management
from console.jobs import engine
from console.operations.operation import perform
from console.operations.refusals import Refused
from contract.messages import BlockedMessage
from contract.wire import dump
from dlq import tasks
from dlq.index import sweep
from dlq.index.broker import letter_queues
from dlq.index.feed import Feed, Inbox
from dlq.index.queries import FEED_QUEUE
from dlq.index.walk import index_queue, message_count
from dlq.models import Action, DeadLetter, ItemState, LetterReport, ReplayItem, ReplayJob, ReplaySlice
from dlq.models.dead_letter import BIN_QUEUE, LetterResult
from dlq.outcomes import settlement
from dlq.replay import counts as counting
from dlq.replay.creation import begin_replay
from dlq.replay.operations import ON_REPLAYS
from dlq.replay.preflight.rules import CODES
from dlq.replay.requests import Options, ReplayRequest
from dlq.replay.rules import slices
from dlq.replay.worker import hold, mover, planner
from dlq.search.words import TABLE
from ma_site.tasks import start_jobs
from retention.erasure import operations
from retention.erasure.protocols import ErasureTarget
from tests.dlq.jobs import begun, run_replay
from tests.dlq.stage import Seen

DLA = "MA.DLA"
RULE = [{"op": "set_property", "name": "edited", "type": "string", "value": "yes"}]


def _small(size: int = 2) -> None:
    """Several slices for a few letters, and nobody is sent for."""
    slices.RANGE_SLICE = planner.IN_ORDER = slices.NAMED_SLICE = size
    slices.SLICE = size  # type: ignore[attr-defined]
    # A move by ids takes several transactions of the broker.
    moves.FLUSH = max(1, size // 5)
    engine.send = lambda *_, **__: True  # type: ignore[attr-defined]


def prepare(key: str, count: int) -> list[int]:
    """A setting of which so many letters lie at the broker, and all that the feed has; the rows of its
    letters."""
    pool = Pool.objects.get_or_create(name="p")[0]
    destination = Destination.objects.get_or_create(name=f"t.{key}")[0]
    LaunchSetting.objects.create(key=key, agent="a", pool=pool, destination=destination)
    User.objects.get_or_create(username="operator")
    return follow(key, count)


def follow(key: str, count: int) -> list[int]:
    """Takes all that the feed has, until it brought so many letters of the setting; their rows."""
    inbox, account = Inbox(), settings.MA_BROKER_AMQP
    consumer = AmqpConsumer(account, DLA, "DLQ.feed", inbox, core=True)
    feed = Feed(consumer, inbox, management(), AmqpPublisher(account), DLA)
    feed.start()
    rows = DeadLetter.objects.filter(setting_key=key).order_by("pk")
    deadline = time.monotonic() + 60
    while rows.count() < count and time.monotonic() < deadline:
        feed.step(0.1)
    feed.stop()
    return list(rows.values_list("pk", flat=True))


def add_setting(key: str) -> None:
    """One of another destination."""
    pool = Pool.objects.get_or_create(name="p")[0]
    destination = Destination.objects.get_or_create(name=f"t.{key}")[0]
    LaunchSetting.objects.create(key=key, agent="a", pool=pool, destination=destination)


def remove_setting(key: str) -> None:
    """Past everything that would refuse it."""
    LaunchSetting.objects.filter(key=key).delete()


def ask(
    key: str, action: str, scope: str, letters: list[int] | None = None, target: str = "", **options: Any
) -> str:
    _small()
    rule: dict[str, Any] = {"edit_rule": RULE} if action == "edit" else {}
    how = Options(**options, **rule)
    job = begun(
        LaunchSetting.objects.get(key=key), action=action, scope=scope, letters=letters or (), options=how,
        by=User.objects.get(username="operator"), now=timezone.now(),
        target=LaunchSetting.objects.get(key=target) if target else None,
    )  # fmt: skip
    return str(job.pk)


def people(names: list[str]) -> None:
    for name in names:
        User.objects.get_or_create(username=name, defaults={"is_superuser": True})


def operate(key: str, who: str, wishes: list[tuple[str, list[int]]]) -> list[str]:
    """One request to give back after the other, each a scope with its letters, as from a page: the jobs, or
    the codes of what was refused."""
    _small()
    told, by, setting = [], User.objects.get(username=who), LaunchSetting.objects.get(key=key)
    for scope, letters in wishes:
        wish = ReplayRequest(
            setting, Action.GIVE_BACK, scope, letters, reason=f"{who} wants it", acknowledged=CODES
        )
        try:
            told.append(str(begin_replay(wish, by=by, now=timezone.now()).pk))
        except Refused as refused:
            told.append(refused.code)
    return told


def books(key: str) -> dict[str, Any]:
    """What is written down of the letters of a setting and of who asked for them."""
    items = ReplayItem.objects.filter(letter__setting_key=key)
    audit = AuditEntry.objects.filter(setting_key=key, action="dead_letters.replay")
    return {
        "outstanding": Counter(items.filter(state="planned").values_list("letter", flat=True)),
        "given_back": Counter(items.filter(state="given_back").values_list("letter", flat=True)),
        "refused": Counter(audit.filter(result="refused").values_list("by_name", flat=True)),
        "done": sorted(map(str, audit.filter(result="done").values_list("operation", flat=True))),
    }


def grow_old(key: str, names: list[str]) -> None:
    """Of these letters in the bin the time is over."""
    old = DeadLetter.objects.filter(queue=BIN_QUEUE, setting_key=key, message_key__in=names)
    assert old.update(seen_at=timezone.now() - timedelta(days=settings.MA_BIN_DAYS, seconds=1)) == len(names)


def empty_bin(key: str) -> dict[str, list[str]]:
    """As beat does; what the index says afterwards of the letters of a setting in the bin."""
    tasks.purge_trash()
    told: dict[str, list[str]] = {}
    rows = DeadLetter.objects.filter(queue=BIN_QUEUE, setting_key=key).order_by("message_key")
    for state, name in rows.values_list("state", "message_key"):
        told.setdefault(state, []).append(name)
    return told


def sweep_bin() -> None:
    """The sweep, which looks all the time and at nothing else, until rows and broker agree."""
    sweep.COMPARED_EVERY = sweep.AGAIN = sweep.SHARE = 0.0
    listed = sweep.every  # type: ignore[attr-defined]
    only = (BIN_QUEUE, FEED_QUEUE)
    sweep.every = lambda *about: (row for row in listed(*about) if row["name"] in only)  # type: ignore[attr-defined]
    one = sweep.Sweep(management(), AmqpBrowser(settings.MA_BROKER_AMQP), DLA)
    rows = DeadLetter.objects.filter(queue=BIN_QUEUE, state="dead")
    deadline = time.monotonic() + 60
    while (more := one.step(timezone.now(), idle=True)) or rows.count() != message_count(
        management(), BIN_QUEUE
    ):
        assert time.monotonic() < deadline, f"they never agree: {more}"


def walk_bin() -> dict[str, int]:
    """What a walk of the whole bin finds."""
    return asdict(index_queue(BIN_QUEUE))


def serve(key: str, in_a_row: int) -> None:
    """A server that runs the setting, is heard all the time, and says that so many messages failed in a
    row."""
    server = Server.objects.create(name=f"srv-{key}", last_seen_at=timezone.now() + timedelta(hours=1))
    setting = LaunchSetting.objects.get(key=key)
    Run.objects.create(
        activation=Activation.objects.create(setting=setting), server=server, epoch=1, any_count=in_a_row,
        state=RunPhase.RUNNING, reported_at=timezone.now(),
    )  # fmt: skip


def block(key: str, attempt: int) -> None:
    """A message blocks the ordered subscription of a setting, as its server says; attempt 0: none does any
    more."""
    LaunchSetting.objects.filter(key=key).update(ordered=True, enabled=True)
    setting = LaunchSetting.objects.get(key=key)
    server = Server.objects.get_or_create(name=f"srv-{key}")[0]
    activation = Activation.objects.get_or_create(setting=setting)[0]
    blocked = dump(BlockedMessage("ID:poison", attempt)) if attempt else None
    said = {"blocked": blocked, "reported_at": timezone.now()}
    Run.objects.update_or_create(activation=activation, server=server, epoch=1, defaults=said)


def handle(key: str) -> int:
    """Agents handle what was given back and waits, as KMAs report it; how many."""
    waiting = ReplayItem.objects.filter(letter__setting_key=key, state=ItemState.GIVEN_BACK, outcome="")
    keys = list(waiting.values_list("letter__message_key", flat=True))
    with transaction.atomic():
        for name in keys:
            LetterReport.objects.create(
                id=uuid4(), setting_key=key, message_key=name, result=LetterResult.HANDLED, server_name="srv",
                activation_uuid=uuid4(), attempt=1, occurred_at=timezone.now(),
            )  # fmt: skip
        settlement.settle({(key, name) for name in keys}, timezone.now())
    return len(keys)


def wait_long(job: str) -> None:
    """The consumers that this job waits for have been open for more than it waits."""
    assert (
        ReplayJob.objects.exclude(stopping_since=None)
        .filter(pk=job)
        .update(stopping_since=timezone.now() - timedelta(hours=1))
    )


def change(job: str, how: str) -> None:
    _small()
    verb = next(each for each in ON_REPLAYS if each.verb() == how)
    perform(verb, ReplayJob.objects.get(pk=job), None)


def work(job: str, turns: int = 20, *, vanishing: bool = False, stolen_of: int = 0) -> dict[str, Any]:
    """A worker, as often as beat would send one, until the job is over; whoever had it before is silent too
    long. `vanishing`: the oldest letter expires when it is planned and nothing is moved yet. `stolen_of`:
    another consumer takes the oldest letter of the slice with that number right before its move."""
    _small()
    if stolen_of:
        _let_one_be_stolen(stolen_of)
    if vanishing:
        _let_one_vanish()
    for _ in range(turns):
        ReplayJob.objects.filter(pk=job).update(lease_until=None)
        run_replay(job)
        if ReplayJob.objects.filter(pk=job).exclude(finished_at=None).exists():
            break
    return tell(job)


def _let_one_vanish() -> None:
    run = mover.Moves.run

    def after_a_loss(self: mover.Moves) -> mover.Ended:
        source, letters = self._job.source_queue, self._job.items.order_by("letter__orig_message_id")
        oldest = letters.values_list("letter__orig_message_id", flat=True)[0]
        self._queues.management.call(f"queue.{source}", "removeMessages", f"_AMQ_ORIG_MESSAGE_ID = {oldest}")
        return run(self)

    mover.Moves.run = after_a_loss  # type: ignore[method-assign]


def _let_one_be_stolen(slice_number: int) -> None:
    ask, stolen = mover._ask, False

    def after_a_theft(queues: Any, job: ReplayJob, piece: ReplaySlice, numbers: Sequence[int]) -> int:
        nonlocal stolen
        if piece.number == slice_number and not stolen:
            stolen = True
            _steal(job.source_queue)
        return ask(queues, job, piece, numbers)

    mover._ask = after_a_theft


def _steal(queue: str) -> None:
    """As any other AMQP client would."""
    seen, before = Seen(), message_count(management(), queue)
    consumer = AmqpConsumer(settings.MA_BROKER_AMQP, DLA, queue, seen, 1)
    consumer.start()
    delivery = seen.deliveries.get(timeout=20)
    consumer.settle([(delivery.tag, Settle.ACCEPT)])
    consumer.stop()
    deadline = time.monotonic() + 60
    while message_count(management(), queue) >= before:
        assert time.monotonic() < deadline, "it is there still"
        time.sleep(0.01)


def states(job: str, hours: float = 0) -> dict[str, list[str]]:
    """Of each letter, by its message key, the state and the outcome; `hours` later."""
    if hours:
        list(settlement.end_overdue(timezone.now() + timedelta(hours=hours)))
    row = ReplayJob.objects.get(pk=job)
    items = ReplayItem.objects.filter(job=row)
    waiting = counting.waiting_of(row.counts)
    assert waiting == items.filter(state__in=counting.LEFT, outcome="").count(), (
        "the figures are those of its letters"
    )
    return {
        key: [state, outcome]
        for key, state, outcome in items.values_list("letter__message_key", "state", "outcome")
    }


def tend(asked: list[str], size: int = 2) -> list[dict[str, Any]]:
    """Beat and its worker, until these jobs are over; nobody takes a job from anybody who has it."""
    _small(size)
    engine.PAUSE = timedelta(seconds=0.3)
    sent: list[str] = []

    def asked_to_run(task: str, kind: str, job: str, **__: Any) -> bool:
        sent.append(job)
        return True

    engine.send = asked_to_run  # type: ignore[assignment,attr-defined]
    while ReplayJob.objects.filter(pk__in=asked, finished_at=None).exists():
        sent.clear()
        start_jobs()
        for job in list(sent):
            run_replay(job)
        time.sleep(0.02)
    return [tell(job) for job in asked]


def tell(job: str) -> dict[str, Any]:
    row = ReplayJob.objects.get(pk=job)
    items = ReplayItem.objects.filter(job=row)
    return {
        "state": row.state,
        "scope": row.scope,
        "total": row.total,
        "problem": str(row.problem),
        "counts": {state: number for state, number in row.counts.items() if number},
        "skipped": row.skipped,
        "items": Counter(items.values_list("state", flat=True)),
        "letters": Counter(items.values_list("letter__state", flat=True)),
        "dead": DeadLetter.objects.filter(
            queue=row.source_queue, setting_key=row.setting_key, state="dead"
        ).count(),
        "in_bin": DeadLetter.objects.filter(
            queue="DLQ.bin", setting_key=row.setting_key, state="dead"
        ).count(),
    }


def erase(key: str, message_key: str) -> dict[str, Any]:
    """As the command does. `found`: whether it is in the database afterwards; the audit has it nowhere
    either."""
    by = User.objects.get(username="operator")
    erased = operations.erase(
        ErasureTarget(message_key=message_key), letter_queues(), by=by, reason="asked for", operation=uuid4(),
        now=timezone.now(), seen=lambda rows: None,
    )  # fmt: skip
    counts = {kind: number for kind, number in erased.counts.items() if number}
    return {"left": sorted(erased.left), "counts": counts, "found": _is_anywhere(message_key)}


def _is_anywhere(text: str) -> bool:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if (connection.vendor, table) == ("sqlite", TABLE):
                continue
            cursor.execute(f'SELECT * FROM "{table}"')
            if any(text.encode() in _bytes(each) for row in cursor.fetchall() for each in row):
                return True
    return False


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, (bytes, memoryview)) else str(value).encode()


def go_on(job: str, seconds: float = 60.0, until: str = "") -> dict[str, Any]:
    """A worker, asked again and again, until the job is over, or its hold is that far."""
    _small()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ReplayJob.objects.filter(pk=job).update(lease_until=None)
        run_replay(job)
        row = ReplayJob.objects.get(pk=job)
        if row.finished_at is not None or (until and row.hold == until):
            break
        time.sleep(0.02)
    return tell(job) | hold_of(job)


def hold_of(job: str) -> dict[str, Any]:
    row = ReplayJob.objects.get(pk=job)
    setting = LaunchSetting.objects.get(key=row.target_key or row.setting_key)
    return {
        "hold": row.hold,
        "held": setting.hold,
        "held_by": str(setting.held_by or ""),
        "waits": row.wait_reason,
    }


def switch_on(key: str) -> None:
    """The row alone: nobody runs it, and what consumes is not waited for."""
    LaunchSetting.objects.filter(key=key).update(enabled=True)


def end_time(job: str) -> None:
    """The time of its hold is over."""
    assert ReplayJob.objects.filter(pk=job).exclude(hold_until=None).update(hold_until=timezone.now())


def tidy() -> None:
    """What beat does before it starts jobs."""
    hold.end_overdue_holds(timezone.now())


def provision(key: str) -> None:
    """As beat does where a wish changed."""
    setting = LaunchSetting.objects.get(key=key)
    LaunchSetting.objects.filter(pk=setting.pk).update(wanted_hash="", provision_state="pending")
    provision_setting(setting.pk)
