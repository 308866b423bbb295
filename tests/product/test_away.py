"""The MA is away while failures happen: they arrive once, later."""

import time
from collections import Counter

from tests.product import scripted
from tests.product.house import House

FAILURES = 100


def test_a_hundred_failures_while_the_site_is_down_arrive_once(house: House) -> None:
    address = house.setting("away", policy={"max_attempts": 1}, concurrency=2)
    house.enable("away")
    house.until("it runs", lambda: house.call("GET", "queues/away/")["consumers"] >= 1)
    house.runner.stop("web")
    began = time.monotonic()
    house.publish(address, [scripted.poisoned(n) for n in range(FAILURES)])
    house.until("all failed while the site was down", lambda: house.count("DLQ.away") == [FAILURES])
    time.sleep(max(0.0, 30 - (time.monotonic() - began)))
    house.runner.start("web")
    house.until("all are reported", lambda: len(house.protocols("away")) >= FAILURES)
    protocols = house.protocols("away")
    assert len(protocols) == FAILURES
    assert set(Counter(row["message_key"] for row in protocols).values()) == {1}
