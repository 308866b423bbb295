"""Tasks that Redis does not take: nobody waits for them twice, nothing breaks."""

import pytest
from kombu.exceptions import OperationalError

from console import task_queue


class Redis:
    def __init__(self) -> None:
        self.clock, self.costs, self.answers, self.asked = 1000.0, 0.0, True, 0

    def take(self, *_: object) -> None:
        self.asked += 1
        self.clock += self.costs
        if not self.answers:
            raise OperationalError("away")


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Redis:
    one = Redis()
    monkeypatch.setattr(task_queue, "_send", one.take)
    monkeypatch.setattr(task_queue, "_away_until", 0.0)
    monkeypatch.setattr("console.task_queue.time.monotonic", lambda: one.clock)
    return one


def test_a_refused_connection_costs_nothing_so_the_next_one_asks_again(redis: Redis) -> None:
    redis.answers = False
    assert [task_queue.send("kma.poll") for _ in range(3)] == [False] * 3
    assert redis.asked == 3
    redis.answers = True
    assert task_queue.send("kma.poll")


def test_while_it_hangs_one_in_a_while_waits(redis: Redis) -> None:
    redis.answers, redis.costs = False, 0.8
    assert [task_queue.send("kma.poll") for _ in range(5)] == [False] * 5
    assert redis.asked == 1, "the others would wait too"
    redis.clock += task_queue.PAUSE_SECONDS
    redis.answers = True
    assert task_queue.send("kma.poll")
    assert redis.asked == 2
