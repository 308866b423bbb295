"""An ordered subscription in the whole product: its order and its attempts outlive a server and the broker,
and a letter that is given back goes to the end."""

import json
import os
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from broker.amqp.publisher import AmqpPublisher
from broker.port import BrokerError, Message, Outgoing
from contract.typed import Typed
from tests.product import scripted
from tests.product.house import House

KEY = "inorder"
FIRST, POISON, LAST = (0, 1, 2), 3, (4, 5, 6, 7)


def test_its_order_and_its_attempts_outlive_a_server_and_the_broker(house: House) -> None:
    address = house.setting(KEY, ordered=True, concurrency=1, blocked_seconds=-1, policy={"max_attempts": 4})
    house.enable(KEY)
    house.until("both servers wait for it", lambda: house.call("GET", f"queues/{KEY}/")["consumers"] == 2)
    bodies = [scripted.ok(n) for n in (*FIRST, POISON, *LAST)]
    bodies[POISON] = scripted.poisoned(POISON)
    house.publish_with_ids(address, {f"ID:{KEY}-{body['note']}": body for body in bodies})

    # It waits for a person; its server is lost for good, and the other one goes on with the second attempt.
    lost = _fails(house, 1)["server_name"]
    _let_all_hear(house)
    house.kill(f"kma-{lost}")
    house.runner.stop(f"kma-{lost}")
    second = _fails(house, 2)
    assert second["server_name"] != lost

    house.kill("artemis")
    _fails(house, 3)
    assert house.truth(KEY) == [*FIRST, POISON, POISON, POISON]
    house.until("all others wait behind it", lambda: house.count(KEY) == [1 + len(LAST)])

    house.call("POST", f"settings/{KEY}/retry/", {})
    _fails(house, 4)
    house.until("the next ones have followed", lambda: house.count(KEY, f"DLQ.{KEY}") == [0, 1])
    assert house.truth(KEY) == [*FIRST, *[POISON] * 4, *LAST]
    assert sorted(row["attempt"] for row in house.protocols(KEY)) == [1, 2, 3, 4]
    house.runner.start(f"kma-{lost}")

    # Mended and given back, it comes after what came meanwhile.
    house.call("POST", f"settings/{KEY}/disable/", {"reason": "to be mended"})
    house.until("the servers have let go", lambda: house.call("GET", f"queues/{KEY}/")["consumers"] == 0)
    house.call("PATCH", f"settings/{KEY}/", {"agent": "test.mended"})
    house.until("it may run", lambda: house.call("GET", f"settings/{KEY}/")["provision_state"] == "ready")
    house.publish_with_ids(address, {f"ID:{KEY}-{n}": scripted.ok(n) for n in (8, 9)})
    house.until("its letter is known", lambda: len(house.dead_letters(KEY)) == 1)
    ahead = house.call("POST", "preflight/", {"setting": KEY, "all": True})
    assert {"ordered": 2}.items() <= {each["code"]: each["n"] for each in ahead["warnings"]}.items()
    house.replay_all(KEY)
    house.enable(KEY)
    house.until("all are handled", lambda: house.count(KEY, f"DLQ.{KEY}") == [0, 0])
    assert house.truth(KEY)[-3:] == [8, 9, POISON]
    house.call("POST", f"settings/{KEY}/disable/", {"reason": "over"})


def test_a_person_gives_up_what_blocks(house: House) -> None:
    key = "givenup"
    address = house.setting(key, ordered=True, concurrency=1, blocked_seconds=-1, after_last="stay")
    house.enable(key)
    bodies = [scripted.ok(0), scripted.poisoned(1), scripted.ok(2), scripted.ok(3)]
    house.publish_with_ids(address, {f"ID:{key}-{body['note']}": body for body in bodies})
    house.until("it blocks", lambda: house.call("GET", f"settings/{key}/blocking/")["blocking"] is not None)
    told = house.call("GET", f"settings/{key}/blocking/")["blocking"]
    assert (told["message_key"], told["attempt"]) == (f"ID:{key}-1", 1)
    assert house.count(key, f"DLQ.{key}") == [3, 0]

    house.call("POST", f"settings/{key}/blocking/", {**_meant(told), "reason": "nonsense"})
    house.until("the next ones have followed", lambda: house.count(key, f"DLQ.{key}") == [0, 1])
    assert house.truth(key) == [0, 1, 2, 3]
    house.until("its letter is explained", lambda: [row["attempt"] for row in house.protocols(key)] == [1, 1])
    failed, noted = sorted(house.protocols(key), key=lambda row: str(row["disposition"]))
    assert (failed["disposition"], noted["disposition"]) == ("", "dlq")
    (letter,) = house.dead_letters(key)
    assert (letter["exception_type"], letter["fingerprint"]) == (
        failed["exception_type"],
        failed["fingerprint"],
    )
    house.call("POST", f"settings/{key}/disable/", {"reason": "over"})


def _meant(told: dict[str, Any]) -> dict[str, Any]:
    return {name: told[name] for name in ("message_key", "attempt")}


def _let_all_hear(house: House) -> None:
    """What the MA knows now: who takes over before it has heard of an attempt uses that number again."""
    _are_answered_after(house, datetime.now(UTC))
    _are_answered_after(house, datetime.now(UTC))


def _are_answered_after(house: House, instant: datetime) -> None:
    def seen() -> list[datetime]:
        rows = [house.call("GET", f"servers/{name}/") for name in house.servers]
        return [datetime.fromisoformat(row["last_seen_at"]) for row in rows]

    house.until("both servers were answered", lambda: min(seen()) > instant)


def _fails(house: House, attempt: int) -> dict[str, Any]:
    """The protocol of this attempt, once the site has it."""

    def found() -> list[dict[str, Any]]:
        return [row for row in house.protocols(KEY) if row["attempt"] == attempt]

    house.until(f"attempt {attempt} is reported", lambda: bool(found()))
    return found()[0]


# Of each kind; a thousand of them: `MA_TEST_MANY=1000 ./ma test tests/product/test_ordered.py -k killed`.
MANY = int(os.environ.get("MA_TEST_MANY", "40"))
KILLED = ("worker", "kma-srv-1", "artemis", "kma-srv-2", "feed")


@pytest.mark.parametrize("in_order", ["ahead", "behind"])
def test_they_come_in_their_order_whatever_is_killed(house: House, in_order: str) -> None:
    """Dead letters among as many that wait, and a producer that goes on. What was being handled when its
    server or the broker was killed comes again, right away. The destination allows more attempts than there
    are kills, which the broker counts."""
    key = f"line-{in_order}"
    address = house.setting(
        key, ordered=True, concurrency=1, blocked_seconds=0, policy={"max_attempts": 100}, breaker_m=10_000
    )
    house.enable(key)
    dead, waiting = range(MANY), range(MANY, 2 * MANY)
    house.publish_with_ids(address, {f"ID:{key}-{n}": scripted.invalid(n) for n in dead})
    house.until("all are dead", lambda: house.count(key, f"DLQ.{key}") == [0, MANY], 600)
    house.call("POST", f"settings/{key}/disable/", {"reason": "to be mended"})
    house.until("the servers have let go", lambda: house.call("GET", f"queues/{key}/")["consumers"] == 0)
    house.call("PATCH", f"settings/{key}/", {"agent": "test.mended"})
    house.publish_with_ids(address, {f"ID:{key}-{n}": scripted.ok(n) for n in waiting})
    house.until("all letters are known", lambda: len(house.dead_letters(key)) == MANY)
    file = house.data / f"truth-{key}.jsonl"
    file.unlink()

    producer = _Producer(house, address, key, 2 * MANY)
    killer = _Killer(house, key)
    try:
        how: dict[str, Any] = {"in_order": in_order, "per_second": max(4.0, MANY / 50)}
        how |= {"hold_minutes": 60} if in_order == "ahead" else {}
        job = house.job(key, all=True, reason="mended", **how)
        if in_order == "ahead":
            path = f"replays/{job['id']}/"
            house.until("it is held", lambda: _answer(house, path)["hold"] == "held")
        house.enable(key)
        house.until("the letters are handled", lambda: set(dead) <= set(house.truth(key)), 900)
        killer.stop()
        house.until(
            "the job is over", lambda: _answer(house, f"replays/{job['id']}/")["state"] == "done", 600
        )
    finally:
        killer.stop()
        published = producer.stop()
    every = {*dead, *waiting, *range(2 * MANY, published)}
    house.until("everything is handled", lambda: set(house.truth(key)) == every, 900)
    told = house.truth(key)
    once = list(dict.fromkeys(told))
    if in_order == "ahead":
        assert once == [*dead, *range(MANY, published)]
    assert [n for n in once if n in dead] == list(dead)
    assert [n for n in once if n not in dead] == list(range(MANY, published))
    assert len(told) - len(once) <= killer.kills, "what was handled twice was in its agent's hands at a kill"
    assert house.count(key, f"DLQ.{key}") == [0, 0]
    assert killer.kills >= len(KILLED)
    house.call("POST", f"settings/{key}/disable/", {"reason": "over"})


def _answer(house: House, path: str) -> dict[str, Any]:
    return dict(house.call("GET", path))


class _Producer:
    """Publishes one message after the other, each until the broker has it: while it is away again and
    again, with an id by which the broker knows it."""

    def __init__(self, house: House, address: str, key: str, first: int) -> None:
        self._house, self._address, self._key, self._next = house, address, key, first
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(0.2):
            self._one()

    def _one(self) -> None:
        n = self._next
        body, own = Typed("string", json.dumps(scripted.ok(n))), f"{self._key}-{n}"
        message = Message(
            body=body,
            message_id=Typed("string", f"ID:{own}"),
            properties={"_AMQ_DUPL_ID": Typed("string", own)},
        )
        while True:
            publisher = AmqpPublisher(self._house.account("publisher", "amqp"))
            try:
                publisher.publish([Outgoing(self._address, message)])
            except BrokerError:
                time.sleep(0.5)
            else:
                self._next = n + 1
                return
            finally:
                publisher.close()

    def stop(self) -> int:
        """The number that would have been the next one."""
        self._over.set()
        self._thread.join()
        return self._next


class _Killer:
    """Kills one process after the other, each when some more messages were handled, and some before."""

    def __init__(self, house: House, key: str) -> None:
        self.kills = 0
        self._house, self._key = house, key
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self.kills < max(len(KILLED), MANY // 20) and not self._over.wait(0.1):
            name = KILLED[self.kills % len(KILLED)]
            if self._house.pid(name):
                self._house.kill(name)
                self.kills += 1
            self._over.wait(3.0)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
