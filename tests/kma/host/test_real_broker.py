"""The agent container on the real Artemis: a Celery worker, its children, kill -9 in between."""

import json
from collections import Counter
from pathlib import Path

import pytest
from celery import Celery

from broker.amqp.consumer import AmqpConsumer
from broker.port import BodyKind, ConsumerEvents, Message
from contract.messages import DesiredRun, Mode
from contract.typed import Typed
from tests.broker.houses import RealHouse
from tests.kma.conftest import StartWorker
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import SAMPLES, Stage, eventually, said
from tests.kma.queues import of, publish, script
from tests.kma.worker import Worker
from tests.services import ArtemisService, RedisService


def test_poisoned_messages_die_after_their_attempts_and_all_others_are_handled(
    house: RealHouse, ma: FakeMa, start: StartWorker
) -> None:
    setting = house.setting(attempts=3)
    good = [script({"do": "ok"}) for _ in range(300)]
    bad = [script({"do": "raise", "type": "KeyError"}, f"ID:bad{n}") for n in range(5)]
    dead = [script({"do": "exit", "code": 1}, "ID:exit"), script({"do": "invalid"}, "ID:invalid")]
    publish(house, setting, *good, *bad, *dead)
    ma.want(of(setting, concurrency=2, max_attempts=3))
    start()
    house.until_dead(setting, 7)
    eventually(lambda: len(ma.contents("protocol")) == 5 * 3 + 3 + 1, "all protocols")
    eventually(lambda: any(run["handled"] == 300 for run in ma.last["runs"]), "the count")
    kinds = Counter(one["exception_type"] for one in ma.contents("protocol"))
    assert kinds == {"KeyError": 15, "exit:1": 3, "kma.agent.InvalidMessage": 1}
    letters = {letter.message_id.value for letter in house.dead(setting) if letter.message_id is not None}
    assert letters == {*(f"ID:bad{n}" for n in range(5)), "ID:exit", "ID:invalid"}
    ma.want()
    eventually(lambda: ma.contents("closing") != [], "the closing record")
    assert ma.spooled(ma.contents("closing")[0]) == 19
    assert house.figures(setting).messages == 0


def test_a_container_without_redis_works_and_stops(house: RealHouse, ma: FakeMa, start: StartWorker) -> None:
    setting = house.setting()
    publish(house, setting, *(script({"do": "ok"}) for _ in range(20)))
    ma.want(of(setting))
    worker = start(redis_url="")
    eventually(lambda: any(run["handled"] == 20 for run in ma.last["runs"]), "the count")
    worker.stop()
    assert house.figures(setting).messages == 0
    assert "Traceback" not in worker.log.read_text() and "redis" not in worker.log.read_text()


@pytest.mark.kill
def test_a_container_that_is_killed_in_the_middle_says_so_and_counts_the_attempt(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting = house.setting(attempts=3)
    truth = tmp_path / "truth"
    step = {"do": "sleep", "seconds": 60, "first": 1}
    publish(house, setting, script(step, "ID:slow"), script({"do": "ok"}, "ID:behind"))
    ma.want(of(setting, max_attempts=3, parameters={"truth_file": str(truth)}))
    worker = start()
    eventually(lambda: len(worker.truth(truth)) == 1, "a start", 40)
    pid = worker.truth(truth)[0]["pid"]
    worker.kill()
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the child's end")
    worker.start()
    eventually(lambda: len(worker.truth(truth)) == 3, "both handled", 40)
    eventually(lambda: len(ma.contents("recovered")) == 1, "a recovery")
    (protocol,) = ma.contents("protocol")
    assert (protocol["outcome"], protocol["exception_type"]) == ("kma_died", "kma died")
    assert protocol["message"]["key"] == "ID:slow" and protocol["process_id"] == pid
    attempts = sorted((line["id"], line["attempt"]) for line in worker.truth(truth))
    assert attempts == [("ID:behind", 1), ("ID:slow", 1), ("ID:slow", 2)]


@pytest.mark.kill
def test_a_message_that_kills_its_container_every_time_dies_in_the_end(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting = house.setting(attempts=2)
    truth = tmp_path / "truth"
    publish(house, setting, script({"do": "sleep", "seconds": 60}, "ID:killer"))
    ma.want(of(setting, max_attempts=2, parameters={"truth_file": str(truth)}))
    worker = start()
    for attempts in (1, 2):
        until_begun(worker, truth, attempts)
        worker.kill()
        worker.start()
    house.until_dead(setting, 1)
    assert len(worker.truth(truth)) == 2
    eventually(lambda: len(ma.contents("protocol")) == 2, "the protocols")
    assert [one["message"]["attempt"] for one in ma.contents("protocol")] == [1, 2]


def until_begun(worker: Worker, truth: Path, number: int) -> None:
    eventually(lambda: len(worker.truth(truth)) >= number, f"{number} starts", 40)


@pytest.mark.kill
def test_kill_9_in_the_middle_of_many_messages_loses_none_and_stores_each_record_once(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting = house.setting(attempts=4)
    truth = tmp_path / "truth"
    good = [script({"do": "sleep", "seconds": 0.005}, f"ID:good{n}") for n in range(400)]
    bad = [script({"do": "raise"}, f"ID:bad{n}") for n in range(10)]
    publish(house, setting, *good[:200], *bad, *good[200:])
    ma.want(of(setting, concurrency=3, max_attempts=4, parameters={"truth_file": str(truth)}))
    worker = start()
    for begun in (60, 200):
        until_begun(worker, truth, begun)
        worker.kill()
        worker.start()
    eventually(lambda: len(house.dead(setting)) == 10, "ten dead letters", 60)
    eventually(lambda: house.figures(setting).messages == 0, "an empty queue", 60)
    assert worker.stop() == 0
    seen = Counter(line["id"] for line in worker.truth(truth))
    assert all(seen[f"ID:good{n}"] >= 1 for n in range(400)), "none was lost"
    protocols = Counter((one["message"]["key"], one["message"]["attempt"]) for one in ma.contents("protocol"))
    failed = Counter(key for key, _ in protocols.elements() if key.startswith("ID:bad"))
    assert all(1 <= failed[f"ID:bad{n}"] <= seen[f"ID:bad{n}"] for n in range(10)), "each record once"
    deaths = [one for one in ma.contents("protocol") if one["outcome"] == "kma_died"]
    # Beside one per child, those whose handling had raised but whose protocol was not on disk yet.
    ended = [one for one in deaths if one["message"]["key"].startswith("ID:good")]
    assert len(ended) <= 2 * 3, "at most one per child and kill of what does not raise"


@pytest.mark.kill
def test_the_broker_being_killed_is_survived_by_the_link(
    house: RealHouse, ma: FakeMa, start: StartWorker, artemis: ArtemisService
) -> None:
    setting = house.setting(attempts=3)
    ma.want(of(setting))
    worker = start()
    worker.running(setting.key)
    artemis.kill()
    eventually(lambda: not any(run["connected"] for run in ma.last["runs"]), "the loss", 30)
    assert "broker" in said(ma.last["runs"][0]["problems"])
    artemis.start()
    worker.running(setting.key)
    again = RealHouse(artemis)
    publish(again, setting, script({"do": "ok"}))
    eventually(lambda: any(run["handled"] == 1 for run in ma.last["runs"]), "a handling")
    again.close()


@pytest.mark.parametrize("mode", list(Mode))
def test_what_an_agent_sends_arrives_and_an_address_that_is_not_there_fails_the_message(
    house: RealHouse, ma: FakeMa, start: StartWorker, mode: Mode
) -> None:
    setting, target = house.setting(attempts=2), house.setting()
    publish(
        house,
        setting,
        script({"do": "send", "destination": target.address, "count": 3, "body": "hi"}, "ID:1"),
    )
    publish(house, setting, script({"do": "send", "destination": "no.such.address"}, "ID:2"))
    ma.want(of(setting, mode=mode, max_attempts=2))
    start()
    eventually(lambda: house.figures(target).messages == 3, "three messages", 40)
    house.until_dead(setting, 1)
    sent = house.look(target.address, target.key)
    assert [one.body for one in sent] == [Typed("string", "hi")] * 3
    assert [one.properties["index"] for one in sent] == [Typed("long", n) for n in range(3)]
    assert all(one.durable for one in sent)
    eventually(lambda: len(ma.contents("protocol")) == 2, "two protocols")
    assert {one["exception_type"] for one in ma.contents("protocol")} == {"send refused"}
    assert [one["message"]["attempt"] for one in ma.contents("protocol")] == [1, 2]


def test_a_stop_gives_back_at_once_what_was_not_begun(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting = house.setting()
    truth = tmp_path / "truth"
    publish(house, setting, *(script({"do": "sleep", "seconds": 1}) for _ in range(20)))
    ma.want(of(setting, parameters={"truth_file": str(truth)}))
    worker = start()
    eventually(lambda: len(worker.truth(truth)) == 1, "a start", 40)
    assert worker.stop() == 0
    figures = house.figures(setting)
    assert figures.messages == 20 - len(worker.truth(truth)) and figures.delivering == 0 == figures.scheduled
    assert {message.delivery_count for message in house.look(setting.address, setting.key)} == {0}
    assert ma.contents("closing") == [] and ma.contents("protocol") == []


def test_a_celery_command_makes_the_container_look_at_once(
    house: RealHouse, ma: FakeMa, start: StartWorker, redis_server: RedisService, tmp_path: Path
) -> None:
    worker = Worker(tmp_path, ma, house.kma, redis_server.url)
    worker.environment["KMA_HEARTBEAT_SECONDS"] = "60"
    worker.start()
    try:
        eventually(lambda: len(ma.heartbeats) == 1, "the first heartbeat", 40)
        with Celery(broker=redis_server.url, set_as_current=False) as sender:
            sender.send_task("kma.poll", queue=f"kma.{ma.server}")
            eventually(lambda: len(ma.heartbeats) >= 2, "a heartbeat out of turn", 20)
    finally:
        worker.stop()


def test_a_wrong_environment_is_one_clear_message(house: RealHouse, ma: FakeMa, tmp_path: Path) -> None:
    worker = Worker(tmp_path, ma, house.kma)
    del worker.environment["KMA_TOKEN"]
    worker.environment["KMA_AMQP_URL"] = "localhost"
    worker.start()
    assert worker.process is not None and worker.process.wait(30) == 78
    worker.process = None
    text = worker.log.read_text()
    assert "KMA_TOKEN is not set" in text and "KMA_AMQP_URL" in text and "Traceback" not in text


def test_a_second_container_on_the_same_folder_ends_with_one_clear_line(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    first = start()
    eventually(lambda: len(ma.heartbeats) > 0, "the first one's heartbeat", 40)
    second = Worker(tmp_path, ma, house.kma)
    second.log = tmp_path / "second.log"
    second.start()
    assert second.process is not None and second.process.wait(30) != 0
    second.process = None
    assert "another KMA uses" in second.log.read_text()
    assert first.process is not None and first.process.poll() is None


def test_a_log_has_the_run_and_the_message_and_neither_bodies_nor_secrets(
    house: RealHouse, ma: FakeMa, start: StartWorker
) -> None:
    setting = house.setting(attempts=1)
    publish(house, setting, script({"do": "raise", "text": "quite-a-secret-body"}, "ID:logged"))
    ma.want(of(setting, max_attempts=1))
    worker = start()
    house.until_dead(setting, 1)
    worker.stop()
    text = worker.log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    (failed,) = [line for line in lines if line["event"] == "handling failed"]
    assert failed["message_key"] == "ID:logged" and failed["server"] == "srv-1" and failed["activation"]
    for secret in (house.kma.password, ma.token, "quite-a-secret-body"):
        assert secret not in text


JMS = {"text": 5, "map": 2, "bytes": 3, "stream": 4, "object": 1}


def test_every_kind_of_message_reaches_an_agent_typed(house: RealHouse, tmp_path: Path) -> None:
    (tmp_path / "kinds_agent.py").write_text(
        "from kma.agent import agent\n@agent('test.kinds')\n"
        "def kinds(message, context):\n"
        "    context.send(context.parameters['to'], repr((message.kind, message.body, "
        "dict(message.properties))))\n"
    )
    setting, target = house.setting(), house.setting()

    def kind(name: str, body: Typed, section: BodyKind = BodyKind.VALUE, content_type: str = "") -> Message:
        annotations = {"x-opt-jms-msg-type": Typed("byte", JMS[name])}
        properties = {"int": Typed("int", 7), "f": Typed("double", 0.5), "ok": Typed("boolean", True)}
        return Message(
            body=body,
            body_kind=section,
            annotations=annotations,
            properties=properties,
            content_type=content_type,
        )

    java = "application/x-java-serialized-object"
    publish(
        house,
        setting,
        kind("text", Typed("string", "grüße \N{SNOWMAN}")),
        kind("bytes", Typed("binary", b"\x00\xff"), BodyKind.DATA),
        kind("map", Typed("map", ((Typed("string", "a"), Typed("long", 1)),))),
        kind("stream", Typed("list", (Typed("string", "x"), Typed("int", 2)))),
        kind("object", Typed("binary", b"\xac\xed\x00\x05"), BodyKind.DATA, java),
    )

    def connect(run: DesiredRun, events: ConsumerEvents) -> AmqpConsumer:
        return AmqpConsumer(house.kma, run.destination, run.queue, events)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        one = Stage(
            tmp_path,
            [],
            modules=("kinds_agent", *SAMPLES),
            connect=connect,
            agent="test.kinds",
            setting=setting.key,
            queue=setting.key,
            destination=setting.address,
            parameters={"to": target.address},
        )
        one.run.start()
        try:
            eventually(lambda: house.figures(target).messages == 5, "five answers", 40)
        finally:
            one.end()
    seen = [str(one.body.value) for one in house.look(target.address, target.key)]
    properties = "{'int': 7, 'f': 0.5, 'ok': True}"
    assert seen == [
        f"('text', 'grüße \N{SNOWMAN}', {properties})",
        f"('bytes', b'\\x00\\xff', {properties})",
        f"('map', {{'a': 1}}, {properties})",
        f"('stream', ['x', 2], {properties})",
        f"('object', b'\\xac\\xed\\x00\\x05', {properties})",
    ]
