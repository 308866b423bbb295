"""The main job, counted at the broker: published, handled or dead, given back to its own subscription
only."""

from collections import Counter

from tests.product import scripted
from tests.product.house import House

MESSAGES, ATTEMPTS = 2000, 4


def test_two_thousand_messages_with_forty_poisoned(house: House) -> None:
    main_job(house, MESSAGES)


def main_job(house: House, messages: int) -> None:
    """One of fifty is poisoned."""
    poisoned = messages // 50
    address = house.setting("bulk", concurrency=2)
    house.setting("bystander", destination=address)
    house.enable("bulk")
    bodies = [scripted.poisoned(n) if n % 50 == 7 else scripted.ok(n) for n in range(messages)]
    house.publish(address, bodies)
    house.until("everything is handled or dead", lambda: house.count("bulk", "DLQ.bulk") == [0, poisoned])

    attempts = Counter(house.truth("bulk"))
    assert attempts == {n: ATTEMPTS if n % 50 == 7 else 1 for n in range(messages)}
    house.until("every failure is reported", lambda: len(house.protocols("bulk")) >= poisoned * ATTEMPTS)
    protocols = house.protocols("bulk")
    assert len(protocols) == poisoned * ATTEMPTS
    assert {row["server_name"] for row in protocols} == {"srv-1", "srv-2"}
    assert Counter(row["attempt"] for row in protocols) == dict.fromkeys(range(1, ATTEMPTS + 1), poisoned)

    house.until("every letter is indexed", lambda: len(house.dead_letters("bulk")) == poisoned)
    letters = house.dead_letters("bulk")
    assert {row["exception_type"] for row in letters} == {"RuntimeError"}
    assert house.count("DLQ.bystander", "DLQ.unknown", "bystander") == [0, 0, messages]

    house.mend("bulk")
    job = house.replay_all("bulk")
    assert (job["state"], job["total"]) == ("done", poisoned)
    house.until("the mended agent has handled all", lambda: house.count("bulk", "DLQ.bulk") == [0, 0])
    assert house.count("bystander") == [messages], "a replay must not reach other subscriptions"
    path = f"replays/{job['id']}/"
    house.until("outcomes are known", lambda: house.call("GET", path)["outcomes"].get("handled") == poisoned)
    assert Counter(house.truth("bulk")) == {n: ATTEMPTS + 1 if n % 50 == 7 else 1 for n in range(messages)}
    assert len(house.protocols("bulk")) == poisoned * ATTEMPTS
