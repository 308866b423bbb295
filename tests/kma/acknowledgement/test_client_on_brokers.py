"""The mode CLIENT on a broker: what is where after each answer, and after none."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.amqp.publisher import AmqpPublisher
from broker.port import Consumer, ConsumerEvents, Outgoing
from contract.acknowledgements import Action
from contract.messages import Answer, DesiredRun, Mode
from kma.acknowledgement.open_deliveries import MOST_OPEN
from tests.broker.houses import House, RealHouse, Setting
from tests.kma.conftest import StartWorker
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import Stage, eventually
from tests.kma.queues import of, publish, script

pytestmark = pytest.mark.process

SECRET = "5e" * 32
MINUTE = 60_000  # ms: what failed does not come back during the test
OK, COMMIT, ROLLBACK = {"do": "ok"}, {"do": "acknowledge"}, {"do": "acknowledge", "action": "ROLLBACK"}
Begin = Callable[..., Stage]


@pytest.fixture
def links() -> list[Consumer]:
    """Those that were opened."""
    return []


@pytest.fixture
def begin(either: House, links: list[Consumer], tmp_path: Path) -> Iterator[Begin]:
    """`begin(setting, **fields of the desired run)`"""
    begun: list[Stage] = []

    def connect(run: DesiredRun, events: ConsumerEvents) -> Consumer:
        links.append(either.consumer(run.destination, run.queue, events, 0))  # type: ignore[arg-type]  # an Owner is one
        return links[-1]

    def make(setting: Setting, **fields: Any) -> Stage:
        def publisher() -> Any:
            return AmqpPublisher(either.kma) if isinstance(either, RealHouse) else either.publisher

        one = Stage(tmp_path, [], connect=connect, publisher=publisher)
        one.desired = wanted_client(setting, tmp_path, **fields)
        one.run = type(one.run)(one.desired, "1", one.around)
        begun.append(one)
        one.run.start()
        return one

    yield make
    for one in begun:
        one.end()


def wanted_client(setting: Setting, folder: Path, **fields: Any) -> DesiredRun:
    parameters = {"truth_file": str(folder / "truth")}
    return of(setting, mode=Mode.CLIENT, acknowledgement_secret=SECRET, parameters=parameters, **fields)


def truth(folder: Path) -> list[dict[str, Any]]:
    path = folder / "truth"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def opened(one: Stage, number: int) -> list[dict[str, Any]]:
    eventually(lambda: len(one.records("acknowledgement_opened")) >= number, f"{number} open deliveries", 40)
    return one.records("acknowledgement_opened")


def states(one: Stage, number: int) -> list[str]:
    eventually(lambda: len(one.records("acknowledgement_ended")) >= number, f"{number} ends", 40)
    return [record["state"] for record in one.records("acknowledgement_ended")]


def answer(one: Stage, record: dict[str, Any], action: Action) -> None:
    one.run.pass_on(Answer(record["acknowledgement"], action))


def empty(house: House, setting: Setting) -> bool:
    return house.figures(setting).messages == 0


@pytest.mark.parametrize("concurrency", [1, 32])
def test_several_open_deliveries_end_as_each_is_answered(
    either: House, begin: Begin, concurrency: int, tmp_path: Path
) -> None:
    setting, done, undone = either.setting(delay=MINUTE), either.setting(), either.setting()
    publish(either, setting, *(script(OK, f"ID:{n}") for n in range(40)))
    wish = {"committed_destination": done.address, "rolled_back_destination": undone.address}
    one = begin(setting, concurrency=concurrency, **wish)
    records = opened(one, 40)
    eventually(lambda: either.figures(setting).delivering == 40, "all in delivery")
    assert len(truth(tmp_path)) == 40
    for number, record in enumerate(records[:30]):
        answer(one, record, Action.ROLLBACK if number % 3 == 0 else Action.COMMIT)
    assert (states(one, 30).count("committed"), states(one, 30).count("rolled_back")) == (20, 10)
    eventually(lambda: either.figures(setting).scheduled == 10, "the attempts of those that were rolled back")
    figures = either.figures(setting)
    assert (figures.messages, figures.delivering) == (20, 10)
    events = [json.loads(message.body.value) for message in either.look(done.address, done.key)]
    assert {event["acknowledgement"] for event in events} == {
        record["acknowledgement"] for number, record in enumerate(records[:30]) if number % 3
    }
    eventually(lambda: either.figures(undone).messages == 10, "the events of the rollbacks")
    one.run.stop(close=True)
    one.run.join(20)
    assert states(one, 40).count("lost") == 10
    eventually(lambda: either.figures(setting).delivering == 0, "the rest back")
    assert [message.delivery_count for message in either.look(setting.address, setting.key)] == [0] * 10


def test_a_run_holds_no_more_than_its_bound_and_gives_all_of_it_back(either: House, begin: Begin) -> None:
    setting = either.setting(delay=MINUTE)
    publish(either, setting, *(script(OK, f"ID:{n}") for n in range(MOST_OPEN + 200)))
    one = begin(setting, concurrency=4)
    records = opened(one, MOST_OPEN)
    time.sleep(0.5)
    assert len(one.records("acknowledgement_opened")) == MOST_OPEN == either.figures(setting).delivering
    for record in records[:50]:
        answer(one, record, Action.COMMIT)
    opened(one, MOST_OPEN + 50)
    one.run.stop(close=True)
    one.run.join(20)
    assert states(one, MOST_OPEN + 50).count("committed") == 50
    eventually(lambda: either.figures(setting).delivering == 0, "all back")
    assert either.figures(setting).messages == MOST_OPEN + 150 and either.figures(setting).scheduled == 0


def test_answers_from_within_and_what_was_sent_with_them(either: House, begin: Begin, tmp_path: Path) -> None:
    setting, other = either.setting(delay=MINUTE), either.setting()
    send = {"do": "send", "destination": other.address, "body": "x"}
    publish(
        either, setting, script([send, COMMIT]), script([send, ROLLBACK]), script([{**send, "body": "y"}])
    )
    one = begin(setting)
    (record,) = opened(one, 1)
    eventually(lambda: either.figures(other).messages == 2, "what was sent")
    assert sorted(message.body.value for message in either.look(other.address, other.key)) == ["x", "y"]
    assert [line["state"] for line in truth(tmp_path) if "answered" in line] == ["committed", "rolled_back"]
    answer(one, record, Action.COMMIT)
    eventually(lambda: either.figures(setting).scheduled == either.figures(setting).messages == 1, "the rest")


def test_no_answer_in_time_costs_an_attempt_and_the_last_one_makes_a_letter(
    either: House, begin: Begin
) -> None:
    setting = either.setting(attempts=2, delay=50)
    publish(either, setting, script(OK, "ID:1"))
    one = begin(setting, acknowledgement_timeout_seconds=0.3, max_attempts=2)
    either.until_dead(setting, 1)
    assert states(one, 2) == ["expired", "expired"]
    assert [protocol["message"]["attempt"] for protocol in one.records("protocol")] == [1, 2]


def test_a_commit_whose_event_finds_no_address_is_rolled_back(either: House, begin: Begin) -> None:
    setting = either.setting(delay=MINUTE)
    publish(either, setting, script(OK, "ID:1"))
    one = begin(setting, committed_destination="test.nowhere")
    (record,) = opened(one, 1)
    answer(one, record, Action.COMMIT)
    assert states(one, 1) == ["rolled_back"]
    eventually(lambda: either.figures(setting).scheduled == 1, "the attempt")
    assert [protocol["exception_type"] for protocol in one.records("protocol")] == ["send refused"]


@pytest.mark.kill
def test_a_broker_that_dies_ends_what_waits_and_its_messages_come_back(
    either: House, begin: Begin, links: list[Consumer]
) -> None:
    setting = either.setting(attempts=9, delay=50)
    publish(either, setting, *(script(OK, f"ID:{n}") for n in range(3)))
    one = begin(setting, max_attempts=9)
    old = opened(one, 3)
    real = links[-1].settle_with_sends

    def dying(tag: int, sends: Sequence[Outgoing], **options: bool) -> None:
        either.kill()
        real(tag, sends, **options)

    setattr(links[-1], "settle_with_sends", dying)  # noqa: B010  # of this one only
    answer(one, old[1], Action.COMMIT)
    assert states(one, 3) == ["lost"] * 3
    codes = {
        record["acknowledgement"]: record["reason"]["code"] for record in one.records("acknowledgement_ended")
    }
    in_doubt = [identity for identity, code in codes.items() if code == "delivery.in_doubt"]
    assert in_doubt == [old[1]["acknowledgement"]]
    setattr(links[-1], "settle_with_sends", real)  # noqa: B010
    either.restart()
    again = opened(one, 6)[3:]
    assert sorted(record["message"]["key"] for record in again) == ["ID:0", "ID:1", "ID:2"]
    for record in (*old, *again):
        answer(one, record, Action.COMMIT)
    assert states(one, 6)[3:] == ["committed"] * 3
    eventually(lambda: empty(either, setting), "an empty queue")
    assert one.records("protocol") == []


@pytest.mark.kill
def test_a_whole_container_takes_answers_by_its_heartbeat_and_is_killed_in_between(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting = house.setting(attempts=9, delay=50)
    publish(house, setting, *(script(OK, f"ID:{n}") for n in range(3)))
    ma.want(wanted_client(setting, tmp_path, max_attempts=9))
    worker = start()
    eventually(lambda: len(ma.contents("acknowledgement_opened")) == 3, "what waits", 40)
    first, *others = [one["acknowledgement"] for one in ma.contents("acknowledgement_opened")]
    ma.pending[first] = "COMMIT"
    eventually(lambda: ma.contents("acknowledgement_ended") != [], "its end")
    assert ma.contents("acknowledgement_ended")[0]["state"] == "committed"
    worker.kill()
    ma.pending[others[0]] = "COMMIT"
    worker.start()
    eventually(lambda: len(ma.contents("acknowledgement_ended")) == 3, "the ends of the others", 40)
    lost = ma.contents("acknowledgement_ended")[1:]
    assert [one["state"] for one in lost] == ["lost", "lost"] and not ma.pending
    eventually(lambda: len(ma.contents("acknowledgement_opened")) == 5, "both again", 40)
    for one in ma.contents("acknowledgement_opened")[3:]:
        ma.pending[one["acknowledgement"]] = "COMMIT"
    eventually(lambda: empty(house, setting), "an empty queue")
    assert ma.contents("protocol") == [], "no attempt was promised, none was spent by us"
    time.sleep(0.5)
    assert [one["state"] for one in ma.contents("acknowledgement_ended")].count("committed") == 3


def test_an_agent_answers_another_servers_delivery_through_the_ma(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting = house.setting()
    foreign = "c3J2LTI.00000000000000000000000000000007.1.AAAAAAAAAAAAAAAAAAAAAA." + "A" * 43
    ma.replies = [
        (202, {"state": "pending", "url": "…"}),
        (200, {"state": "committed", "reason": ""}),
        (410, {"error": "gone", "state": "lost", "reason": "the connection was lost"}),
        (404, {"error": "not_found"}),
    ]
    named = {**COMMIT, "id": foreign}
    publish(house, setting, script([named, named, named, COMMIT]))
    ma.want(wanted_client(setting, tmp_path))
    start()
    eventually(lambda: len(truth(tmp_path)) == 5, "all answers", 40)
    found = [line["state"] for line in truth(tmp_path)[1:]]
    assert found[0] == "committed" and found[1] == "refused: the connection was lost"
    assert found[2].startswith("refused: 404") and found[3] == "committed"
    assert ma.asked == [{"acknowledgement": foreign, "action": "COMMIT"}] * 4
