"""Foreign dead-letter queues on the real broker: followed, and sorted into the settings' own."""

import json
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from broker.port import Message, Outgoing, Settle
from console.audit.models import AuditEntry
from console.operations.operation import perform
from console.operations.refusals import Refused
from contract.typed import Typed
from dlq.models import DeadLetter, LetterQueue
from dlq.queues import adoption
from dlq.queues.operations import FollowQueue, UnfollowQueue
from dlq.reasons import STILL_DIFFERS
from tests.dlq.foreign_letters import foreign_queue, kill_abroad
from tests.dlq.processes import Processes
from tests.dlq.stage import Stage
from tests.dlq.sweeping import sweep_until
from tests.web import reports

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def of_the_stage(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlq.queues.operations.management", lambda: stage.management)


def follow(queue: str, note: str = "") -> LetterQueue:
    row: LetterQueue = perform(FollowQueue, LetterQueue(queue=queue), None, reason=note).made
    return row


def states(queue: str) -> Counter[str]:
    return Counter(DeadLetter.objects.filter(queue=queue).values_list("state", flat=True))


def test_a_named_queue_is_walked_and_a_forgotten_one_is_gone(stage: Stage, busy_sweep: None) -> None:
    key = stage.key()
    setting = reports.setting(key)
    queue = foreign_queue(stage, key)
    kill_abroad(stage, key, 3)
    row = follow(queue, "of the old house")
    assert (row.address, row.foreign) == (queue, True)
    sweep_until(stage, lambda: states(queue) == {"dead": 3})
    letter = DeadLetter.objects.filter(queue=queue).earliest("pk")
    assert (letter.setting, letter.orig_queue, letter.message_key) == (setting, key, f"{key}-0")
    assert not LetterQueue.objects.get(queue=queue).problem
    LetterQueue.objects.filter(queue=queue).update(problem=STILL_DIFFERS())
    sweep_until(stage, lambda: not LetterQueue.objects.get(queue=queue).problem)

    perform(UnfollowQueue, row, None)
    sweep_until(stage, lambda: not LetterQueue.objects.filter(queue=queue).exists())
    assert states(queue) == {"gone": 3} and stage.count(queue) == 3


def test_one_message_that_died_in_two_subscriptions_is_two_letters(stage: Stage, busy_sweep: None) -> None:
    """Both have the same id of before; each stays the one that it is when the other has gone."""
    first = stage.key()
    second = f"{first}-too"
    stage.add(second, f"t.{first}")
    queue = foreign_queue(stage, first)
    stage.publish(f"t.{first}", Message(body=Typed("string", "x"), message_id=Typed("string", "twice")))
    for key in (first, second):
        stage.consume(key, 1, Settle.REJECT, address=f"t.{first}")
    follow(queue)
    sweep_until(stage, lambda: states(queue) == {"dead": 2})
    of_each = {letter.orig_queue: letter for letter in DeadLetter.objects.filter(queue=queue)}
    assert set(of_each) == {first, second}
    stage.management.call(f"queue.{queue}", "removeMessages", f"_AMQ_ORIG_QUEUE = '{first}'")
    sweep_until(stage, lambda: states(queue) == {"dead": 1, "gone": 1})
    of_each[second].refresh_from_db()
    assert of_each[second].state == "dead"


def test_letters_without_an_id_and_of_the_same_content_are_as_many_as_they_are(
    stage: Stage, busy_sweep: None
) -> None:
    queue = foreign_queue(stage)
    strays = [Outgoing(queue, Message(body=Typed("string", "stray"))) for _ in range(3)]
    stage.publisher.publish(strays)
    follow(queue)
    sweep_until(stage, lambda: states(queue) == {"dead": 3})
    assert all(letter.orig_message_id < 0 for letter in DeadLetter.objects.filter(queue=queue))


def test_what_is_no_dead_letter_queue_of_others_is_refused(stage: Stage) -> None:
    key = stage.key()
    reports.setting(key)
    for queue, code in (
        (key, "subscription"),
        (f"DLQ.{key}", "own"),
        ("DLQ.feed", "own"),
        ("nowhere", "unknown"),
    ):
        with pytest.raises(Refused) as refused:
            follow(queue)
        assert refused.value.code == code
    assert not LetterQueue.objects.filter(foreign=True).exists()


def adopted(queue: str, *options: str) -> dict[str, object]:
    told = StringIO()
    call_command("adopt_dead_letters", queue, "--json", *options, stdout=told)
    found: dict[str, object] = json.loads(told.getvalue())
    return found


@pytest.fixture
def own_broker(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command speaks to the broker of the test."""
    command = "dlq.management.commands.adopt_dead_letters"
    monkeypatch.setattr(f"{command}.management", lambda: stage.management)
    monkeypatch.setattr(f"{command}.AmqpBrowser", lambda account: stage.queues.browser)


def test_letters_are_sorted_by_where_they_died(
    stage: Stage, own_broker: None, busy_sweep: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adoption, "SLICE", 2)
    one, two, nobody = stage.key(), stage.key(), stage.key()
    for key in (one, two):
        reports.setting(key)
    queue = foreign_queue(stage, one, two, nobody)
    for key, count in ((one, 5), (nobody, 2), (two, 1)):
        kill_abroad(stage, key, count)
    follow(queue)
    sweep_until(stage, lambda: states(queue) == {"dead": 8})

    dry = adopted(queue)
    assert (dry["letters"], dry["go"], stage.count(queue)) == (8, False, 8)
    assert not AuditEntry.objects.filter(action="foreign_queue.adopt").exists()
    done = adopted(queue, "--go", "--reason", "the old house is closed")
    going = [
        {"from": one, "to": f"DLQ.{one}", "letters": 5, "moved": 5},
        {"from": two, "to": f"DLQ.{two}", "letters": 1, "moved": 1},
    ]
    assert done["going"] == going
    assert done["staying"] == [{"from": nobody, "letters": 2, "why": "no launch setting uses this queue"}]
    assert [stage.count(name) for name in (queue, f"DLQ.{one}", f"DLQ.{two}")] == [2, 5, 1]
    assert stage.count("DLQ.feed") == 0
    entry = AuditEntry.objects.get(action="foreign_queue.adopt")
    assert (entry.target, entry.counts) == (f"queue:{queue}", {"going": 6, "staying": 2})

    sweep_until(
        stage, lambda: states(queue) == {"dead": 2, "gone": 6} and states(f"DLQ.{one}") == {"dead": 5}
    )
    letter = DeadLetter.objects.filter(queue=f"DLQ.{one}").earliest("pk")
    assert (letter.setting_key, letter.orig_queue, letter.chapter, letter.message_key) == (
        one,
        queue,
        1,
        f"{one}-0",
    )
    assert adopted(queue, "--go")["going"] == []


@pytest.mark.kill
@pytest.mark.parametrize("place", ["adopt: begun", "adopt: moved a slice"])
def test_a_run_that_was_killed_is_repeated(stage: Stage, tmp_path: Path, place: str) -> None:
    processes = Processes(tmp_path, stage)
    key = stage.key()
    processes.python(MADE.format(key))
    queue = foreign_queue(stage, key)
    kill_abroad(stage, key, 3)
    processes.crashes(place, "adopt_dead_letters", queue, "--go")
    processes.manage("adopt_dead_letters", queue, "--go")
    assert [stage.count(queue), stage.count(f"DLQ.{key}")] == [0, 3]
    assert sorted(stage.ids(f"DLQ.{key}", "MA.DLA")) == [f"{key}-{n}" for n in range(3)]


MADE = """
from agents.models import Destination, LaunchSetting, Pool
LaunchSetting.objects.create(key='{0}', agent='a', destination=Destination.objects.create(name='t.{0}'),
    pool=Pool.objects.create(name='p'))
"""
