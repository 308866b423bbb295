"""Dead letters that are replayed in the order of their publishing, behind and ahead of what waits, on the
real broker, while a producer goes on: workers killed at each step, holds that end before all were handled."""

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from broker.amqp.codec import decode
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher
from broker.port import Delivery, Message, Outgoing, Settle
from contract.names import ahead_queue
from contract.typed import Typed
from tests.broker.houses import eventually
from tests.dlq.scenes import Scene
from tests.dlq.stage import Seen, Stage
from tests.dlq.worker_host import WorkerHost

pytestmark = pytest.mark.kill

COUNT, WAITING = 6, 4
BEGIN = ("queue made", "hold written", "paused", "held")
MOVES = ("planned", "begun", "moved", "checked")
END = ("hold ends", "moved behind", "released", "hold over")


def message(name: str) -> Message:
    return Message(body=Typed("string", name), message_id=Typed("string", name))


def died_in_disorder(stage: Stage, host: WorkerHost) -> Scene:
    """Its letters died in another order than they were published in."""
    key = stage.key("k")
    names = [f"{key}-{number:03}" for number in range(COUNT)]
    stage.publish(f"t.{key}", *(message(name) for name in names))
    seen = Seen()
    consumer = AmqpConsumer(stage.account("kma", "amqp"), f"t.{key}", key, seen, COUNT)
    consumer.start()
    deliveries = [seen.deliveries.get(timeout=20) for _ in names]
    random.Random(1).shuffle(deliveries)
    for number, delivery in enumerate(deliveries, 1):
        consumer.settle([(delivery.tag, Settle.REJECT)])
        stage.until_dead(f"DLQ.{key}", number)
    consumer.stop()
    return Scene(stage, host, key, host.run("prepare", key=key, count=COUNT), names)


class Producer:
    """Publishes all the time, until it is stopped."""

    def __init__(self, scene: Scene) -> None:
        self.sent: list[str] = []
        self._scene, self._over = scene, threading.Event()
        self._publisher = AmqpPublisher(scene.stage.account("publisher", "amqp"))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(0.02):
            name = f"{self._scene.key}-live-{len(self.sent):05}"
            self._publisher.publish([Outgoing(f"t.{self._scene.key}", message(name))])
            self.sent.append(name)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._publisher.close()


class Agent:
    """Takes from the subscription, and from the queue beside it once that is there, one message at a time."""

    def __init__(self, scene: Scene, *, beside: bool = True) -> None:
        self.taken: list[str] = []
        queues = [scene.key, ahead_queue(scene.key)] if beside else [scene.key]
        account, address = scene.stage.account("kma", "amqp"), f"t.{scene.key}"
        self._consumers: list[AmqpConsumer] = []
        for queue in queues:
            consumer = AmqpConsumer(account, address, queue, _Side(self, len(self._consumers)), 1)
            self._consumers.append(consumer)
            consumer.start()

    def took(self, side: int, delivery: Delivery) -> None:
        found = decode(delivery.encoded)
        self.taken.append(str(found.body.value))
        self._consumers[side].settle([(delivery.tag, Settle.ACCEPT)])

    def stop(self) -> None:
        for consumer in self._consumers:
            consumer.stop()


class _Side:
    def __init__(self, agent: Agent, number: int) -> None:
        self._agent, self._number = agent, number

    def opened(self) -> None: ...

    def lost(self, reason: str, permanent: bool) -> None: ...

    def delivered(self, delivery: Delivery) -> None:
        self._agent.took(self._number, delivery)

    def settled(self, tag: int, problem: str | None) -> None: ...


class Line:
    """A scene with messages that wait, and a producer that goes on."""

    def __init__(self, stage: Stage, host: WorkerHost) -> None:
        self.scene = died_in_disorder(stage, host)
        self.key, self.host, self.stage = self.scene.key, host, stage
        host.run("switch_on", key=self.key)
        self.waiting = [f"{self.key}-waits-{number}" for number in range(WAITING)]
        stage.publish(f"t.{self.key}", *(message(name) for name in self.waiting))
        self.producer = Producer(self.scene)
        self.agents: list[Agent] = []

    def ask(self, in_order: str, scope: str = "all", **options: Any) -> str:
        letters = self.scene.letters if scope == "selection" else None
        how = {"in_order": in_order} | ({"hold_minutes": 30} if in_order == "ahead" else {}) | options
        return str(
            self.host.run("ask", key=self.key, action="give_back", scope=scope, letters=letters, **how)
        )

    def agent(self, *, beside: bool = True) -> Agent:
        self.agents.append(Agent(self.scene, beside=beside))
        return self.agents[-1]

    def lying(self, queue: str = "") -> list[str]:
        return self.stage.ids(queue or self.key, f"t.{self.key}")

    def close(self) -> None:
        self.producer.stop()
        for agent in self.agents:
            agent.stop()

    def all_taken(self, agent: Agent, *first: list[str]) -> list[str]:
        """What the agent took at the end, with the producer's messages."""
        self.producer.stop()
        expected = [name for names in first for name in names]
        eventually(lambda: len(agent.taken) >= len(expected) + len(self.producer.sent), 60)
        return agent.taken

    def is_paused(self) -> bool:
        return bool(self.stage.management.attribute(f"queue.{self.key}", "Paused"))


@pytest.fixture
def line(stage_of_all: Stage, host: WorkerHost) -> Iterator[Line]:
    line = Line(stage_of_all, host)
    yield line
    line.close()


def done(told: dict[str, Any], given_back: int = COUNT) -> None:
    assert (told["state"], told["problem"]) == ("done", "")
    assert told["items"] == told["counts"] == {"given_back": given_back}


# -- behind --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", MOVES[:3])
@pytest.mark.parametrize("scope", ["all", "selection"])
def test_behind_what_waits_they_come_in_the_order_of_their_publishing(
    line: Line, scope: str, where: str
) -> None:
    job = line.ask("behind", scope)
    line.host.run("work", job=job, crash_at=where)
    done(line.host.run("go_on", job=job))
    agent = line.agent(beside=False)
    taken = line.all_taken(agent, line.scene.names, line.waiting)
    assert [name for name in taken if name in line.scene.names] == line.scene.names
    assert [name for name in taken if name in line.waiting] == line.waiting
    assert [name for name in taken if "live" in name] == line.producer.sent
    assert taken.index(line.scene.names[0]) > taken.index(line.waiting[-1])
    assert len(taken) == COUNT + WAITING + len(line.producer.sent), "each once"


def test_one_that_died_again_keeps_the_place_of_its_first_death(line: Line) -> None:
    """It has a greater id than the others now, and was published before them."""
    line.producer.stop()
    one = line.host.run("ask", key=line.key, action="give_back", scope="one", letters=line.scene.letters[:1])
    done(line.host.run("work", job=one), 1)
    seen = Seen()
    consumer = AmqpConsumer(line.stage.account("kma", "amqp"), f"t.{line.key}", line.key, seen, 1000)
    consumer.start()
    before = WAITING + len(line.producer.sent)
    *_others, again = [seen.deliveries.get(timeout=20) for _ in range(before + 1)]
    assert decode(again.encoded).body.value in line.scene.names
    consumer.settle([(again.tag, Settle.REJECT)])
    line.stage.until_dead(f"DLQ.{line.key}", COUNT)
    consumer.stop()
    line.host.run("follow", key=line.key, count=COUNT + 1)
    job = line.ask("behind")
    done(line.host.run("go_on", job=job))
    assert [each for each in line.lying() if each in line.scene.names] == line.scene.names


# -- ahead ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [*BEGIN, *MOVES[:3]])
def test_ahead_of_what_waits_they_come_in_the_order_of_their_publishing(line: Line, where: str) -> None:
    job = line.ask("ahead")
    line.host.run("go_on", job=job, crash_at=where)
    assert line.host.run("go_on", job=job, until="held")["held"] == "ahead"
    assert line.is_paused()
    _handled_ahead(line, job)


@pytest.mark.parametrize("where", END)
def test_a_worker_that_dies_while_it_releases_loses_no_place(line: Line, where: str) -> None:
    job = line.ask("ahead")
    line.host.run("go_on", job=job, until="held")
    agent = line.agent()
    line.host.run("go_on", job=job, crash_at=where)
    told = line.host.run("go_on", job=job)
    done(told)
    _in_order_ahead(line, agent)
    assert (told["hold"], told["held"], told["held_by"]) == ("over", "", "")


def _handled_ahead(line: Line, job: str) -> None:
    agent = line.agent()
    told = line.host.run("go_on", job=job)
    done(told)
    assert (told["hold"], told["held"], told["held_by"]) == ("over", "", "")
    _in_order_ahead(line, agent)


def _in_order_ahead(line: Line, agent: Agent) -> None:
    taken = line.all_taken(agent, line.scene.names, line.waiting)
    assert taken == [*line.scene.names, *line.waiting, *line.producer.sent]
    assert not line.is_paused()
    assert line.stage.count(ahead_queue(line.key)) == 0


def test_with_a_ladder_each_step_waits_for_what_became_of_the_one_before(line: Line) -> None:
    line.host.run("serve", key=line.key, in_a_row=0)
    job = line.ask("ahead", ladder=True)
    line.host.run("go_on", job=job, until="held")
    line.host.run("work", job=job, turns=2)
    assert line.lying(ahead_queue(line.key)) == line.scene.names[:1]
    agent = line.agent()
    told: dict[str, Any] = {"state": "running"}
    while told["state"] == "running":
        line.host.run("handle", key=line.key)
        told = line.host.run("go_on", job=job, seconds=0.5)
    assert (told["state"], told["counts"]) == (
        "done",
        {"given_back": COUNT, "handled": told["counts"]["handled"]},
    )
    _in_order_ahead(line, agent)


def test_letters_wait_until_a_consumer_lets_go_of_what_it_took_before(line: Line) -> None:
    seen = Seen()
    consumer = AmqpConsumer(line.stage.account("kma", "amqp"), f"t.{line.key}", line.key, seen, 1)
    consumer.start()
    delivery = seen.deliveries.get(timeout=20)
    job = line.ask("ahead")
    told = line.host.run("go_on", job=job, until="held", seconds=2)
    assert (told["hold"], told["held"], told["waits"]) == ("wanted", "ahead", "letting_go")
    assert line.stage.count(ahead_queue(line.key)) == 0
    consumer.settle([(delivery.tag, Settle.ACCEPT)])
    taken_before = line.waiting.pop(0)
    assert decode(delivery.encoded).body.value == taken_before
    assert line.host.run("go_on", job=job, until="held")["hold"] == "held"
    consumer.stop()
    _handled_ahead(line, job)


# -- holds that end otherwise --------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["", *END])
def test_what_was_not_handled_when_the_time_is_over_follows_behind_what_waits(line: Line, where: str) -> None:
    job = line.ask("ahead")
    line.host.run("go_on", job=job, until="held")
    eventually(lambda: line.host.run("work", job=job, turns=1) and _all_ahead(line), 30)
    line.producer.stop()
    line.host.run("end_time", job=job)
    if where:
        line.host.run("go_on", job=job, crash_at=where)
    told = line.host.run("go_on", job=job)
    assert (told["state"], told["hold"], told["held"]) == ("done", "over", "")
    assert f": {COUNT}." in told["problem"]
    assert line.lying() == [*line.waiting, *line.producer.sent, *line.scene.names]
    assert not line.is_paused()


def _all_ahead(line: Line) -> bool:
    return bool(line.stage.count(ahead_queue(line.key)) == COUNT)


def test_a_job_whose_time_is_over_before_all_moved_stops(line: Line) -> None:
    job = line.ask("ahead", per_second=0.5)
    line.host.run("go_on", job=job, until="held")
    line.host.run("work", job=job, turns=1)
    line.producer.stop()
    moved = line.stage.count(ahead_queue(line.key))
    assert 0 < moved < COUNT
    line.host.run("end_time", job=job)
    told = line.host.run("go_on", job=job)
    assert (told["state"], told["hold"], told["held"]) == ("stopped", "over", "")
    assert told["items"] == {"given_back": moved, "cancelled": COUNT - moved}
    assert line.lying() == [*line.waiting, *line.producer.sent, *line.scene.names[:moved]]
    assert line.scene.dead() == COUNT - moved


@pytest.mark.parametrize("where", ["", "held", "moved"])
def test_a_cancelled_job_releases_the_subscription(line: Line, where: str) -> None:
    job = line.ask("ahead", per_second=0.5)
    line.host.run("go_on", job=job, **({"crash_at": where} if where else {"until": "held"}))
    line.host.run("change", job=job, how="cancel")
    line.producer.stop()
    told = line.host.run("go_on", job=job)
    assert (told["state"], told["hold"], told["held"]) == ("cancelled", "over", "")
    moved = told["items"].get("given_back", 0)
    assert line.lying() == [*line.waiting, *line.producer.sent, *line.scene.names[:moved]]
    assert line.scene.dead() == COUNT - moved
    assert not line.is_paused()


def test_a_paused_job_whose_time_is_over_releases_the_subscription(line: Line) -> None:
    job = line.ask("ahead", per_second=0.5)
    line.host.run("go_on", job=job, until="held")
    line.host.run("change", job=job, how="pause")
    line.host.run("tidy")
    assert line.host.run("tell", job=job)["state"] == "paused", "its time is not over"
    line.host.run("end_time", job=job)
    line.host.run("tidy")
    told = line.host.run("go_on", job=job)
    assert (told["state"], told["hold"], told["held"]) == ("stopped", "over", "")
    assert not line.is_paused()
    assert line.scene.dead() + told["items"].get("given_back", 0) == COUNT


def test_of_two_that_go_ahead_the_second_waits_for_the_end_of_the_first(line: Line) -> None:
    one = line.host.run("ask", key=line.key, action="give_back", scope="selection",
                        letters=line.scene.letters[:3], in_order="ahead", hold_minutes=30)  # fmt: skip
    two = line.host.run("ask", key=line.key, action="give_back", scope="selection",
                        letters=line.scene.letters[3:], in_order="ahead", hold_minutes=30)  # fmt: skip
    assert line.host.run("go_on", job=one, until="held")["held_by"] == one
    told = line.host.run("go_on", job=two, until="held", seconds=2)
    assert (told["hold"], told["waits"], told["held_by"]) == ("wanted", "held_by_another", one)
    agent = line.agent()
    done(line.host.run("go_on", job=one), 3)
    done(line.host.run("go_on", job=two), 3)
    taken = line.all_taken(agent, line.scene.names, line.waiting)
    assert sorted(taken) == sorted([*line.scene.names, *line.waiting, *line.producer.sent]), "each once"


def test_nobody_resumes_a_held_subscription_by_provisioning_it(line: Line) -> None:
    job = line.ask("ahead")
    line.host.run("go_on", job=job, until="held")
    line.host.run("provision", key=line.key)
    assert line.is_paused()
    line.stage.management.call(f"queue.{line.key}", "resume")
    line.host.run("work", job=job, turns=1)
    assert line.is_paused(), "what somebody resumed is paused again"
    _handled_ahead(line, job)


def test_a_message_that_expires_while_it_is_held_is_dead_and_the_others_keep_their_order(line: Line) -> None:
    line.producer.stop()
    short = f"{line.key}-short"
    expiring = Message(body=Typed("string", short), message_id=Typed("string", short), ttl_ms=500)
    line.stage.publish(f"t.{line.key}", expiring)
    job = line.ask("ahead")
    line.host.run("go_on", job=job, until="held")
    line.stage.until_dead(f"DLQ.{line.key}", 1)  # the letters went ahead
    agent = line.agent()
    done(line.host.run("go_on", job=job))
    eventually(lambda: len(agent.taken) == COUNT + WAITING + len(line.producer.sent), 60)
    assert agent.taken == [*line.scene.names, *line.waiting, *line.producer.sent]
    assert line.scene.dead() == 1


def test_the_lease_of_a_worker_that_stood_still_ends_and_the_next_one_goes_on(
    line: Line, tmp_path: Any
) -> None:
    job = line.ask("ahead")
    another = WorkerHost(line.host.processes)
    with line.host.held("go_on", "paused", tmp_path, job=job) as worker:
        worker.stands()
        agent = line.agent()
        done(another.run("go_on", job=job))
        assert not line.is_paused()
        worker.goes_on()
    another.close()
    assert not line.is_paused(), "the one of before holds nothing any more"
    _in_order_ahead(line, agent)
