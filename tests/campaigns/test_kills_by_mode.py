"""`kill -9` of KMAs, agent processes and the broker while each message has an effect: what the receiver
counts."""

import random
from collections import Counter

import pytest

from broker.amqp.browser import AmqpBrowser
from broker.port import BrokerError
from tests.campaigns import campaign
from tests.campaigns.killing import kill_a_child, kill_a_process, let_go_on
from tests.product.house import House

pytestmark = pytest.mark.night

MODES = ("TRANSACTED", "AUTO", "DUPS_OK", "CLIENT")
MESSAGES, EVERY = 2000, 500
VICTIMS = ("kma", "child", "artemis")
# What the protocols of such deaths say. Of a child that was killed between two handlings there is none.
DEATHS = {"kma died", "signal:SIGKILL"}
# A kill of a server, or of the broker for each server, repeats a batch, and what its two handlers were at.
MOST_REPEATED = 100 + 2 * 2


@pytest.mark.parametrize("mode", MODES)
def test_kills_lose_no_effect_in_any_mode(house: House, mode: str) -> None:
    for seed in campaign.seeds_of(mode):
        campaign.keep_of(mode, seed, _run(house, mode, seed))


def _run(house: House, mode: str, seed: int) -> campaign.ModeFigures:
    key = f"{mode.lower().replace('_', '-')}-kills-{seed}"
    # A subscription that nobody works on: there the effects are counted.
    effects = house.setting(f"{key}-effects")
    address = house.setting(key, mode=mode, policy={"max_attempts": 10})
    house.enable(key)
    house.publish(address, [_body(n, effects, mode) for n in range(MESSAGES)])
    kills = _kill_in_turn(house, key, random.Random(seed))
    house.until("every message has ended", lambda: _ended(house, key), seconds=300)
    house.until("spools are empty", lambda: all(row["spool_rows"] == 0 for row in house.pages("servers/")))
    figures = _check(house, mode, key, effects, kills)
    house.call("POST", f"settings/{key}/disable/", {"reason": "the seed is over"})
    return figures


def _body(n: int, effects: str, mode: str) -> list[dict[str, object]]:
    """The effect is sent first: a kill finds most handlings after it. What sends waits for no batch, so in
    DUPS_OK the effect is the line that the agent writes itself."""
    sent: dict[str, object] = {"do": "send", "destination": effects, "body": str(n), "note": n}
    work: dict[str, object] = {"do": "sleep", "seconds": 0.02, "note": n}
    if mode == "DUPS_OK":
        return [work]
    return [sent, work, {"do": "acknowledge"}] if mode == "CLIENT" else [sent, work]


def _kill_in_turn(house: House, key: str, chance: random.Random) -> int:
    """The number of processes that were killed, each of which was at work and is dead."""
    victims = chance.sample(VICTIMS, len(VICTIMS))
    killed: list[int] = []
    for victim, moment in zip(victims, range(EVERY, MESSAGES, EVERY), strict=True):
        let_go_on(house, key, moment + chance.randrange(-100, 100))
        if victim == "child":
            pids = [kill_a_child(house, chance, server) for server in house.servers]
        elif victim == "kma":
            pids = [kill_a_process(house, f"kma-{chance.choice(house.servers)}")]
        else:
            pids = [kill_a_process(house, victim)]
        assert len(set(house.truth(key))) < MESSAGES, f"{victim}: too late, all messages had begun"
        killed += pids
    assert len(set(killed)) == len(killed)
    house.until("every kill has hit", lambda: not _running(house) & set(killed))
    return len(killed)


def _running(house: House) -> set[int]:
    """The broker, the KMAs and their agent processes."""
    found = {house.pid(name) for name in ("artemis", *(f"kma-{server}" for server in house.servers))}
    return found | {pid for server in house.servers for pid in house.agent_processes(server)}


def _ended(house: House, key: str) -> bool:
    try:
        return house.count(key, f"DLQ.{key}") == [0, 0]
    except BrokerError:  # it is on its way back
        return False


def _check(house: House, mode: str, key: str, effects: str, kills: int) -> campaign.ModeFigures:
    attempts = Counter(house.truth(key))
    seen = attempts if mode == "DUPS_OK" else _effects(house, effects, f"{key}-effects")
    lost, unexpected = set(range(MESSAGES)) - set(seen), set(seen) - set(range(MESSAGES))
    twice = sum(seen.values()) - len(seen)
    assert (lost, unexpected) == (set(), set())
    assert set(attempts) == set(range(MESSAGES)) and house.count("DLQ.unknown") == [0]
    if mode == "TRANSACTED":
        assert twice == 0, f"sent twice: {[n for n, times in seen.items() if times > 1]}"
    if mode == "DUPS_OK":
        assert twice <= (kills - 1 + len(house.servers)) * MOST_REPEATED
    told = Counter(row["exception_type"] for row in house.protocols(key))
    assert set(told) <= DEATHS, "nothing failed but by the kills"
    return campaign.ModeFigures(kills, MESSAGES, sum(attempts.values()), len(lost), len(unexpected), twice)


def _effects(house: House, address: str, queue: str) -> Counter[int]:
    browser = AmqpBrowser(house.account("ma-ops", "amqp"))
    try:
        found = browser.browse(address, queue, limit=100 * MESSAGES)
        return Counter(int(each.message.body.value) for each in found if each.message is not None)
    finally:
        browser.close()
