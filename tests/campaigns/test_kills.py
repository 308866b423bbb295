"""`kill -9` of everything in the middle of the main job. At-least-once: counted, and nothing is lost or told
twice."""

import json
import random
from collections import Counter

import pytest

from broker.port import BrokerError
from tests.campaigns import campaign
from tests.campaigns.killing import kill_a_child, kill_a_process, let_go_on
from tests.product import scripted
from tests.product.house import House

pytestmark = pytest.mark.night

MESSAGES = 2000
POISONED = frozenset(n for n in range(MESSAGES) if n % 50 == 7)
VICTIMS = ("child", "child", "web", "kma-srv-1", "kma-srv-2", "artemis", "feed", "worker", "redis")


def test_kills_lose_nothing_and_tell_nothing_twice(house: House) -> None:
    for seed in campaign.seeds():
        campaign.keep(seed, _run(house, seed))


def _run(house: House, seed: int) -> campaign.Figures:
    key = f"kills-{seed}"
    address = house.setting(key, concurrency=2, mode="TRANSACTED")
    house.enable(key)
    house.publish(address, [_body(n) for n in range(MESSAGES)])
    _kill_in_the_middle(house, key, random.Random(seed))
    house.until("every message has ended", lambda: _ended(house, key), seconds=300)

    house.until("every letter is indexed", lambda: len(house.dead_letters(key)) >= len(POISONED))
    house.until("spools are empty", lambda: all(row["spool_rows"] == 0 for row in house.pages("servers/")))
    figures = _check(house, key)
    house.call("POST", f"settings/{key}/disable/", {"reason": "the seed is over"})
    return figures


def _body(n: int) -> scripted.Body:
    return scripted.poisoned(n) if n in POISONED else scripted.slow(n, 0.01)


def _kill_in_the_middle(house: House, key: str, chance: random.Random) -> None:
    victims = chance.sample(VICTIMS, len(VICTIMS))
    moments = sorted(chance.randrange(50, MESSAGES - 300) for _ in victims)
    for victim, moment in zip(victims, moments, strict=True):
        let_go_on(house, key, moment)
        if victim == "child":
            kill_a_child(house, chance)
        else:
            kill_a_process(house, victim)


def _ended(house: House, key: str) -> bool:
    try:
        return house.count(key, f"DLQ.{key}") == [0, len(POISONED)]
    except BrokerError:  # it is on its way back
        return False


def _check(house: House, key: str) -> campaign.Figures:
    attempts = Counter(house.truth(key))
    assert set(attempts) == set(range(MESSAGES)), "every message was handled at least once"

    letters = {json.loads(row["body_text"])["note"]: row["message_key"] for row in house.dead_letters(key)}
    assert set(letters) == POISONED, "what cannot succeed is dead, everything else is handled"
    assert len(house.dead_letters(key)) == house.count(f"DLQ.{key}")[0] == len(POISONED), (
        "once each, index as broker"
    )

    assert house.count("DLQ.unknown") == [0], "and nowhere else, also after the broker's death"

    protocols = house.protocols(key)
    assert len({row["id"] for row in protocols}) == len(protocols)
    told = Counter(row["message_key"] for row in protocols)
    for n, message_key in letters.items():
        # One that was killed between the start in the journal and the line in the agent's own file has only
        # the former.
        most = attempts[n] + len(VICTIMS)
        assert attempts[n] <= told[message_key] <= most, f"message {n}: an attempt without protocol"
    return campaign.Figures(len(VICTIMS), MESSAGES, sum(attempts.values()), len(letters), len(protocols))
