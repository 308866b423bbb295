"""A replay, as an MA's worker asks its broker for it, on a host of tests: AMQP and STOMP addresses, password,
number of letters. Prints how far it is, and at the end what came of every letter."""

import sys
import time
from contextlib import suppress

from broker.amqp.codec import decode
from broker.management.dead_letters import move_dead_letters
from broker.port import BrokerError, Settle
from tests.broker.houses import DLA, RealHouse, Setting, orig_id
from tests.network.traffic import Brokers, again, say, taken

# Few at a time and seldom, so that there is time to kill a broker: 40 moves, each behind a walk.
SLICE, PAUSE = 50, 0.3


def main(amqp_url: str, stomp_address: str, password: str, letters: int) -> None:
    house = RealHouse(Brokers(amqp_url, stomp_address, password))  # type: ignore[arg-type]
    dying, target = house.setting(attempts=1), house.setting()
    house.publish(dying.address, *map(str, range(letters)))
    die(house, dying, letters)
    begun = again(lambda: ids(house, dying))
    say("begun", len(begun))
    left, strangers = begun, 0
    while left:
        with suppress(BrokerError):  # Moved or not: the walk tells.
            move_dead_letters(house.management, dying.dead, sorted(left)[:SLICE], target.key)
        left = again(lambda: ids(house, dying))
        strangers += len(left - begun)
        say("handled", letters - len(left))
        time.sleep(PAUSE)
    say("strangers", strangers)
    say("replayed", sorted(int(text) for text in taken(house, target, letters)))
    say("end")


def die(house: RealHouse, dying: Setting, letters: int) -> None:
    consumer, owner = house.consume(dying, window=100)
    for _ in range(letters):
        consumer.settle([(owner.got().tag, Settle.REJECT)])
    again(lambda: house.figures(dying))
    consumer.stop()


def ids(house: RealHouse, dying: Setting) -> set[int]:
    """Of the letters that are still there, by a walk to the end: those that they had before they died."""
    pieces = house.browser.walk(DLA, dying.dead)
    found = [orig_id(decode(encoded)) for piece in pieces for encoded in piece]
    assert len(set(found)) == len(found)
    return set(found)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
