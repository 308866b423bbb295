"""`kill -9` of everything in the middle of the main job. At-least-once: counted, and nothing is lost or told twice."""

import json
import os
import signal
from collections import Counter

from tests.acceptance import scripted
from tests.acceptance.house import House

MESSAGES = 2000
POISONED = 40


def test_kills_lose_nothing_and_tell_nothing_twice(house: House) -> None:
    address = house.setting("kills", concurrency=2, mode="TRANSACTED")
    house.enable("kills")
    poisoned = {n for n in range(MESSAGES) if n % 50 == 7}
    bodies = [scripted.poisoned(n) if n in poisoned else scripted.slow(n, 0.01) for n in range(MESSAGES)]
    house.publish(address, bodies)

    house.until("it is under way", lambda: len(house.truth("kills")) > 100)
    _kill_a_child(house)
    house.until("it goes on", lambda: len(house.truth("kills")) > 300)
    house.kill("web")
    house.until("it goes on", lambda: len(house.truth("kills")) > 500)
    house.kill("kma-srv-1")
    house.until("it goes on", lambda: len(house.truth("kills")) > 800)
    house.kill("artemis")
    house.until("the feed is killed too", lambda: bool(house.pid("feed")))
    house.kill("feed")

    house.until("every message has ended", lambda: _ended(house), seconds=300)
    attempts = Counter(house.truth("kills"))
    assert set(attempts) == set(range(MESSAGES)), "every message was handled at least once"
    house.until("every letter is indexed", lambda: len(house.dead_letters("kills")) >= house.count("DLQ.kills")[0])
    letters = house.dead_letters("kills")
    dead = house.count("DLQ.kills")[0]
    assert len(letters) == dead
    ended = {json.loads(row["body_text"])["note"] for row in letters}
    assert poisoned <= ended, "what cannot succeed is dead, not lost"

    house.until("spools are empty", lambda: all(row["spool_rows"] == 0 for row in house.pages("servers/")))
    protocols = house.protocols("kills")
    assert len({row["id"] for row in protocols}) == len(protocols)
    # A failed attempt whose spool row was written has its protocol; one that was killed before has the journal's.
    # A broker that dies forgets settlements in flight, so there may be more attempts than the policy allows.
    assert len(protocols) >= len(poisoned) * 4 - _in_flight(house)
    assert len(protocols) <= sum(attempts.values()) + _in_flight(house)


def _ended(house: House) -> bool:
    try:
        waiting, dead = house.count("kills", "DLQ.kills")
    except Exception:  # the broker is on its way back
        return False
    return waiting == 0 and dead >= POISONED


def _in_flight(house: House) -> int:
    """Handlings that one kill can touch: all children of both servers."""
    return 2 * 2 * len(house.servers)


def _kill_a_child(house: House) -> None:
    children = [pid for server in house.servers for pid in house.agent_processes(server)]
    os.kill(children[0], signal.SIGKILL)
