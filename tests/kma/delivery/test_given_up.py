"""A person gives up the message that blocks an ordered subscription: it is a dead letter, and the next one
follows."""

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.messages import BlockedMessage, GiveUpRequest
from contract.outcomes import AfterLast
from tests.broker.houses import House, RealHouse
from tests.kma.delivery.test_ordered import MINUTE, POISON, Holder, good, poison, seen, send_row
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually
from tests.kma.queues import of
from tests.kma.worker import Worker
from tests.services import throw_away_folder

pytestmark = pytest.mark.process

DIGEST = BlockedMessage(POISON, 1).digest


@pytest.mark.parametrize(
    "after_last", [AfterLast.DLQ, AfterLast.STAY, AfterLast.DISCARD], ids=lambda each: each.value
)
def test_it_goes_to_the_dead_letters_and_the_next_follows(
    either: House, tmp_path: Path, after_last: AfterLast
) -> None:
    setting = either.setting(attempts=9, delay=MINUTE, exclusive=True)
    send_row(either, setting, fails=99)
    one = Holder(either, setting, tmp_path, max_attempts=9, blocked_seconds=-1.0, after_last=after_last)
    try:
        one.until(2, 1)
        one.run.change(replace(one.desired, give_up_request=GiveUpRequest(1, DIGEST, 1)))
        one.until(5, 1)
        assert seen(one.truth) == [*good(1, 2), *poison(1), *good(3, 4, 5)]
        assert one.run.report().problems == () and one.run.report().blocked is None
        failed, noted = one.stage.records("protocol")
        assert noted["exception_type"] == failed["exception_type"] == "KeyError"
        assert noted["fingerprint"] == failed["fingerprint"]
        assert noted["exception_text"] == failed["exception_text"]
        assert [_fate(each) for each in (failed, noted)] == [(False, True, ""), (True, False, "dlq")]
        eventually(lambda: len(either.dead(setting)) == 1, "a dead letter")
        eventually(lambda: either.figures(setting).messages == 0, "all accepted")
    finally:
        one.stage.end()


def _fate(protocol: dict[str, Any]) -> tuple[bool, bool, str]:
    return protocol["last_attempt"], protocol["counted"], protocol["disposition"]


def test_a_wish_for_another_message_or_attempt_changes_nothing(either: House, tmp_path: Path) -> None:
    setting = either.setting(attempts=9, delay=MINUTE, exclusive=True)
    send_row(either, setting, fails=2)
    one = Holder(either, setting, tmp_path, max_attempts=9, blocked_seconds=-1.0)
    try:
        one.until(2, 1)
        one.run.change(
            replace(one.desired, give_up_request=GiveUpRequest(1, BlockedMessage("ID:another", 1).digest, 1))
        )
        one.run.change(replace(one.desired, give_up_request=GiveUpRequest(2, DIGEST, 2)))
        # Neither is remembered for when it would fit.
        one.run.change(replace(one.desired, give_up_request=GiveUpRequest(2, DIGEST, 2), retries_requested=1))
        one.until(2, 2)
        one.run.change(replace(one.desired, give_up_request=GiveUpRequest(2, DIGEST, 2), retries_requested=2))
        one.until(6, 2)
        assert seen(one.truth) == [*good(1, 2), *poison(1, 2, 3), *good(3, 4, 5)]
        assert either.dead(setting) == []
    finally:
        one.stage.end()


def test_a_run_that_begins_does_not_heed_an_old_wish(either: House, tmp_path: Path) -> None:
    setting = either.setting(attempts=9, delay=MINUTE, exclusive=True)
    send_row(either, setting, fails=1)
    old = GiveUpRequest(7, DIGEST, 1)
    one = Holder(either, setting, tmp_path, max_attempts=9, blocked_seconds=-1.0, give_up_request=old)
    try:
        one.until(2, 1)
        one.run.change(replace(one.desired, give_up_request=old, retries_requested=1))
        one.until(6, 1)
        assert either.dead(setting) == []
    finally:
        one.stage.end()


@pytest.mark.kill
def test_killed_at_any_moment_it_is_first_in_the_queue_or_a_dead_letter(house: RealHouse) -> None:
    """Six times asked, each time the container is killed a little later; then once more, without."""
    with throw_away_folder("given-up") as folder:
        ma, moment = FakeMa(), random.Random(8)
        setting = house.setting(attempts=99, delay=MINUTE, exclusive=True)
        send_row(house, setting, fails=99)
        truth = folder / "truth"
        wanted = of(
            setting, ordered=True, blocked_seconds=-1.0, max_attempts=99,
            parameters={"truth_file": str(truth)}
        )  # fmt: skip
        worker = Worker(folder, ma, house.kma)
        ma.want(wanted)

        def asked(number: int) -> bool:
            """Whether it blocks still, and then that it was given up."""
            eventually(
                lambda: _blocked(ma) is not None or seen(truth)[-1:] == good(5), "blocked or through", 40
            )
            blocked = _blocked(ma)
            if blocked is not None:
                ma.want(
                    replace(wanted, give_up_request=GiveUpRequest(number, blocked.digest, blocked.attempt))
                )
            return blocked is not None

        try:
            worker.start()
            for number in range(1, 7):
                if not asked(number):
                    break
                time.sleep(moment.uniform(0.0, 0.3))
                worker.kill()
                assert house.figures(setting).messages + len(house.dead(setting)) >= 1
                ma.heartbeats.clear()
                worker.start()
            asked(7)
            eventually(lambda: seen(truth)[-1:] == good(5), "the last one", 60)
            assert worker.stop() == 0
            order = [identity for identity, _ in seen(truth)]
            # A kill may cut off the handling of one that followed: it is handled again.
            assert list(dict.fromkeys(order)) == ["ID:1", "ID:2", POISON, "ID:3", "ID:4", "ID:5"]
            assert len(house.dead(setting)) == 1
            assert house.figures(setting).messages == 0
        finally:
            worker.stop()
            ma.close()


def _blocked(ma: FakeMa) -> BlockedMessage | None:
    found = [run["blocked"] for run in (ma.last["runs"] if ma.last else ()) if run["blocked"]]
    return BlockedMessage(**found[0]) if found else None
