"""The index is brought to what the queues hold, by walks and by the sweep that begins them."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from broker.port import Message, Settle
from contract.typed import Typed
from dlq.index.sweep import Sweep
from dlq.index.walk import Walk, Walked, WalkIncomplete
from dlq.models import DeadLetter, LetterContent, LetterQueue
from dlq.search import words
from retention.worker import run_retention_turn
from tests.dlq.processes import Processes
from tests.dlq.stage import DLA, Stage
from tests.dlq.sweeping import sweep_until
from tests.web import reports

pytestmark = pytest.mark.django_db


def kill_messages(stage: Stage, key: str, count: int, first: int = 0, *, into: str = "") -> None:
    queue = into or f"DLQ.{key}"
    before = stage.count(queue)
    bodies = [f"{key}-{n}" for n in range(first, first + count)]
    stage.publish(
        f"t.{key}",
        *[Message(body=Typed("string", body), message_id=Typed("string", body)) for body in bodies],
    )
    stage.consume(key, count, Settle.REJECT)
    stage.until_dead(queue, before + count)


def walk(stage: Stage, key: str) -> Walked:
    one = Walk(f"DLQ.{key}", DLA, stage.management, stage.queues.browser, timezone.now())
    while one.step(timezone.now()):
        pass
    return one.done


def states(key: str) -> Counter[str]:
    return Counter(DeadLetter.objects.filter(queue=f"DLQ.{key}").values_list("state", flat=True))


def test_a_walk_stores_what_is_unknown_and_marks_what_is_gone(stage: Stage) -> None:
    key = stage.key()
    setting = reports.setting(key)
    kill_messages(stage, key, 700)
    assert walk(stage, key) == Walked(seen=700, added=700, returned=0, gone=0)
    assert walk(stage, key) == Walked(seen=700, added=0, returned=0, gone=0)
    row = DeadLetter.objects.filter(queue=f"DLQ.{key}").first()
    assert row is not None and (row.setting, row.setting_key, row.chapter) == (setting, key, 1)
    stage.management.call(f"queue.DLQ.{key}", "removeAllMessages")
    kill_messages(stage, key, 3, first=700)
    assert walk(stage, key) == Walked(seen=3, added=3, returned=0, gone=700)
    assert states(key) == {"gone": 700, "dead": 3}


def test_a_letter_that_was_taken_for_gone_is_dead_again_when_it_is_seen(stage: Stage) -> None:
    key = stage.key()
    kill_messages(stage, key, 2)
    walk(stage, key)
    DeadLetter.objects.filter(queue=f"DLQ.{key}").update(state="gone")
    assert walk(stage, key) == Walked(seen=2, added=0, returned=2, gone=0)
    assert states(key) == {"dead": 2}


def test_a_letter_that_is_there_again_gets_its_body_again(stage: Stage, settings: Any) -> None:
    settings.MA_KEEP_DEAD_LETTER_BODIES_DAYS = 30
    key = stage.key()
    kill_messages(stage, key, 2)
    walk(stage, key)
    rows = DeadLetter.objects.filter(queue=f"DLQ.{key}")
    whole = {row.pk: (bytes(row.encoded), row.body_text) for row in rows}
    rows.update(state="gone", state_at=timezone.now() - timedelta(days=40))
    run = run_retention_turn(timezone.now(), every=timedelta(0))
    assert run is not None and run.state == "done"
    assert all(not row.encoded and not row.body_text for row in rows.all())
    assert numbers_with(f"{key}-0") == []

    assert walk(stage, key) == Walked(seen=2, added=0, returned=2, gone=0)
    assert {row.pk: (bytes(row.encoded), row.body_text) for row in rows.all()} == whole
    assert states(key) == {"dead": 2} and len(numbers_with(f"{key}-0")) == 1
    # What retention left without a body in the moment in which it came back.
    rows.update(body_deleted_at=timezone.now())
    LetterContent.objects.filter(letter__in=rows.all()).update(encoded=b"", body_text="")
    assert walk(stage, key) == Walked(seen=2, added=0, returned=0, gone=0)
    assert {row.pk: (bytes(row.encoded), row.body_text) for row in rows.all()} == whole


def numbers_with(text: str) -> list[int]:
    return words.INDEX.numbers(words.wanted_words(text), above=-1, below=2**63 - 1, most=10)


def test_a_walk_that_saw_less_than_the_broker_counts_marks_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = stage.key()
    kill_messages(stage, key, 2)
    walk(stage, key)
    monkeypatch.setattr("dlq.index.walk.message_count", lambda asked, queue: 3)
    with pytest.raises(WalkIncomplete):
        walk(stage, key)
    assert states(key) == {"dead": 2}


def test_a_letter_in_another_queue_is_indexed_where_it_lies(stage: Stage) -> None:
    """Moved to the bin it has a new id, and is of the same chapter."""
    key = stage.key()
    reports.setting(key)
    kill_messages(stage, key, 1)
    walk(stage, key)
    stage.management.call(f"queue.DLQ.{key}", "moveMessages", "", "DLQ.bin")
    one = Walk("DLQ.bin", DLA, stage.management, stage.queues.browser, timezone.now())
    while one.step(timezone.now()):
        pass
    found = {row.queue: row for row in DeadLetter.objects.filter(message_key=f"{key}-0")}
    before, after = found[f"DLQ.{key}"], found["DLQ.bin"]
    assert (after.setting_key, after.orig_queue, after.chapter) == (key, f"DLQ.{key}", 1)
    assert after.orig_message_id > before.orig_message_id


@pytest.mark.usefixtures("busy_sweep")
def test_the_sweep_finds_what_the_feed_never_brought_and_what_is_long_gone(stage: Stage) -> None:
    key = stage.key()
    kill_messages(stage, key, 3)
    stage.drain_feed()
    sweep_until(stage, lambda: states(key) == {"dead": 3})
    stage.management.call(f"queue.DLQ.{key}", "removeAllMessages")
    sweep_until(stage, lambda: states(key) == {"gone": 3})
    row = LetterQueue.objects.get(queue=f"DLQ.{key}")
    assert row.walked_at is not None and row.walk_started_at is None


@pytest.mark.usefixtures("busy_sweep")
def test_the_sweep_walks_nothing_while_the_feed_has_letters(stage: Stage) -> None:
    key = stage.key()
    kill_messages(stage, key, 2)
    one = Sweep(stage.management, stage.queues.browser, DLA)
    for _ in range(5):
        assert not one.step(timezone.now(), idle=True)
    row = LetterQueue.objects.get(queue=f"DLQ.{key}")
    assert (row.broker_count, row.indexed, row.differs_since) == (2, 0, None)


@pytest.mark.usefixtures("busy_sweep")
def test_letters_of_a_queue_that_was_destroyed_are_gone(stage: Stage) -> None:
    key = stage.key()
    kill_messages(stage, key, 2)
    stage.drain_feed()
    sweep_until(stage, lambda: states(key) == {"dead": 2})
    stage.management.call("broker", "destroyQueue", f"DLQ.{key}")
    sweep_until(stage, lambda: states(key) == {"gone": 2})
    assert not LetterQueue.objects.filter(queue=f"DLQ.{key}").exists()


def test_a_feed_with_too_many_letters_is_drained_and_the_walks_bring_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But a letter that no queue took is rescued: the feed is all that has it."""
    key, forgotten = stage.key(), stage.key()
    stage.management.call("broker", "destroyQueue", f"DLQ.{forgotten}")
    LetterQueue.objects.create(queue=f"DLQ.{key}", walked_at=timezone.now())
    kill_messages(stage, key, 4)
    kill_messages(stage, forgotten, 1, into="DLQ.feed")
    monkeypatch.setattr("dlq.index.feed.MOST_UNREAD", 1)
    stage.follow(lambda: DeadLetter.objects.filter(setting_key=forgotten).exists())
    assert stage.feed_is_empty()
    assert states(key) == {}
    assert DeadLetter.objects.get(setting_key=forgotten).queue == "DLQ.unknown"
    assert LetterQueue.objects.get(queue=f"DLQ.{key}").walked_at is None


WALK = "from dlq.index.walk import index_queue; index_queue('DLQ.{}')"


@pytest.mark.kill
@pytest.mark.parametrize("place", ["walk: stored a piece", "walk: marked a page"])
def test_a_walk_that_was_killed_is_done_by_the_next_one(stage: Stage, tmp_path: Path, place: str) -> None:
    processes = Processes(tmp_path, stage)
    key = stage.key()
    kill_messages(stage, key, 2)
    processes.python(WALK.format(key))
    stage.management.call(f"queue.DLQ.{key}", "removeMessages", "")
    kill_messages(stage, key, 1, first=2)
    processes.crashes(place, "shell", "-c", WALK.format(key))
    processes.python(WALK.format(key))
    told = processes.python(
        "from dlq.models import DeadLetter; "
        f"print(sorted(DeadLetter.objects.filter(queue='DLQ.{key}').values_list('state', flat=True)))"
    )
    assert told.splitlines()[-1] == "['dead', 'gone', 'gone']"
