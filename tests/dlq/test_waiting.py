"""What is done with waiting messages, on the real broker: each message once, and told as it is there."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from broker.amqp.codec import decode
from broker.amqp.consumer import AmqpConsumer
from broker.management.queues import queue_figures
from broker.port import BrokerUnavailable, Message, Settle
from console.audit.models import AuditEntry
from console.jobs.engine import held, run
from console.operations.operation import perform
from console.operations.refusals import Refused
from console.reasons import NO_REASON, said
from contract.names import hold_queue
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from dlq import tasks
from dlq.dead_letters.masks import Masks
from dlq.models import DeadLetter
from dlq.models.message_action import MessageResult, WaitingAction, WaitingState
from dlq.subscriptions import requests
from dlq.subscriptions import worker as subscriptions_worker
from dlq.subscriptions.operations import BY_KIND, CancelAction
from dlq.subscriptions.queries import Heads
from dlq.subscriptions.requests import Selection, listed_messages
from ma_site.tasks import start_jobs
from tests.broker.houses import eventually
from tests.dlq.jobs import actions, begun, carry_out, replays, run_waiting, taken
from tests.dlq.stage import Seen, Stage
from tests.web import reports

pytestmark = pytest.mark.django_db
HOURS = RedeliveryPolicy(max_attempts=5, delay=3_600_000)


class Scene:
    """A setting with `waiting` messages, and `delayed` ones before them."""

    def __init__(self, stage: Stage, *, waiting: int = 0, delayed: int = 0) -> None:
        self.stage = stage
        self.key = stage.key("w")
        stage.add(self.key, f"t.{self.key}", HOURS)
        self.setting = reports.setting(self.key)
        self.person = reports.person(f"operator-{self.key}", "dlq.handle_waiting")
        self.publish(delayed, "d")
        if delayed:
            stage.consume(self.key, delayed, Settle.FAIL)
        eventually(lambda: self.figures().scheduled == delayed)
        self.publish(waiting, "w")
        eventually(lambda: self.figures().messages == waiting + delayed)

    def publish(self, count: int, prefix: str) -> None:
        names = [f"{self.key}-{prefix}-{n}" for n in range(count)]
        messages = [Message(body=Typed("string", name), message_id=Typed("string", name)) for name in names]
        self.stage.publish(f"t.{self.key}", *messages)

    def figures(self) -> Any:
        return queue_figures(self.stage.management, self.key, f"t.{self.key}")

    def held(self) -> int:
        return self.stage.count(hold_queue(self.key))

    def numbers(self, part: str) -> list[int]:
        found = listed_messages(self.stage.management, self.key, part)
        assert found is not None
        return [message.number for message in found]

    def ask(
        self, kind: str, part: str, numbers: list[int] | None = None, reason: str = "to look at it"
    ) -> WaitingAction:
        chosen = Selection(part, numbers)
        done = perform(BY_KIND[kind], self.setting, self.person, chosen=chosen, reason=reason)
        action: WaitingAction = done.made
        return action

    def run(self, action: WaitingAction) -> WaitingAction:
        carry_out(actions(self.stage.queues), action)
        action.refresh_from_db()
        return action

    def do(self, kind: str, part: str, numbers: list[int] | None = None) -> WaitingAction:
        return self.run(self.ask(kind, part, numbers))


@pytest.fixture(autouse=True)
def on_stage(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The broker of the stage; what would have been sent to a worker."""
    sent: list[str] = []
    monkeypatch.setattr(requests, "management", lambda: stage.management)
    monkeypatch.setattr("console.jobs.engine.send", lambda task, kind, action, **_: sent.append(action))
    return sent


def test_chosen_delayed_messages_are_tried_now_and_the_others_wait_on(stage: Stage) -> None:
    scene = Scene(stage, delayed=3)
    chosen = scene.numbers("delayed")[:2]
    action = scene.do("try_now", "delayed", chosen)
    assert (action.state, action.counts) == (WaitingState.DONE, {"done": 2})
    assert scene.figures().scheduled == 1
    assert sorted(scene.numbers("waiting")) == sorted(chosen)


def test_all_delayed_messages_are_tried_now_at_once_where_they_are_many(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.management.waiting_messages.LISTED", 2)
    scene = Scene(stage, delayed=4)
    with pytest.raises(Refused) as refused:
        scene.ask("hold", "delayed")
    assert refused.value.code == "too_many_delayed"
    action = scene.do("try_now", "delayed")
    assert (action.whole, action.state, action.counts) == (True, WaitingState.DONE, {"done": 4, "stayed": 0})
    assert scene.figures().scheduled == 0


def test_what_is_sent_to_the_dead_letters_is_a_letter_of_the_setting_with_its_story(stage: Stage) -> None:
    scene = Scene(stage, waiting=2, delayed=1)
    numbers = [scene.numbers("waiting")[0], *scene.numbers("delayed")]
    one = scene.ask("to_dlq", "waiting", numbers[:1])
    run(actions(stage.queues), one.pk, timezone.now())
    one.refresh_from_db()
    assert (one.state, one.wait_reason) == (WaitingState.RUNNING, "index")
    WaitingAction.objects.update(lease_until=None)
    letters = DeadLetter.objects.filter(setting_key=scene.key)
    stage.follow(lambda: letters.count() == 1)
    assert scene.run(one).counts == {"done": 1}
    two = scene.ask("to_dlq", "delayed", numbers[1:])
    worker = actions(stage.queues)
    mine = taken(worker, two)
    worker.step(mine)
    stage.follow(lambda: letters.count() == 2)
    mine.release()
    assert scene.run(two).counts == {"done": 1}
    assert (stage.count(f"DLQ.{scene.key}"), scene.figures().messages) == (2, 1)
    assert sorted(letters.values_list("orig_message_id", flat=True)) == sorted(numbers)
    for action, letter in (
        (one, letters.get(orig_message_id=numbers[0])),
        (two, letters.get(orig_message_id=numbers[1])),
    ):
        item = action.items.get()
        assert (item.message_key, item.number) == (letter.message_key, letter.orig_message_id)


def test_messages_are_held_back_and_released_to_their_subscription_alone(stage: Stage) -> None:
    scene = Scene(stage, waiting=3, delayed=1)
    other = stage.key("other")
    stage.add(f"{other}-x", f"t.{scene.key}")
    first = scene.do("hold", "waiting", scene.numbers("waiting")[1:])
    second = scene.do("hold", "delayed")
    assert (first.counts, second.counts) == ({"done": 2}, {"done": 1})
    assert (scene.figures().messages, scene.held()) == (1, 3)
    back = scene.do("release", "held", scene.numbers("held")[:1])
    assert (back.counts, scene.figures().messages, scene.held()) == ({"done": 1}, 2, 2)
    rest = scene.do("release", "held")
    assert (rest.counts, scene.figures().messages, scene.held()) == ({"done": 2}, 4, 0)
    assert stage.count(f"{other}-x") == 0
    assert len(set(stage.ids(scene.key, f"t.{scene.key}"))) == 4


def test_all_that_wait_are_held_in_slices_and_no_more_than_there_were(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions_worker, "SLICE", 4)
    scene = Scene(stage, waiting=10)
    action = scene.ask("hold", "waiting")
    scene.publish(2, "later")
    scene.run(action)
    assert (action.total, action.counts) == (10, {"done": 10})
    assert (scene.figures().messages, scene.held()) == (2, 10)


def test_an_action_that_is_stopped_leaves_the_rest_where_it_was(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions_worker, "SLICE", 4)
    scene = Scene(stage, waiting=10)
    action = scene.ask("hold", "waiting")
    worker = actions(stage.queues)
    mine = taken(worker, action)
    for _ in range(2):
        worker.step(mine)
    perform(CancelAction, action, scene.person)
    mine.release()
    scene.run(action)
    assert (action.state, action.counts, scene.held(), scene.figures().messages) == (
        "stopped",
        {"done": 4},
        4,
        6,
    )
    with pytest.raises(Refused):
        perform(CancelAction, action, scene.person)


def test_a_message_in_delivery_stays_and_is_told_as_staying(stage: Stage) -> None:
    scene = Scene(stage, waiting=2)
    action = scene.ask("hold", "waiting", scene.numbers("waiting"))
    seen = Seen()
    consumer = AmqpConsumer(stage.account("kma", "amqp"), f"t.{scene.key}", scene.key, seen, 1)
    consumer.start()
    try:
        delivery = seen.deliveries.get(timeout=30)
        scene.run(action)
        assert (action.counts, scene.held()) == ({"done": 1, "stayed": 1}, 1)
        consumer.settle([(delivery.tag, Settle.ACCEPT)])
    finally:
        consumer.stop()


def test_what_was_handled_meanwhile_is_not_called_held(stage: Stage) -> None:
    scene = Scene(stage, waiting=2)
    action = scene.ask("hold", "waiting", scene.numbers("waiting"))
    stage.consume(scene.key, 1, Settle.ACCEPT)
    eventually(lambda: scene.figures().messages == 1)
    scene.run(action)
    assert (action.counts, scene.held()) == ({"done": 1, "left": 1}, 1)


def test_bodies_are_read_of_what_waits_and_of_what_is_held(stage: Stage) -> None:
    scene = Scene(stage, waiting=3, delayed=1)
    heads = Heads(stage.management, stage.queues.browser, Masks())
    for part in ("waiting", "held"):
        if part == "held":
            scene.do("hold", "waiting", scene.numbers("waiting")[:2])
        messages = listed_messages(stage.management, scene.key, part) or []
        assert len(messages) == {"waiting": 3, "held": 2}[part]
        assert heads.of(scene.setting, part, messages, 50) == {
            each.number: each.message_id for each in messages
        }


def _are_there(letters: QuerySet[DeadLetter], count: int) -> bool:
    return letters.count() == count


def test_what_was_sent_to_the_dead_letters_is_given_back_like_any_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.jobs.engine.send", lambda *_, **__: None)
    scene = Scene(stage, waiting=1, delayed=1)
    letters = DeadLetter.objects.filter(setting_key=scene.key)
    for dead, part in enumerate(("waiting", "delayed")):
        action = scene.ask("to_dlq", part)
        worker = actions(stage.queues)
        mine = taken(worker, action)
        while action.items.filter(fate=MessageResult.ACTED).count() < 1:
            mine.refresh_from_db()
            worker.step(mine)
        stage.follow(partial(_are_there, letters, dead + 1))
        mine.release()
        assert scene.run(action).counts == {"done": 1}
    job = begun(scene.setting, action="give_back", scope="all", by=scene.person, reason="mended")
    carry_out(replays(stage.queues), job)
    figures = scene.figures()
    assert (stage.count(f"DLQ.{scene.key}"), figures.messages, figures.scheduled) == (0, 2, 0)
    assert set(letters.values_list("state", flat=True)) == {"given_back"}


def test_with_agents_at_work_each_message_is_handled_or_held_never_both(stage: Stage) -> None:
    scene = Scene(stage, waiting=250)
    seen = Seen()
    consumer = AmqpConsumer(stage.account("kma", "amqp"), f"t.{scene.key}", scene.key, seen, 3)
    action = scene.ask("hold", "waiting")
    handled: list[str] = []

    def handle() -> None:
        for _ in range(10):
            delivery = seen.deliveries.get(timeout=30)
            handled.append(str(decode(delivery.encoded).message_id.value))  # type: ignore[union-attr]
            consumer.settle([(delivery.tag, Settle.ACCEPT)])

    consumer.start()
    try:
        handle()
        worker = actions(stage.queues)
        mine = taken(worker, action)
        while (found := held(worker, mine, timezone.now())) and worker.step(found):
            if scene.figures().messages > 3:
                handle()
    finally:
        consumer.stop()
    action.refresh_from_db()
    kept = stage.ids(hold_queue(scene.key), "MA.hold")
    eventually(lambda: scene.figures().delivering == 0)
    waiting = stage.ids(scene.key, f"t.{scene.key}")
    assert len(kept) == action.counts["done"] > 0
    assert sorted({*handled, *kept, *waiting}) == sorted([*handled, *kept, *waiting])
    assert len(handled) + len(kept) + len(waiting) == 250


def test_nothing_is_asked_for_twice_at_the_same_time(stage: Stage) -> None:
    scene = Scene(stage, waiting=2)
    action = scene.ask("hold", "waiting")
    with pytest.raises(Refused) as refused:
        scene.ask("to_dlq", "waiting")
    assert (refused.value.code, refused.value.more) == ("already_running", {"action": str(action.pk)})


@pytest.mark.parametrize(
    ("kind", "part", "numbers", "code"),
    [
        ("release", "waiting", None, "impossible"),
        ("to_dlq", "held", None, "impossible"),
        ("try_now", "waiting", None, "impossible"),
        ("hold", "waiting", [], "selection"),
        ("hold", "waiting", [2**62], "gone"),
        ("hold", "delayed", None, "nothing"),
    ],
)
def test_what_cannot_be_done_is_refused(
    stage: Stage, kind: str, part: str, numbers: list[int] | None, code: str
) -> None:
    scene = Scene(stage, waiting=1)
    with pytest.raises(Refused) as refused:
        scene.ask(kind, part, numbers)
    assert refused.value.code == code
    assert scene.figures().messages == 1


def test_every_action_is_in_the_audit_when_it_is_asked_and_when_it_is_over(stage: Stage) -> None:
    scene = Scene(stage, waiting=2)
    action = scene.do("hold", "waiting", scene.numbers("waiting"))
    entries = AuditEntry.objects.filter(operation=action.pk).order_by("pk")
    told = [(entry.action, entry.by_name, entry.scope, entry.reason, entry.counts) for entry in entries]
    who = scene.person.get_username()
    assert told == [
        ("messages.hold", who, "selection", "to look at it", {"messages": 2}),
        ("message_action.done", who, "selection", "to look at it", {"messages": 2, "done": 2}),
    ]


def test_a_task_waits_while_the_broker_is_away_and_goes_on_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, on_stage: list[str]
) -> None:
    scene = Scene(stage, waiting=2)
    action = scene.ask("hold", "waiting")

    def away() -> Any:
        raise BrokerUnavailable("the connection is lost")

    monkeypatch.setattr(tasks, "letter_queues", away)
    run_waiting(str(action.pk))
    action.refresh_from_db()
    assert (action.state, action.problem, scene.figures().messages) == (
        "running",
        said("the connection is lost"),
        2,
    )
    start_jobs()
    assert on_stage == []
    WaitingAction.objects.filter(pk=action.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    start_jobs()
    assert on_stage == [str(action.pk)]
    monkeypatch.setattr(tasks, "letter_queues", lambda: stage.queues)
    run_waiting(str(action.pk))
    action.refresh_from_db()
    assert (action.state, action.problem, scene.held()) == ("done", NO_REASON, 2)


@pytest.mark.parametrize(("kind", "part", "many"), [("hold", "waiting", False), ("try_now", "delayed", True)])
def test_an_action_ends_where_its_queue_is_gone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, kind: str, part: str, many: bool
) -> None:
    if many:
        monkeypatch.setattr("broker.management.waiting_messages.LISTED", 1)
    scene = Scene(stage, waiting=2, delayed=2)
    action = scene.ask(kind, part)
    stage.management.call("broker", "destroyQueue", scene.key)
    scene.run(action)
    assert (action.whole, action.state, action.finished_at is None) == (many, WaitingState.FAILED, False)
    assert scene.key in str(action.problem)
    assert AuditEntry.objects.latest("pk").action == "message_action.failed"
