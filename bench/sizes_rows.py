"""Rows as a house writes them: through the product's own functions where there is one for many.

Bodies are JSON orders of words out of 2,000 and numbers of their own: every letter has some words that no
other has.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from django.utils import timezone

from agents.activations.launch import launched_with
from agents.models import Activation, Destination, LaunchSetting, Pool, Run, RunPhase, Server, StateChange
from bench.protocols_sent import BATCH, batch
from broker.amqp.codec import encode
from broker.port import Message
from contract.names import dead_letter_queue
from contract.records import RecordRun
from contract.typed import Typed
from dlq.dead_letters.rules.parser import letter_row
from dlq.index import store
from dlq.models import (
    Action,
    DeadLetter,
    ItemState,
    JobState,
    LetterState,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    SliceState,
)
from failures.error_groups.rollup import fold
from failures.intake.batch import accept_batch
from failures.models import FailureGroup, FingerprintHour
from retention.worker import run_retention_turn

SPAN = timedelta(days=30)
SERVERS, KINDS = 20, 20
# Bodies are deleted after 30 days, which these are older than.
LEFT_AGO = timedelta(days=31)
SYLLABLES = (
    "ba",
    "den",
    "fi",
    "gor",
    "hal",
    "ki",
    "lum",
    "mo",
    "ner",
    "pas",
    "ri",
    "so",
    "tur",
    "ve",
    "wan",
    "zu",
)
HEADLINE = "order <n> has no currency"


@dataclass(frozen=True, slots=True)
class Places:
    setting: LaunchSetting
    servers: Sequence[Server]
    activation: Activation
    dice: random.Random


def make_places() -> Places:
    dice = random.Random(20)
    pool, destination = Pool.objects.create(name="orders"), Destination.objects.create(name="orders")
    servers = [Server.objects.create(name=f"srv-{number:02}") for number in range(SERVERS)]
    pool.servers.set(servers)
    setting = LaunchSetting.objects.create(
        key="orders-import", agent="shop.import", pool=pool, destination=destination
    )
    activation = Activation.objects.create(setting=setting, launched_with=launched_with(setting))
    Run.objects.create(activation=activation, server=servers[0], epoch=1)
    return Places(setting, servers, activation, dice)


# -- dead letters --------------------------------------------------------------------------------------------


def store_letters(places: Places, count: int, size: int) -> list[int]:
    """As the feed stores them, with the words of their bodies; the keys of the rows."""
    words = ["".join(places.dice.choices(SYLLABLES, k=3)) for _ in range(2_000)]
    now, first = (
        timezone.now(),
        1 + (DeadLetter.objects.order_by("-pk").values_list("pk", flat=True).first() or 0),
    )
    stored: list[DeadLetter] = []
    for begin in range(first, first + count, 100):
        some = range(begin, min(begin + 100, first + count))
        stored += store.store(
            [_letter(places, number, body(places.dice, words, size), now) for number in some], now
        )
    return [row.pk for row in stored]


def body(dice: random.Random, words: Sequence[str], size: int) -> str:
    """A JSON order of exactly `size` bytes."""
    order = {"order": dice.randrange(10**9), "customer": f"c{dice.randrange(10**5)}"}
    lines: list[dict[str, str | int]] = []
    length = len(json.dumps({**order, "lines": lines, "note": ""}))
    while length < size - 200:
        text = " ".join(dice.choices(words, k=5))
        lines.append(
            {"sku": f"A{dice.randrange(10**6)}", "text": text, "pieces": dice.randrange(99), "price": "12.50"}
        )
        length += len(json.dumps(lines[-1])) + len(", ")
    note = " ".join(dice.choices(words, k=60))[: size - length]
    return json.dumps({**order, "lines": lines, "note": note})[:size].ljust(size)


def _letter(places: Places, number: int, text: str, now: datetime) -> DeadLetter:
    key, dice = places.setting.key, places.dice
    annotations = {
        "x-opt-ORIG-ADDRESS": Typed("string", "orders"),
        "x-opt-ORIG-QUEUE": Typed("string", key),
        "x-opt-ORIG-MESSAGE-ID": Typed("long", number),
    }
    message = Message(
        body=Typed("string", text),
        message_id=Typed("string", f"ID:{UUID(int=dice.getrandbits(128))}"),
        properties={"region": Typed("string", "north"), "tenant": Typed("int", dice.randrange(50))},
        annotations=annotations,
        content_type="application/json",
    )
    row = letter_row(encode(message), "0f0c7a4e-c1a5-11f0-9d2b-0242ac110002", now)
    row.queue = dead_letter_queue(key)
    # As the last protocol of its message tells why it died.
    kind = dice.randrange(KINDS)
    row.fingerprint, row.exception_type = f"v1:{kind:016x}", f"shop.errors.Error{kind}"
    row.exception_text, row.place = f"order {dice.randrange(10**9)} has no currency", f"part{kind}.py:step"
    row.server_name, row.activation_uuid = dice.choice(places.servers).name, places.activation.pk
    row.agent_version, row.protocol_at = "2.4.1", now
    return row


def replay(places: Places, letters: Sequence[int]) -> None:
    """They left their queue by one job, and all were handled well; as long ago as retention wants it."""
    left = timezone.now() - LEFT_AGO
    job = ReplayJob.objects.create(
        setting=places.setting,
        setting_key=places.setting.key,
        action=Action.GIVE_BACK,
        scope="selection",
        state=JobState.DONE,
        total=len(letters),
        created_at=left,
        finished_at=left,
    )
    for number, begin in enumerate(range(0, len(letters), 500), start=1):
        some = letters[begin : begin + 500]
        piece = ReplaySlice.objects.create(
            job=job,
            number=number,
            first_letter_id=some[0],
            last_letter_id=some[-1],
            size=len(some),
            state=SliceState.CHECKED,
            tries=1,
            planned_at=left,
        )
        items = [
            ReplayItem(
                job=job,
                letter_id=letter,
                slice=piece,
                state=ItemState.GIVEN_BACK,
                state_at=left,
                outcome=Outcome.HANDLED,
                outcome_at=left,
            )
            for letter in some
        ]
        ReplayItem.objects.bulk_create(items)


def delete_bodies() -> None:
    """All letters have left their queue; then retention deletes what it deletes of them after 30 days."""
    now = timezone.now()
    DeadLetter.objects.filter(body_deleted_at=None).update(
        state=LetterState.GIVEN_BACK, state_at=now - LEFT_AGO
    )
    while True:
        run = run_retention_turn(now, every=timedelta(0), seconds=600)
        if run is None or run.problem:
            raise RuntimeError("retention did not end" if run is None else str(run.problem))
        if run.ended_at is not None:
            break
    left = DeadLetter.objects.filter(body_deleted_at=None).count()
    if left:
        raise RuntimeError(f"retention left the bodies of {left} letters")


def delete_replays() -> None:
    """They are measured by themselves."""
    ReplayJob.objects.all().delete()


# -- failures ------------------------------------------------------------------------------------------------


def take_protocols(places: Places, count: int) -> None:
    """As the intake takes them, counted."""
    server, spool, now = places.servers[0], uuid4(), timezone.now()
    run = RecordRun(places.setting.key, places.activation.pk, 1, server.name, places.setting.agent, "2.4.1")
    for first in range(0, count, BATCH):
        accept_batch(server, batch(run, spool, first, min(BATCH, count - first), places.dice), now)
    while fold(now):
        pass


def make_groups(places: Places, count: int) -> None:
    now = timezone.now()
    FailureGroup.objects.bulk_create(
        [
            FailureGroup(
                activation_uuid=UUID(int=places.dice.getrandbits(128)),
                setting_key=places.setting.key,
                server_name=places.servers[number % SERVERS].name,
                fingerprint=_fingerprint(number),
                exception_type=f"shop.errors.Error{number % KINDS}",
                place=f"part{number % KINDS}.py:step",
                headline=HEADLINE,
                agent_version="2.4.1",
                count=7,
                first_at=now,
                last_at=now + SPAN * number / count,
                latest=UUID(int=places.dice.getrandbits(128)),
            )
            for number in range(count)
        ],
        batch_size=500,
    )


def make_hours(places: Places, count: int) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    FingerprintHour.objects.bulk_create(
        [
            FingerprintHour(
                fingerprint=_fingerprint(number),
                setting_key=places.setting.key,
                hour=began + timedelta(hours=number // KINDS),
                count=7,
            )
            for number in range(count)
        ],
        batch_size=500,
    )


def _fingerprint(number: int) -> str:
    return f"v1:{number % KINDS * 0x9E3779B97F4A7C15 % 2**64:016x}"


# -- activations ---------------------------------------------------------------------------------------------


def make_activations(places: Places, count: int) -> None:
    """Each with one run, what its setting said, and the two rows of its history: begun and ended."""
    began, said = timezone.now() - SPAN, launched_with(places.setting)
    activations = Activation.objects.bulk_create(
        [
            Activation(
                setting=places.setting,
                number=number + 2,
                state="succeeded",
                well=True,
                cleared=True,
                ending="drained",
                trigger="schedule",
                started_at=began + SPAN * number / count,
                ended_at=began + SPAN * (number + 0.9) / count,
                last_epoch=1,
                launched_with=said,
                waiting_at_start=250,
                added_at_start=1000,
            )
            for number in range(count)
        ],
        batch_size=500,
    )
    _add_runs(places, activations, 0)
    StateChange.objects.bulk_create(
        [
            StateChange(
                setting=places.setting, activation=each, what="activation", old=old, new=new, at=at or began
            )
            for each in activations
            for old, new, at in (("", "running", each.started_at), ("running", "succeeded", each.ended_at))
        ],
        batch_size=500,
    )


def add_runs(places: Places, count: int) -> None:
    activations = Activation.objects.filter(number__gt=1).order_by("number")[:count]
    _add_runs(places, list(activations), 1)


def _add_runs(places: Places, activations: Sequence[Activation], shift: int) -> None:
    Run.objects.bulk_create(
        [
            Run(
                activation=each,
                server=places.servers[(each.number + shift) % SERVERS],
                epoch=1 + shift,
                wanted=False,
                state=RunPhase.FINISHED,
                created_at=each.started_at,
                reported_at=each.ended_at,
                closed_at=each.ended_at,
                handled=250,
                failed=3,
                stored_records=3,
                closing_records=3,
            )
            for each in activations
        ],
        batch_size=500,
    )
