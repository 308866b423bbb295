"""Ordered subscriptions: nothing overtakes the message that failed, whoever holds it, and its attempts go
on."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from broker.port import Consumer, ConsumerEvents
from contract.messages import BlockedMessage, DesiredRun
from contract.outcomes import AfterLast
from deploy.config import LOOPBACK
from tests.broker.houses import House, RealHouse
from tests.broker.houses import Setting as OnBroker
from tests.kma.cells.test_cells import linked as by_wire
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import Stage, eventually
from tests.kma.queues import of, publish, script
from tests.kma.worker import Worker
from tests.product.three_servers.proxy import Wire
from tests.services import ArtemisService, throw_away_folder

pytestmark = pytest.mark.process

MINUTE = 60_000  # ms: what the broker counts as failed does not come back during the test
POISON = "ID:poison"


def linked(house: House) -> Callable[[DesiredRun, ConsumerEvents], Consumer]:
    def connect(run: DesiredRun, events: ConsumerEvents) -> Consumer:
        return house.consumer(run.destination, run.queue, events, 0)  # type: ignore[arg-type]  # an Owner is one

    return connect


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def seen(path: Path) -> list[tuple[str, int]]:
    """(id of the message, attempt) of every handling that began."""
    return [(line["id"], line["attempt"]) for line in lines(path)]


def good(*numbers: int) -> list[tuple[str, int]]:
    return [(f"ID:{n}", 1) for n in numbers]


def poison(*attempts: int) -> list[tuple[str, int]]:
    return [(POISON, attempt) for attempt in attempts]


def send_row(house: House, setting: OnBroker, *, fails: int) -> None:
    """Two good ones, one that fails so many times, three good ones."""
    raises = {"do": "raise", "type": "KeyError", "first": fails}
    before, after = [[script({"do": "ok"}, f"ID:{n}") for n in some] for some in ((1, 2), (3, 4, 5))]
    publish(house, setting, *before, script(raises, POISON), *after)


class Holder:
    """A run of an ordered setting with a folder of its own."""

    def __init__(self, house: House, setting: OnBroker, folder: Path, **fields: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.truth = folder / "truth"
        self.desired = of(
            setting,
            **{"ordered": True, "blocked_seconds": 0.1, "max_attempts": 4, **fields},
            parameters={"truth_file": str(self.truth)},
        )
        self.stage = Stage(folder, [], connect=linked(house))
        self.run = self.stage.run = type(self.stage.run)(self.desired, "1", self.stage.around)
        self.run.start()

    def until(self, handled: int, failed: int) -> None:
        def is_so() -> bool:
            report = self.run.report()
            return (report.handled, report.failed) == (handled, failed)

        eventually(is_so, f"{handled} handled and {failed} failed: {self.run.report()}", 40)


def test_nothing_overtakes_a_message_that_fails_until_it_succeeds(either: House, tmp_path: Path) -> None:
    setting = either.setting(attempts=4, delay=MINUTE, exclusive=True)
    send_row(either, setting, fails=3)
    one = Holder(either, setting, tmp_path)
    try:
        one.until(6, 3)
        assert seen(one.truth) == [*good(1, 2), *poison(1, 2, 3, 4), *good(3, 4, 5)]
        failed = one.stage.records("protocol")
        assert [each["message"]["attempt"] for each in failed] == [1, 2, 3]
        assert [each["message"]["attempt"] for each in one.stage.records("recovered")] == [4]
        eventually(lambda: either.figures(setting).messages == 0, "all accepted")
        assert either.dead(setting) == []
    finally:
        one.stage.end()


def test_after_its_last_attempt_it_is_a_dead_letter_and_the_next_follows(
    either: House, tmp_path: Path
) -> None:
    setting = either.setting(attempts=3, delay=MINUTE, exclusive=True)
    send_row(either, setting, fails=99)
    one = Holder(either, setting, tmp_path, max_attempts=3)
    try:
        one.until(5, 3)
        assert seen(one.truth) == [*good(1, 2), *poison(1, 2, 3), *good(3, 4, 5)]
        assert [each["last_attempt"] for each in one.stage.records("protocol")] == [False, False, True]
        eventually(lambda: len(either.dead(setting)) == 1, "a dead letter")
        eventually(lambda: either.figures(setting).messages == 0, "all accepted")
    finally:
        one.stage.end()


def test_it_waits_for_the_interval_and_says_so(either: House, tmp_path: Path) -> None:
    setting = either.setting(attempts=4, delay=MINUTE, exclusive=True)
    send_row(either, setting, fails=1)
    one = Holder(either, setting, tmp_path, blocked_seconds=0.8)
    try:
        one.until(2, 1)
        told = BlockedMessage(POISON, 1, retry_seconds=0.8)
        eventually(lambda: one.run.report().blocked == told, "it says so")
        one.until(6, 1)
        first, second = [line["at"] for line in lines(one.truth) if line["id"] == POISON]
        assert second - first >= 0.8
        eventually(lambda: one.run.report().blocked is None, "nothing blocks any more")
    finally:
        one.stage.end()


def test_one_that_waits_for_a_person_is_tried_when_asked(either: House, tmp_path: Path) -> None:
    setting = either.setting(attempts=4, delay=MINUTE, exclusive=True)
    send_row(either, setting, fails=2)
    one = Holder(either, setting, tmp_path, blocked_seconds=-1.0)
    try:
        one.until(2, 1)
        time.sleep(0.5)
        assert seen(one.truth) == [*good(1, 2), *poison(1)]
        for asked in (1, 2):
            one.run.change(replace(one.desired, retries_requested=asked))
            one.until(2 if asked == 1 else 6, 2)
        assert seen(one.truth) == [*good(1, 2), *poison(1, 2, 3), *good(3, 4, 5)]
    finally:
        one.stage.end()


def test_a_stop_puts_it_back_in_its_place_and_the_next_holder_goes_on_counting(
    either: House, tmp_path: Path
) -> None:
    setting = either.setting(attempts=4, delay=MINUTE, exclusive=True)
    send_row(either, setting, fails=3)
    one = Holder(either, setting, tmp_path / "one", blocked_seconds=60.0)
    try:
        one.until(2, 1)
    finally:
        one.stage.end()
    eventually(lambda: either.figures(setting).delivering == 0, "all given back")
    assert either.figures(setting).messages == 4
    # Of a protocol the MA tells every server how many attempts were made.
    two = Holder(either, setting, tmp_path / "two", known_attempts={POISON: 1}, activation=uuid4())
    try:
        two.until(4, 2)
        assert seen(two.truth) == [*poison(2, 3, 4), *good(3, 4, 5)]
    finally:
        two.stage.end()


def test_attempts_that_become_known_after_a_takeover_count(either: House, tmp_path: Path) -> None:
    """The next holder is fed at once, before it has heard of the attempts that another one made last."""
    setting = either.setting(attempts=6, delay=MINUTE, exclusive=True)
    send_row(either, setting, fails=99)
    one = Holder(either, setting, tmp_path, max_attempts=6, blocked_seconds=-1.0)
    try:
        one.until(2, 1)
        one.run.change(replace(one.desired, known_attempts={POISON: 4}, blocked_seconds=0.1))
        one.until(5, 3)
        assert seen(one.truth) == [*good(1, 2), *poison(1, 5, 6), *good(3, 4, 5)]
        eventually(lambda: len(either.dead(setting)) == 1, "a dead letter")
    finally:
        one.stage.end()


def test_one_whose_attempts_turn_out_to_be_used_up_is_not_handled_again(
    either: House, tmp_path: Path
) -> None:
    setting = either.setting(attempts=4, delay=MINUTE, exclusive=True)
    send_row(either, setting, fails=99)
    one = Holder(either, setting, tmp_path, blocked_seconds=-1.0)
    try:
        one.until(2, 1)
        one.run.change(replace(one.desired, known_attempts={POISON: 4}, blocked_seconds=0.1))
        one.until(5, 1)
        assert seen(one.truth) == [*good(1, 2), *poison(1), *good(3, 4, 5)]
        eventually(lambda: len(either.dead(setting)) == 1, "a dead letter")
    finally:
        one.stage.end()


def test_a_lost_connection_changes_neither_order_nor_attempts(house: RealHouse, tmp_path: Path) -> None:
    setting = house.setting(attempts=9, delay=MINUTE, exclusive=True)
    send_row(house, setting, fails=3)
    wire = Wire(house.service.ports.amqp)
    account = replace(house.kma, url=f"amqp://{LOOPBACK}:{wire.port}")
    truth = tmp_path / "truth"
    desired = of(
        setting, ordered=True, blocked_seconds=-1.0, max_attempts=9, parameters={"truth_file": str(truth)}
    )  # fmt: skip
    one = Stage(tmp_path, [], connect=by_wire(account))
    one.run = type(one.run)(desired, "1", one.around)
    one.run.start()
    try:
        eventually(lambda: one.run.report().failed == 1, "the first failure")
        wire.drop()
        eventually(lambda: one.run.report().failed == 2, "the second attempt, by the broker", 60)
        one.run.change(replace(desired, blocked_seconds=0.0, retries_requested=1))
        eventually(lambda: one.run.report().handled == 6, "all of them", 40)
        assert seen(truth) == [*good(1, 2), *poison(1, 2, 3, 4), *good(3, 4, 5)]
    finally:
        one.end()
        wire.close()


@pytest.mark.kill
def test_a_killed_container_and_a_killed_broker_change_neither_order_nor_attempts() -> None:
    with throw_away_folder("ordered") as folder:
        service = ArtemisService.create(folder / "broker")
        service.start()
        house, ma = RealHouse(service), FakeMa()
        setting = house.setting(attempts=9, delay=MINUTE, exclusive=True)
        send_row(house, setting, fails=5)
        truth = folder / "truth"
        worker = Worker(folder, ma, house.kma)
        ma.want(
            of(setting, ordered=True, blocked_seconds=0.4, max_attempts=9,
            parameters={"truth_file": str(truth)})
        )  # fmt: skip
        try:
            worker.start()
            eventually(lambda: len(seen(truth)) >= 4, "its second attempt", 40)
            worker.kill()
            worker.start()
            made = len(seen(truth))
            eventually(lambda: len(seen(truth)) > made, "the next attempt", 40)
            service.kill()
            service.start()
            eventually(lambda: seen(truth)[-1:] == good(5), "the last one", 90)
            assert worker.stop() == 0
            order = [identity for identity, _ in seen(truth)]
            assert sorted(set(order), key=order.index) == ["ID:1", "ID:2", POISON, "ID:3", "ID:4", "ID:5"]
            assert order == sorted(order, key=["ID:1", "ID:2", POISON, "ID:3", "ID:4", "ID:5"].index)
            # An attempt that a kill cut off counts; so none is made twice under one number.
            attempts = [attempt for identity, attempt in seen(truth) if identity == POISON]
            assert attempts == sorted(set(attempts)) and attempts[-1] >= 6
        finally:
            worker.stop()
            ma.close()
            house.close()
            service.stop()


@pytest.mark.parametrize(
    "fault", [{"do": "raise", "type": "KeyError"}, {"do": "invalid"}], ids=["raises", "invalid"]
)
def test_one_that_shall_stay_is_tried_without_end(
    either: House, tmp_path: Path, fault: dict[str, Any]
) -> None:
    setting = either.setting(attempts=3, delay=MINUTE, exclusive=True)
    publish(either, setting, script({**fault, "first": 6}, POISON), script({"do": "ok"}, "ID:1"))
    one = Holder(either, setting, tmp_path, max_attempts=3, blocked_seconds=0.05, after_last=AfterLast.STAY)
    try:
        one.until(2, 6)
        assert seen(one.truth) == [*poison(1, 2, 3, 4, 5, 6, 7), *good(1)]
        assert not any(each["last_attempt"] for each in one.stage.records("protocol"))
        eventually(lambda: either.figures(setting).messages == 0, "all accepted")
        assert either.dead(setting) == []
    finally:
        one.stage.end()


def test_two_holders_take_turns_and_never_share(house: RealHouse, tmp_path: Path) -> None:
    """The queue feeds one of them; the other takes over where the first has stopped."""
    setting = house.setting(attempts=9, delay=MINUTE, exclusive=True)
    send_row(house, setting, fails=2)
    one = Holder(house, setting, tmp_path / "one", blocked_seconds=60.0)
    two = None
    try:
        one.until(2, 1)
        two = Holder(house, setting, tmp_path / "two", activation=uuid4(), known_attempts={POISON: 1})
        time.sleep(0.7)
        assert seen(two.truth) == []
        one.stage.end()
        two.until(4, 1)
        assert seen(two.truth) == [*poison(2, 3), *good(3, 4, 5)]
    finally:
        if one.run.alive:
            one.stage.end()
        if two is not None:
            two.stage.end()
