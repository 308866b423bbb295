"""Redirecting to another destination on the real broker: every type of a message is there as it was, once,
and nobody else gets anything."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice

import pytest

from broker.amqp.codec import decode, encode
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.sections import BODY_KINDS, sections
from broker.port import BodyKind, Message, Outgoing, Settle
from contract.names import ANNOTATED_ORIG_QUEUE, ORIG_QUEUE
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from dlq.models import Action, DeadLetter, JobState, LetterState
from tests.broker.houses import eventually
from tests.broker.jms import jms_producer
from tests.broker.jms.jms_producer import Sent
from tests.broker.messages import SCALARS, VALUES, everything
from tests.dlq.jobs import begun, carry_out, replays
from tests.dlq.stage import Seen, Stage
from tests.web import reports

pytestmark = pytest.mark.django_db

MANY = 1000
WAIT_THERE = 5
CORE_KINDS = ("text", "bytes", "map", "object", "stream")
AMQP_KINDS = ("text", "bytes", "map", "object")
OF_EACH_KIND, OF_STOMP = 25, 60
CORE = len(CORE_KINDS) * OF_EACH_KIND
JMS = CORE + len(AMQP_KINDS) * OF_EACH_KIND + OF_STOMP
# What the broker adds to a message that it moved.
BROKERS = ("x-opt-ORIG-", "_AMQ_ORIG_")
# As soon as a message dies, the broker cuts a character of an annotation to 16 bits (measured with 2.56).
IN_ANNOTATIONS = tuple(each for each in SCALARS if each != Typed("char", "😀"))
RETRIED = RedeliveryPolicy(max_attempts=10, delay=0)


@pytest.fixture(autouse=True)
def no_celery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.jobs.engine.send", lambda *_, **__: None)


# -- messages of every kind, each with its number ------------------------------------------------------------


NANS = (Typed("float", float("nan")), Typed("double", float("nan")))
BODIES: tuple[tuple[Typed, BodyKind], ...] = (
    *((value, BodyKind.VALUE) for value in (*VALUES, *NANS)),
    (Typed("binary", b""), BodyKind.DATA),
    (Typed("binary", bytes(range(256)) * 40), BodyKind.DATA),
    (Typed("list", ()), BodyKind.SEQUENCE),
    (Typed("list", (*SCALARS, *NANS)), BodyKind.SEQUENCE),
)


def ids() -> Iterator[Typed]:
    while True:
        yield Typed("string", f"ID:{uuid.uuid4()}")
        yield Typed("uuid", str(uuid.uuid4()))
        yield Typed("ulong", uuid.uuid4().int >> 65)
        yield Typed("binary", uuid.uuid4().bytes)


def of_every_type(count: int) -> list[Message]:
    """Every type as the body, among the properties, and every section; every third message has nothing but
    its body."""
    found = []
    for n, (body, kind), name in zip(range(count), cycle(BODIES), ids(), strict=False):
        message = everything(body, kind) if n % 3 else Message(body=body, body_kind=kind)
        properties = {**message.properties, "n": Typed("int", n)}
        if n % 3:
            properties |= {"nan": NANS[n % 2]}
        annotations = {"x-opt-test": Typed("list", IN_ANNOTATIONS)} if n % 3 else {}
        found.append(replace(message, message_id=name, properties=properties, annotations=annotations))
    return found


def send_everything(stage: Stage, address: str) -> None:
    stage.publish(address, *of_every_type(MANY - JMS))
    numbers = iter(range(JMS))
    publisher = stage.service.publisher
    for url, kinds in ((stage.service.core_url, CORE_KINDS), (stage.service.amqp_url, AMQP_KINDS)):
        some = islice(numbers, len(kinds) * OF_EACH_KIND)
        jms_producer.send(
            url, publisher, address, [Sent(kind, n) for n, kind in zip(some, cycle(kinds), strict=False)]
        )
    stomp = []
    for n in numbers:
        body = Typed("string", f"тело {n}") if n % 2 else Typed("binary", bytes([0, n % 256, 255]))
        kind = BodyKind.VALUE if n % 2 else BodyKind.DATA
        stomp.append(Message(body=body, body_kind=kind, properties={"number": Typed("string", str(n))}))
    stage.stomp.publish([Outgoing(address, message) for message in stomp])


# -- what a receiver gets ------------------------------------------------------------------------------------


Received = dict[tuple[str, int], tuple[bytes, list[bytes]]]


def taken(stage: Stage, key: str, address: str, count: int) -> list[bytes]:
    """As a raw AMQP receiver gets them. None is settled: they lie there again afterwards."""
    seen = Seen()
    consumer = AmqpConsumer(stage.account("kma", "amqp"), address, key, seen, count)
    consumer.start()
    found = [seen.deliveries.get(timeout=20).encoded for _ in range(count)]
    consumer.stop()
    eventually(lambda: int(stage.management.attribute(f"queue.{key}", "DeliveringCount")) == 0)
    return found


def received(encoded: list[bytes]) -> Received:
    """By the number of each message: all of it as bytes, then its body's sections as the broker sent them.
    `to` is the broker's, too: the address at which a message lies."""
    found: Received = {}
    for each in encoded:
        message = decode(each)
        name = "n" if "n" in message.properties else "number"
        notes = {key: value for key, value in message.annotations.items() if not key.startswith(BROKERS)}
        own = {key: value for key, value in message.properties.items() if not key.startswith(BROKERS)}
        plain = replace(message, annotations=notes, properties=own, delivery_count=0, to="")
        raw = [each[start:end] for code, start, end in sections(each) if code in BODY_KINDS]
        place = name, int(message.properties[name].value)
        assert place not in found, f"{place} came twice"
        found[place] = encode(plain), raw
    return found


def origin(encoded: bytes) -> object:
    """The dead-letter queue that it says it came from."""
    message = decode(encoded)
    said = message.annotations.get(ANNOTATED_ORIG_QUEUE) or message.properties.get(ORIG_QUEUE)
    return said.value if said is not None else None


def test_a_thousand_of_every_type_are_there_once_and_as_they_were(stage: Stage) -> None:
    source, target = stage.key("from"), stage.key("to")
    control, beside = f"{source}-c", f"{target}-b"
    for key, address in ((source, source), (control, source), (target, target), (beside, target)):
        stage.add(key, f"t.{address}", RETRIED)
    send_everything(stage, f"t.{source}")
    waiting = [Message(body=Typed("string", "waits"), properties={"n": Typed("int", -n - 1)})
               for n in range(WAIT_THERE)]  # fmt: skip
    stage.publish(f"t.{target}", *waiting)
    stage.consume(source, MANY, Settle.REJECT)
    stage.until_dead(f"DLQ.{source}", MANY)
    orders, other = reports.setting(source), reports.setting(target)
    rows = DeadLetter.objects.filter(setting_key=source)
    stage.follow(lambda: rows.count() == MANY)

    job = begun(orders, by=reports.person("mover"), action=Action.REDIRECT, scope="all", target=other)
    carry_out(replays(stage.queues), job)
    job.refresh_from_db()
    assert (job.state, job.total, job.counts["given_back"], str(job.problem)) == (
        JobState.DONE, MANY, MANY, "",
    )  # fmt: skip
    assert set(rows.values_list("state", flat=True)) == {LetterState.GIVEN_BACK}
    counts = [stage.count(queue) for queue in (f"DLQ.{source}", source, target, beside, f"DLQ.{target}")]
    assert counts == [0, 0, MANY + WAIT_THERE, WAIT_THERE, 0]

    # An AMQP receiver: as from the source, byte by byte.
    came = taken(stage, target, f"t.{target}", MANY + WAIT_THERE)
    waited = [each for each in came if decode(each).body.value == "waits"]
    moved = [each for each in came if each not in waited]
    assert sorted(number for _name, number in received(waited)) == list(range(-WAIT_THERE, 0))
    assert {origin(each) for each in waited} == {None}
    assert {origin(each) for each in moved} == {f"DLQ.{source}"}
    assert {decode(each).to for each in moved} == {f"t.{target}"}
    here, there = received(taken(stage, control, f"t.{source}", MANY)), received(moved)
    assert here.keys() == there.keys() and len(there) == MANY
    assert [place for place in sorted(here) if here[place] != there[place]] == []

    # A Core client.
    about = (stage.service.core_url, stage.service.kma)
    read = [
        jms_producer.receive(*about, f"t.{address}::{key}", JMS, "number IS NOT NULL")
        for address, key in ((source, control), (target, target))
    ]
    assert read[0].keys() == read[1].keys() == set(range(JMS))
    assert [number for number in sorted(read[0]) if read[0][number] != read[1][number]] == []
    kinds = {seen.rpartition("\t")[2].partition(" ")[0] for seen in read[1].values()}
    assert kinds == {"text", "bytes", "map", "object", "stream"}
    rest = MANY - JMS + WAIT_THERE
    eventually(lambda: stage.count(target) == rest)
    assert len(stage.consume(target, rest, Settle.ACCEPT)) == rest


def test_every_second_one_goes_and_the_others_stay(stage: Stage) -> None:
    source, target = stage.key("from"), stage.key("to")
    messages = of_every_type(60)
    stage.publish(f"t.{source}", *messages)
    stage.consume(source, 60, Settle.REJECT)
    orders, other = reports.setting(source), reports.setting(target)
    rows = DeadLetter.objects.filter(setting_key=source).order_by("orig_message_id")
    stage.follow(lambda: rows.count() == 60)
    chosen = [row.pk for row in rows[::2]]
    job = begun(
        orders, by=reports.person("mover"), action=Action.REDIRECT, scope="selection", letters=chosen,
        target=other,
    )  # fmt: skip
    carry_out(replays(stage.queues), job)
    job.refresh_from_db()
    assert (job.state, job.counts["given_back"]) == (JobState.DONE, 30)
    numbers = {
        queue: sorted(
            int(each.message.properties["n"].value)
            for each in stage.queues.browser.browse(address, queue, limit=100)
            if each.message
        )
        for queue, address in ((target, f"t.{target}"), (f"DLQ.{source}", "MA.DLA"))
    }
    assert numbers == {target: list(range(0, 60, 2)), f"DLQ.{source}": list(range(1, 60, 2))}


def test_a_target_that_is_removed_meanwhile_fails_the_job_and_nothing_is_lost(stage: Stage) -> None:
    source, target = stage.key("from"), stage.key("to")
    stage.publish(f"t.{source}", *of_every_type(10))
    stage.consume(source, 10, Settle.REJECT)
    orders, other = reports.setting(source), reports.setting(target)
    rows = DeadLetter.objects.filter(setting_key=source)
    stage.follow(lambda: rows.count() == 10)
    job = begun(orders, by=reports.person("mover"), action=Action.REDIRECT, scope="all", target=other)
    stage.management.call("broker", "destroyQueue", target, True, False)
    other.delete()
    carry_out(replays(stage.queues), job)
    job.refresh_from_db()
    assert (job.state, job.counts["failed_to_move"]) == (JobState.FAILED, 10)
    assert target in str(job.problem)
    assert (stage.count(f"DLQ.{source}"), rows.filter(state=LetterState.DEAD).count()) == (10, 10)
