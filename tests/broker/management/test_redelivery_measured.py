"""The preview of a redelivery schedule against the real broker: three policies, measured.

A message's time is taken from the settlement to the next delivery. What disturbs it, a busy machine, only
makes it longer: so the shortest of some messages is compared, and no message may be back before its time. The
broker has no scan that redeliveries wait for.
"""

import time
from uuid import uuid4

import pytest

from broker.management.desired_topology import setting_topology
from broker.management.topology import apply
from broker.port import Settle
from contract.redelivery import RedeliveryPolicy, schedule
from tests.broker.houses import DLA, RealHouse, Setting

pytestmark = pytest.mark.night

MESSAGES = 8
IN_A_BAND = 100
# All messages of one round come back together: a machine that is held up once holds all of them up.
ROUNDS = 3
# The clocks of two processes, and whole milliseconds.
CLOCKS = 0.02


def setting_with(house: RealHouse, policy: RedeliveryPolicy) -> Setting:
    key = f"t{uuid4().hex[:12]}"
    made = Setting(key, f"test.{key}")
    apply(house.management, setting_topology(key, made.address, policy, False, DLA))
    return made


def measured(house: RealHouse, policy: RedeliveryPolicy, messages: int) -> list[list[float]]:
    """By redelivery k = 1, 2, …: the seconds that each message took, until all of them are dead."""
    setting = setting_with(house, policy)
    consumer, owner = house.consume(setting, window=messages)
    house.publish(setting.address, *map(str, range(messages)))
    failed_at: dict[str, float] = {}
    took: list[list[float]] = [[] for _ in range(policy.max_attempts - 1)]
    for _ in range(messages * policy.max_attempts):
        got = owner.got()
        if got.text in failed_at:
            took[got.count - 1].append(got.at - failed_at[got.text])
        failed_at[got.text] = time.monotonic()
        consumer.settle([(got.tag, Settle.FAIL)])
    house.until_dead(setting, messages)
    consumer.stop()
    return took


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        (RedeliveryPolicy(4, 500, 2.0, 1500), [0.5, 1.0, 1.5]),
        # Without a maximum of its own: 10 × 400 ms.
        (RedeliveryPolicy(4, 400, 4.0), [0.4, 1.6, 4.0]),
    ],
)
def test_a_message_comes_back_when_the_preview_says(
    real: RealHouse, policy: RedeliveryPolicy, seconds: list[float]
) -> None:
    planned = schedule(policy)[1:]
    assert [each.longest.total_seconds() for each in planned] == seconds

    rounds = [measured(real, policy, MESSAGES) for _ in range(ROUNDS)]
    for number, expected in enumerate(planned):
        wanted, took = expected.longest.total_seconds(), [each[number] for each in rounds]
        assert [len(each) for each in took] == [MESSAGES] * ROUNDS
        assert wanted - CLOCKS <= min(map(min, took)) <= wanted * 1.1, took


def test_collision_avoidance_spreads_the_redeliveries_over_the_band_of_the_preview(real: RealHouse) -> None:
    policy = RedeliveryPolicy(3, 1200, 1.0, 18_000, 0.5)
    first, *others = schedule(policy)
    assert first.latest.total_seconds() == 0 and len(others) == 2

    for expected, took in zip(others, measured(real, policy, IN_A_BAND), strict=True):
        least, most = expected.shortest.total_seconds(), expected.longest.total_seconds()
        assert (least, most) == (0.6, 1.8)
        in_order = sorted(took)
        # 100 even draws: the outermost are near the edges. Nine tenths of them, that the few which a busy
        # machine held up do not count; and nobody says how long it held up the first.
        assert least - CLOCKS <= in_order[0] < (3 * least + most) / 4
        assert (least + most) / 2 < in_order[IN_A_BAND * 9 // 10] <= most * 1.1
        # As many are early as are late, whose middle is the delay itself.
        early = sum(each < (least + most) / 2 for each in took)
        assert IN_A_BAND // 4 < early < IN_A_BAND * 3 // 4
