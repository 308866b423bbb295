"""A setting with dead letters at the real broker, for workers of a WorkerHost."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from broker.port import NULL, Message, Settle
from contract.typed import Typed
from tests.dlq.stage import DLA, Stage
from tests.dlq.worker_host import WorkerHost


@dataclass
class Scene:
    """Its letters are known to the index of `host`; `names` are their message ids, in the order of their
    rows."""

    stage: Stage
    host: WorkerHost
    key: str
    letters: list[int]
    names: list[str]

    @classmethod
    def make(cls, stage: Stage, host: WorkerHost, count: int) -> "Scene":
        key = stage.key("k")
        names = [f"{key}-{number:03}" for number in range(count)]
        messages = [Message(body=Typed("string", name), message_id=Typed("string", name)) for name in names]
        stage.publish(f"t.{key}", *messages)
        stage.consume(key, count, Settle.REJECT)
        return cls(stage, host, key, host.run("prepare", key=key, count=count), names)

    def target(self) -> "Target":
        """A setting of another destination, with a message that waits there, and a second subscription."""
        key = self.stage.key("other")
        self.stage.add(f"{key}-b", f"t.{key}")
        waits = f"{key}-waits"
        self.stage.publish(f"t.{key}", Message(body=NULL, message_id=Typed("string", waits)))
        self.host.run("add_setting", key=key)
        return Target(self, key, waits)

    def ids(self, queue: str, address: str = DLA) -> list[str]:
        """The messages of this setting there."""
        return sorted(one for one in self.stage.ids(queue, address) if one.startswith(self.key))

    def census(self) -> dict[str, Counter[str]]:
        """The messages of this setting by where they lie, each as often as it lies there."""
        places = {self.key: f"t.{self.key}", f"DLQ.{self.key}": DLA, "DLQ.bin": DLA, "DLQ.unknown": DLA}
        found = {queue: Counter(self.ids(queue, address)) for queue, address in places.items()}
        return {queue: names for queue, names in found.items() if names}

    def given_back(self) -> int:
        return self.stage.count(self.key)

    def dead(self) -> int:
        return self.stage.count(f"DLQ.{self.key}")


@dataclass
class Target:
    """Where messages of a scene go by a redirect."""

    scene: Scene
    key: str
    waits: str

    def arrived(self) -> list[str]:
        """What came, beside what waited there; the second subscription got nothing of it."""
        stage = self.scene.stage
        assert stage.ids(f"{self.key}-b", f"t.{self.key}") == [self.waits]
        there = stage.ids(self.key, f"t.{self.key}")
        there.remove(self.waits)
        return sorted(there)


def done(told: dict[str, Any], total: int, given_back: int) -> None:
    assert (told["state"], told["total"], told["problem"]) == ("done", total, "")
    assert told["counts"] == told["items"], "the figures of the job are those of its letters"
    assert told["items"]["given_back"] == given_back
