"""What a KMA and its MA ask of a broker, on a host of tests: AMQP and STOMP addresses, password, number of
messages. Prints how far it is, and at the end what came of every message."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from broker.port import BrokerError, Outgoing, Settle
from contract.encryption import SYSTEM, TlsFiles
from tests.broker.houses import DLA, Got, RealHouse, Setting, orig_id, text_message
from tests.services import Account

T = TypeVar("T")
# Above what a failover takes with a lock of 30 s.
PATIENCE = 120.0


@dataclass(frozen=True)
class Brokers:
    """As a house asks its broker: where it is, and who may."""

    amqp_url: str
    stomp_address: str
    password: str
    trust: TlsFiles = SYSTEM

    @property
    def kma(self) -> Account:
        return Account("kma", self.password)

    @property
    def publisher(self) -> Account:
        return Account("publisher", self.password)

    @property
    def ops(self) -> Account:
        return Account("ma-ops", self.password)


def say(word: str, content: object = None) -> None:
    print(json.dumps([word, content]), flush=True)


def main(amqp_url: str, stomp_address: str, password: str, messages: int) -> None:
    house = RealHouse(Brokers(amqp_url, stomp_address, password))  # type: ignore[arg-type]
    given, done, dying = house.setting(attempts=50), house.setting(), house.setting(attempts=1)
    house.publish(given.address, *map(str, range(messages)))
    house.publish(dying.address, *map(str, range(100)))
    say("letters", identities(house, dying, die=True))
    handed_over(house, given, done)
    say("letters", identities(house, dying))
    say("walked", walked(house, dying))
    say("done", sorted(int(text) for text in taken(house, done, messages)))
    say("left", again(lambda: house.figures(given).messages))
    say("end")


def handed_over(house: RealHouse, given: Setting, done: Setting) -> None:
    """Each message with a send in one transaction, however often the connection is lost in between."""
    consumer, owner = house.consume(given, window=20)
    handled, outstanding, quiet = 0, dict[int, Got](), time.monotonic()
    while True:
        kind, content = owner.events.get(timeout=PATIENCE)
        quiet = time.monotonic()
        if kind in ("lost", "opened"):
            outstanding.clear()
        elif kind == "delivered":
            assert isinstance(content, Got)
            outstanding[content.tag] = content
            consumer.settle_with_sends(content.tag, [Outgoing(done.address, text_message(content.text))])
        elif kind == "settled":
            assert isinstance(content, tuple)
            tag, problem = content
            if problem is None:
                handled += 1
                if handled % 20 == 0:
                    say("handled", handled)
            elif tag in outstanding:
                consumer.settle([(tag, Settle.FAIL)])
            outstanding.pop(tag, None)
        if not outstanding and owner.events.empty() and again(lambda: house.figures(given).messages) == 0:
            break
        assert time.monotonic() < quiet + PATIENCE
    consumer.stop()


def taken(house: RealHouse, done: Setting, most: int) -> list[str]:
    consumer, owner = house.consume(done, window=100)
    texts = []
    for _ in range(again(lambda: house.figures(done).messages)):
        got = owner.got(PATIENCE)
        texts.append(got.text)
        consumer.settle([(got.tag, Settle.ACCEPT)])
    consumer.stop()
    assert len(texts) <= 2 * most
    return texts


def identities(house: RealHouse, dying: Setting, *, die: bool = False) -> list[tuple[str, int]]:
    """Text and id of the message that died, of each letter: what the index knows them by."""
    if die:
        consumer, owner = house.consume(dying)
        for _ in range(100):
            consumer.settle([(owner.got().tag, Settle.FAIL)])
        consumer.stop()
        house.until_dead(dying, 100)
    letters = again(lambda: house.look(DLA, dying.dead))
    return sorted((str(letter.body.value), orig_id(letter)) for letter in letters)


def walked(house: RealHouse, dying: Setting) -> int:
    return again(lambda: sum(len(piece) for piece in house.browser.walk(DLA, dying.dead)))


def again(ask: Callable[[], T]) -> T:
    """What a person does whose page could not ask the broker."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except BrokerError:
            if time.monotonic() > end:
                raise
            time.sleep(0.3)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
