"""What people do with an installation, on its host of the site: the main job, asked over REST and counted at
the broker. Told in a file: facts, token, authority, folder of truths."""

import json
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from broker.port import Account, BrokerUnavailable
from tests.product import scripted
from tests.product.house import House

# What may be on no wire: part of every body.
PLANTED = "planted-body-7f3a91"
ATTEMPTS = 4
PATIENCE = 60.0


class Remote(House):
    """An installation that others started."""

    def __init__(self, told: Path) -> None:
        known = json.loads(told.read_text())
        self.data = Path(known["data"])
        self.data.mkdir(exist_ok=True)
        self.facts, self.token = known["facts"], known["token"]
        self.tls = bool(known["authority"])
        self._authority = Path(known["authority"])

    @property
    def authority(self) -> Path:
        return self._authority

    def account(self, name: str, protocol: str) -> Account:
        """Without TLS it shows what a wire would tell."""
        return replace(super().account(name, protocol), in_clear=not self.tls)

    def count(self, *queues: str) -> list[int]:
        """Asked again while one broker is gone and the other one is not there yet."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return super().count(*queues)
            except BrokerUnavailable:
                assert time.monotonic() < end
                time.sleep(0.5)


def say(word: str, content: object = None) -> None:
    print(json.dumps([word, content]), flush=True)


def main(told: Path, messages: int) -> None:
    house = Remote(told)
    house.until("the servers are there", lambda: len(list(house.pages("servers/"))) == 2)
    house.until(
        "both offer the agents",
        lambda: all(row["state"] == "alive" and row["agents"] for row in house.pages("servers/")),
    )
    house.call("POST", "pools/", {"name": "demo", "servers": ["srv-1", "srv-2"]})
    address = house.setting("bulk", concurrency=2, policy={"max_attempts": ATTEMPTS, "delay_ms": 500})
    house.enable("bulk")
    poisoned = {number for number in range(messages) if number % 50 == 7}
    bodies = [
        (scripted.poisoned(n) if n in poisoned else scripted.ok(n)) | {"planted": PLANTED}
        for n in range(messages)
    ]
    house.publish(address, bodies)
    say("published", messages)
    house.until(
        "everything is handled or dead",
        lambda: house.count("bulk", "DLQ.bulk") == [0, len(poisoned)],
        seconds=400,
    )
    attempts = Counter(house.truth("bulk"))
    say("missing", sorted(set(range(messages)) - set(attempts)))
    say("again", sum(count - 1 for number, count in attempts.items() if number not in poisoned))
    say("poisoned", sorted({attempts[number] for number in poisoned}))
    house.until("every letter is indexed", lambda: len(house.dead_letters("bulk")) == len(poisoned))
    house.mend("bulk")
    job = house.replay_all("bulk")
    say("replayed", [job["state"], job["total"]])
    house.until("the mended agent has handled all", lambda: house.count("bulk", "DLQ.bulk") == [0, 0])
    after = Counter(house.truth("bulk"))
    say("mended", sorted({after[number] - attempts[number] for number in poisoned}))
    say("end")


if __name__ == "__main__":
    main(Path(sys.argv[2]), int(sys.argv[3]))
