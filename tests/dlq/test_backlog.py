"""A feed that stood still: what it brings late, what is long gone, and what the pages say meanwhile."""

from collections import Counter

import pytest
from django.utils import timezone

from broker.port import Message, Settle
from contract.typed import Typed
from dlq.index import queries
from dlq.index.sweep import Sweep
from dlq.models import DeadLetter, LetterQueue
from tests.dlq.stage import DLA, Stage
from tests.dlq.sweeping import sweep_until
from tests.web import reports

pytestmark = pytest.mark.django_db


def kill_messages(stage: Stage, key: str, count: int, first: int = 0) -> None:
    names = [f"{key}-{n}" for n in range(first, first + count)]
    stage.publish(
        f"t.{key}", *[Message(body=Typed("string", name), message_id=Typed("string", name)) for name in names]
    )
    stage.consume(key, count, Settle.REJECT)


def states(key: str) -> Counter[str]:
    return Counter(DeadLetter.objects.filter(queue=f"DLQ.{key}").values_list("state", flat=True))


def test_a_late_feed_brings_letters_that_are_gone_and_the_sweep_says_so(
    stage: Stage, busy_sweep: None
) -> None:
    """Meanwhile some letters were indexed by a walk, some were removed, some died later: each is one row."""
    key = stage.key()
    reports.setting(key)
    kill_messages(stage, key, 300)
    stage.until_dead(f"DLQ.{key}", 300)
    stage.drain_feed()
    sweep_until(stage, lambda: states(key) == {"dead": 300})
    kill_messages(stage, key, 300, first=300)
    stage.until_dead(f"DLQ.{key}", 600)
    stage.management.call(f"queue.DLQ.{key}", "removeAllMessages")
    kill_messages(stage, key, 40, first=600)
    stage.follow(lambda: DeadLetter.objects.filter(queue=f"DLQ.{key}").count() == 640)
    assert states(key) == {"dead": 640} and stage.feed_is_empty()
    sweep_until(stage, lambda: states(key) == {"dead": 40, "gone": 600})
    sweep_until(stage, lambda: queries.state_of(f"DLQ.{key}").words() == "broker 40 · index 40")
    numbers = Counter(DeadLetter.objects.filter(queue=f"DLQ.{key}").values_list("orig_message_id", flat=True))
    assert len(numbers) == 640


def test_what_the_pages_say_is_true_before_while_and_after(stage: Stage, busy_sweep: None) -> None:
    key = stage.key()
    reports.setting(key)
    queue = f"DLQ.{key}"
    kill_messages(stage, key, 5)
    stage.until_dead(f"DLQ.{key}", 5)
    one = Sweep(stage.management, stage.queues.browser, DLA)
    assert queries.state_of(queue).words() == ""
    one.step(timezone.now(), idle=True)
    assert queries.state_of(queue).words() == "broker 5 · index 0 · catching up"
    stage.follow(lambda: states(key) == {"dead": 5})
    assert stage.feed_is_empty()
    sweep_until(stage, lambda: queries.state_of(queue).words() == "broker 5 · index 5")
    stage.management.call(f"queue.{queue}", "removeAllMessages")
    one.step(timezone.now(), idle=False)
    assert queries.state_of(queue).words() == "broker 0 · index 5 · catching up"
    sweep_until(stage, lambda: queries.state_of(queue).words() == "broker 0 · index 0")
    assert states(key) == {"gone": 5}


def test_counts_that_hold_are_said_to_be_of_now(
    stage: Stage, busy_sweep: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlq.index.sweep.STILL_EVERY", 0.0)
    key = stage.key()
    queue = LetterQueue.objects.filter(queue=f"DLQ.{key}")
    sweep_until(stage, queue.exists)
    before = queue.get()
    sweep_until(stage, queue.filter(counted_at__gt=before.counted_at).exists)
    assert queue.get().walked_at == before.walked_at
