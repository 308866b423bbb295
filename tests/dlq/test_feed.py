"""Every dead letter becomes one row, whatever it is made of and whatever breaks in between."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from django.db import OperationalError

from broker.amqp.codec import decode
from broker.amqp.publisher import AmqpPublisher
from broker.management.desired_topology import setting_topology
from broker.management.topology import apply, update_queue
from broker.port import Message, Outgoing, Settle
from console.processes import ProcessHeartbeat
from contract.typed import Typed
from dlq.index import store as index
from dlq.models import DeadLetter
from failures.intake.batch import accept_batch
from tests.dlq.processes import Processes
from tests.dlq.stage import DLA, ONCE, Stage
from tests.web import reports

pytestmark = pytest.mark.django_db


def text(body: str, message_id: str = "") -> Message:
    return Message(body=Typed("string", body), message_id=Typed("string", message_id) if message_id else None)


def kill_messages(stage: Stage, key: str, count: int) -> None:
    stage.publish(f"t.{key}", *[text(f"body {n}", f"{key}-{n}") for n in range(count)])
    stage.consume(key, count, Settle.REJECT)


def rows(key: str) -> list[DeadLetter]:
    return list(DeadLetter.objects.filter(setting_key=key).order_by("pk"))


def test_a_letter_becomes_a_row_with_what_is_known_of_it(stage: Stage) -> None:
    key = stage.key()
    setting = reports.setting(key)
    kill_messages(stage, key, 1)
    stage.follow(lambda: bool(rows(key)))
    (row,) = rows(key)
    assert (row.queue, row.address, row.orig_queue, row.setting) == (f"DLQ.{key}", f"t.{key}", key, setting)
    assert (row.message_key, row.body_text, row.state, row.chapter) == (f"{key}-0", "body 0", "dead", 1)
    assert row.node_id == stage.queues.node_id() and row.orig_message_id in [
        *stage.queues.numbers(f"DLQ.{key}")
    ]
    assert stage.feed_is_empty()
    assert ProcessHeartbeat.objects.filter(process="feed").exists()


def test_many_letters_come_in_batches_and_all_once(stage: Stage) -> None:
    key = stage.key()
    kill_messages(stage, key, 450)
    stage.follow(lambda: len(rows(key)) == 450)
    assert len({row.orig_message_id for row in rows(key)}) == 450
    assert stage.count(f"DLQ.{key}") == 450


def test_a_failed_commit_accepts_nothing_and_the_next_step_stores_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = stage.key()
    kill_messages(stage, key, 1)
    store, calls = index.store, []

    def away_once(found: Sequence[DeadLetter], now: object) -> list[DeadLetter]:
        calls.append(len(found))
        if len(calls) == 1:
            raise OperationalError("database is away")
        return store(found, now)  # type: ignore[arg-type]

    monkeypatch.setattr("dlq.index.feed.store.store", away_once)
    monkeypatch.setattr("dlq.index.feed.PAUSE", 0.0)
    stage.follow(lambda: bool(rows(key)))
    assert calls == [1, 1] and stage.feed_is_empty()


def test_the_same_letter_again_is_the_same_row(stage: Stage) -> None:
    key = stage.key()
    kill_messages(stage, key, 1)
    stage.follow(lambda: bool(rows(key)))
    (row,) = rows(key)
    again = DeadLetter(
        **{f.attname: getattr(row, f.attname) for f in DeadLetter._meta.concrete_fields if f.name != "id"}
    )
    assert index.store([again, again], row.seen_at) == []
    assert len(rows(key)) == 1


def test_a_large_body_is_kept_as_its_head_with_types_and_properties(stage: Stage) -> None:
    key = stage.key()
    properties = {"n": Typed("ulong", 2**64 - 1)}
    stage.publish(f"t.{key}", Message(body=Typed("string", "ж" * 3_000_000), properties=properties))
    stage.publish(f"t.{key}", Message(body=Typed("string", "y" * 1_000_000)))
    stage.consume(key, 2, Settle.REJECT)
    stage.follow(lambda: len(rows(key)) == 2)
    large, whole = sorted(rows(key), key=lambda row: -row.size)
    assert (large.truncated, large.size, whole.truncated) == (True, 6_000_000, False)
    kept = decode(bytes(large.encoded))
    assert kept.body == Typed("string", "ж" * 65_536) and kept.properties["n"] == properties["n"]
    assert decode(bytes(whole.encoded)).body.value == "y" * 1_000_000


def test_hostile_text_breaks_no_row(stage: Stage) -> None:
    key = stage.key()
    hostile = Message(
        body=Typed("string", "nul \0 and bidi \u202e"),
        properties={
            "a\0b": Typed("string", "x\0y"),
            "f": Typed("double", float("nan")),
            "g": Typed("float", float("inf")),
        },
        correlation_id=Typed("string", "c\0d"),
    )
    stage.publish(f"t.{key}", hostile)
    stage.consume(key, 1, Settle.REJECT)
    stage.follow(lambda: bool(rows(key)))
    (row,) = rows(key)
    assert "\0" not in row.body_text + row.correlation_id + str(row.properties)
    assert decode(bytes(row.encoded)).body.value == hostile.body.value


def test_the_protocol_explains_the_letter_whichever_comes_first(stage: Stage) -> None:
    key = stage.key()
    run = reports.run(reports.setting(key), reports.server())
    of, spool = reports.run_of(run), reports.Spool()
    kill_messages(stage, key, 2)
    about = [reports.message(f"{key}-{n}", attempt=4) for n in range(2)]
    accept_batch(run.server, spool.batch(reports.protocol(of, about[0], exception_type="Early")), reports.AT)
    stage.follow(lambda: len(rows(key)) == 2)
    assert [row.exception_type for row in sorted(rows(key), key=lambda row: row.message_key)] == ["Early", ""]
    accept_batch(run.server, spool.batch(reports.protocol(of, about[1], exception_type="Late")), reports.AT)
    found = sorted(rows(key), key=lambda row: row.message_key)
    assert [(row.exception_type, row.delivery_count) for row in found] == [("Early", 4), ("Late", 4)]


def test_a_letter_whose_own_queue_is_missing_is_sent_to_the_catch_all_with_its_types(stage: Stage) -> None:
    key = stage.key()
    stage.management.call("broker", "destroyQueue", f"DLQ.{key}")
    before = stage.count("DLQ.unknown")
    stage.publish(f"t.{key}", Message(body=Typed("map", ((Typed("string", "a"), Typed("short", 1)),))))
    stage.consume(key, 1, Settle.REJECT)
    stage.follow(lambda: bool(rows(key)))
    (row,) = rows(key)
    assert row.queue == "DLQ.unknown"
    assert stage.count("DLQ.unknown") == before + 1
    browsed = [each.message for each in stage.queues.browser.browse("MA.DLA", "DLQ.unknown", limit=1000)]
    assert any(found and found.body == decode(bytes(row.encoded)).body for found in browsed)
    assert stage.feed_is_empty()


def test_a_letter_of_a_stomp_client_whose_own_queue_is_missing_is_in_the_catch_all_too(stage: Stage) -> None:
    """Such a letter says in properties where it died, and so does that of a Core client."""
    key = stage.key()
    stage.management.call("broker", "destroyQueue", f"DLQ.{key}")
    before = stage.count("DLQ.unknown")
    stage.stomp.publish([Outgoing(f"t.{key}", Message(body=Typed("string", f"only copy of {key}")))])
    stage.consume(key, 1, Settle.REJECT)
    stage.follow(lambda: bool(rows(key)))
    assert [row.queue for row in rows(key)] == ["DLQ.unknown"]
    assert stage.feed_is_empty()
    assert stage.count("DLQ.unknown") == before + 1
    browsed = [each.message for each in stage.queues.browser.browse("MA.DLA", "DLQ.unknown", limit=1000)]
    assert [found.body.value for found in browsed if found and key in str(found.body.value)] == [
        f"only copy of {key}"
    ]


def test_what_dies_ahead_is_kept_where_the_broker_has_forgotten_a_changed_filter(stage: Stage) -> None:
    """A queue that was made before there were such holds has its first filter again after a restart."""
    key = stage.key()
    apply(stage.management, setting_topology(key, f"t.{key}", ONCE, False, DLA, held=True))
    update_queue(stage.management, f"DLQ.{key}", DLA, f"_AMQ_ORIG_QUEUE = '{key}'", False)
    before = stage.count("DLQ.unknown")
    stage.publish(f"t.{key}", text("first"))
    assert stage.management.call(f"queue.{key}", "moveMessages", 100, "", f"{key}.ahead", False, 1) == 1
    stage.consume(f"{key}.ahead", 1, Settle.REJECT, f"t.{key}")
    stage.follow(lambda: bool(rows(key)))
    assert [row.queue for row in rows(key)] == ["DLQ.unknown"]
    assert [stage.count(f"DLQ.{key}"), stage.count("DLQ.unknown")] == [0, before + 1]


def test_what_nobody_knows_is_left_where_the_catch_all_put_it(stage: Stage) -> None:
    """Somebody sends to the dead-letter address itself: no origin, no id."""
    before = stage.count("DLQ.unknown")
    publisher = AmqpPublisher(stage.account("ops", "amqp"))
    publisher.publish([Outgoing("MA.DLA::DLQ.feed", text("stray"))])
    publisher.close()
    stage.follow(lambda: DeadLetter.objects.filter(content__body_text="stray").exists())
    row = DeadLetter.objects.get(content__body_text="stray")
    assert row.queue == "DLQ.unknown" and row.orig_message_id < 0
    assert stage.count("DLQ.unknown") == before


def test_a_letter_whose_text_no_filter_can_read_is_kept_in_the_queue_of_the_unknown(stage: Stage) -> None:
    """A property that is no good Unicode, as other clients may send it: only the feed gets such a letter."""
    key = stage.key()
    before = stage.count("DLQ.unknown")
    odd = Message(body=Typed("string", "odd"), properties={"text": Typed("string", "\ud83d half a smile")})
    stage.publish_unchecked(f"t.{key}", odd)
    stage.consume(key, 1, Settle.REJECT)
    stage.follow(lambda: bool(rows(key)))
    (row,) = rows(key)
    assert row.queue == "DLQ.unknown"
    assert [stage.count(f"DLQ.{key}"), stage.count("DLQ.unknown")] == [0, before + 1]
    assert stage.feed_is_empty()


KILLED_BEFORE_THE_ACCEPT = """
import os, signal
from broker.amqp.consumer import AmqpConsumer
AmqpConsumer.settle = lambda self, settlements: os.kill(os.getpid(), signal.SIGKILL)
from django.core.management import call_command
call_command("follow_dead_letters")
"""


@pytest.mark.kill
def test_a_feed_killed_between_commit_and_accept_leaves_one_row_each(stage: Stage, tmp_path: Path) -> None:
    processes = Processes(tmp_path, stage)
    key = stage.key()
    kill_messages(stage, key, 3)
    processes.dies(KILLED_BEFORE_THE_ACCEPT)
    assert processes.letters(key) >= 1 and stage.count("DLQ.feed") == 3
    processes.follow_feed()
    assert processes.letters(key) == 3
    assert stage.feed_is_empty()
