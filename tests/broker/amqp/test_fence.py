"""Idle timeouts on both sides: who works long keeps its link, who hangs loses it."""

import signal
import subprocess
import sys
import time

import pytest

from broker.port import Settle
from tests.broker.houses import RealHouse, Setting, eventually

# Seconds, more than the broker's amqpIdleTimeout.
LONGER_THAN_IDLE = 15.0


def holder(real: RealHouse, setting: Setting) -> subprocess.Popen[str]:
    arguments = (real.kma.url, real.kma.user, real.kma.password, setting.address, setting.key)
    command = [sys.executable, "-m", "tests.broker.amqp.fence_holder", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_message_held_longer_than_the_idle_timeout_can_still_be_accepted(real: RealHouse) -> None:
    setting = real.setting()
    consumer, owner = real.consume(setting)
    real.publish(setting.address, "long")
    got = owner.got()
    owner.nothing(LONGER_THAN_IDLE)
    consumer.settle([(got.tag, Settle.ACCEPT)])
    eventually(lambda: real.figures(setting).messages == 0)
    owner.nothing(0.1)


def test_a_holder_that_hangs_is_dropped_and_the_next_one_is_fed_with_all_that_it_held(
    real: RealHouse,
) -> None:
    setting = real.setting(exclusive=True)
    hanging = holder(real, setting)
    try:
        assert line(hanging) == "opened"
        real.publish(setting.address, "held")
        assert line(hanging) == "held"
        _, owner = real.consume(setting)
        real.publish(setting.address, "next")
        assert line(hanging) == "next"
        owner.nothing()
        hanging.send_signal(signal.SIGSTOP)
        taken = [owner.got(timeout=60.0), owner.got(timeout=60.0)]
        assert [got.text for got in taken] == ["held", "next"]
        # Whether this kind of loss costs an attempt is the broker's decision: both were seen.
        assert {got.count for got in taken} <= {0, 1}
        hanging.send_signal(signal.SIGCONT)
        assert line(hanging) == "lost"
    finally:
        hanging.send_signal(signal.SIGCONT)
        hanging.kill()
        hanging.wait()
        if hanging.stdout is not None:
            hanging.stdout.close()


@pytest.mark.kill
def test_a_killed_holder_is_followed_at_once(real: RealHouse) -> None:
    setting = real.setting(exclusive=True)
    killed = holder(real, setting)
    try:
        assert line(killed) == "opened"
        _, owner = real.consume(setting)
        real.publish(setting.address, "held")
        assert line(killed) == "held"
    finally:
        killed_at = time.monotonic()
        killed.kill()
        killed.wait()
        if killed.stdout is not None:
            killed.stdout.close()
    got = owner.got()
    assert got.text == "held"
    assert got.count in (0, 1)  # the broker decides
    assert got.at >= killed_at
