"""The site, broker and Redis by `./ma up`, and KMAs that the tests start themselves so that they can be cut
off."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from broker.port import Message, Outgoing
from broker.stomp.client import StompPublisher
from contract.typed import Typed
from deploy import config, environment, secret_files
from deploy.layout import Layout
from deploy.processes import earlier_starts
from tests.product import scripted
from tests.product.house import House
from tests.product.three_servers import truth
from tests.product.three_servers.kma_process import Kma
from tests.product.three_servers.truth import Event

POOL = "hall"
# Seconds of silence after which a server is lost: shorter than the 15 of an installation, longer than three
# polls.
LOST_AFTER = 7
AGENTS = "kma.samples.scripted,kma.samples.standalone,tests.product.three_servers.agents"


class Hall(House):
    """`kmas` by server name. The one KMA that `./ma` insists on is in no pool."""

    def __init__(self, data: Path, servers: Sequence[str]) -> None:
        own = {
            "MA_LOST_AFTER_SECONDS": str(LOST_AFTER),
            "DJANGO_SUPERUSER_PASSWORD": "only for tests of launching",
        }
        super().__init__(data, servers=("spare",), **own)
        self.names = tuple(servers)
        self.kmas: dict[str, Kma] = {}
        self.truth_folder = data / "truth"

    # -- from the first start to the last stop ---------------------------------------------------------------

    def up(self, *arguments: str) -> str:
        printed = super().up("--no-demo", *arguments)
        self.truth_folder.mkdir()
        for name in self.names:
            self._add(name)
        self.call("POST", "pools/", {"name": POOL, "servers": list(self.names)})
        self.all_alive()
        return printed

    @property
    def own_commands(self) -> list[list[str]]:
        layout = Layout(self.data)
        return [
            ["create_server", name, "--token-file", str(secret_files.token_file(layout, name))]
            for name in self.names
        ]

    def down(self) -> None:
        for kma in self.kmas.values():
            kma.close()
        super().down()

    def _add(self, name: str) -> None:
        layout = Layout(self.data)
        installation = config.read(self.environ)
        layout.kma(name).mkdir(parents=True, exist_ok=True)
        own = {
            key: value
            for key, value in self.environ.items()
            if not key.startswith(("MA_", "KMA_", "DJANGO_"))
        }
        environ = own | environment.kma(name, installation, layout)
        environ |= {
            "KMA_AGENTS": AGENTS,
            "PYTHONPATH": str(config.REPOSITORY),
            earlier_starts.MARK: str(layout.run),
        }
        self.kmas[name] = Kma(name, environ, self.ma_port, installation.amqp_port, layout.log(f"test-{name}"))
        self.kmas[name].start()

    @property
    def ma_port(self) -> int:
        port = urlsplit(str(self.facts["url"])).port
        assert port is not None
        return port

    def all_alive(self) -> None:
        """Every KMA runs, is connected and was heard: what each test finds, whatever the one before it
        did."""
        for kma in self.kmas.values():
            kma.mend()
            if not kma.runs:
                kma.start()
        self.until("all servers are alive", lambda: self.alive() >= set(self.names))

    def alive(self) -> set[str]:
        return {row["name"] for row in self.pages("servers/") if row["state"] == "alive"}

    @staticmethod
    def until(what: str, true: Callable[[], bool], seconds: float = 60) -> None:
        House.until(what, true, seconds)

    # -- settings --------------------------------------------------------------------------------------------

    def launch(self, key: str, *, enable: bool = True, runs: int | None = None, **fields: Any) -> str:
        """A setting of the agent that writes down what it does; its address. Returns when `runs` runs are at
        work."""
        wish: dict[str, Any] = {
            "pool": POOL,
            "agent": "test.written",
            "concurrency": 1,
            "parameters": self.parameters(),
        }
        address = self.setting(key, **(wish | fields))
        if enable:
            self.enable(key)
            self.until(f"{key} runs", lambda: len(self.running(key)) == (runs or 1))
        return address

    def standalone(self, key: str, **fields: Any) -> None:
        """An enabled ANY setting of the standalone agent that gives signs of life."""
        wish = {"key": key, "agent": "test.beating", "kind": "standalone", "timing": "ASAP", "spread": "ANY"}
        self.call("POST", "settings/", wish | {"pool": POOL, "parameters": self.parameters()} | fields)
        self.until(f"{key} may run", lambda: self.get(key)["provision_state"] == "ready")
        self.enable(key)

    def parameters(self) -> dict[str, Any]:
        return {"truth": str(self.truth_folder)}

    def get(self, key: str) -> dict[str, Any]:
        return dict(self.call("GET", f"settings/{key}/"))

    def disable(self, key: str) -> None:
        self.call("POST", f"settings/{key}/disable/", {"reason": "the test is over"})

    def make_good(self, key: str) -> None:
        """From now on the agent handles every message well."""
        (self.truth_folder / f"mended-{key}").touch()

    def break_on(self, key: str, *servers: str) -> None:
        """From now on every handling fails there."""
        for server in servers:
            (self.truth_folder / f"broken-{key}@{server}").touch()

    def mend_on(self, key: str, server: str) -> None:
        (self.truth_folder / f"broken-{key}@{server}").unlink()

    def trips(self, key: str) -> list[dict[str, Any]]:
        """Newest first."""
        return list(self.pages(f"trips/?setting={key}"))

    def only_trip(self, key: str) -> dict[str, Any]:
        """The one there is, once it is there, with its interruptions."""
        self.until(f"{key} is off", lambda: not self.get(key)["enabled"])
        found = self.trips(key)
        assert len(found) == 1, found
        return dict(self.call("GET", f"trips/{found[0]['id']}/"))

    def all_closed(self, key: str) -> None:
        """Every run has reported its end."""
        self.until(f"the runs of {key} are closed", lambda: all(run["closed_at"] for run in self.runs(key)))

    def silent(self, key: str, address: str) -> None:
        """No handling begins any more, also when there is something to handle."""
        self.all_closed(key)
        before = len(self.begun(key))
        self.publish(address, [scripted.ok(99_990 + n) for n in range(3)])
        time.sleep(3)
        assert len(self.begun(key)) == before, "something goes on"

    def interrupted(self, key: str) -> set[str]:
        """Servers whose newest run was given up."""
        newest = {run["server"]: run for run in self.runs(key)}
        return {name for name, run in newest.items() if run["state"] == "interrupted"}

    def activations(self, key: str) -> list[dict[str, Any]]:
        """Newest first."""
        return list(self.pages(f"activations/?setting={key}"))

    def runs(self, key: str) -> list[dict[str, Any]]:
        """Of the newest activation, by epoch."""
        newest = self.activations(key)[:1]
        return sorted((run for row in newest for run in row["runs"]), key=lambda run: run["epoch"])

    def running(self, key: str) -> list[str]:
        """Servers where a wanted run is connected to its subscription."""
        wanted = [run for run in self.runs(key) if run["wanted"]]
        return [run["server"] for run in wanted if run["state"] == "running" and run["connected"]]

    def wanted(self, key: str, server: str) -> bool:
        return any(run["wanted"] for run in self.runs(key) if run["server"] == server)

    def holder(self, key: str) -> Kma:
        """The KMA of the one server where an ANY setting is wanted."""
        self.until(f"{key} runs", lambda: len(self.running(key)) == 1)
        return self.kmas[self.running(key)[0]]

    # -- messages --------------------------------------------------------------------------------------------

    def begun(self, key: str) -> list[Event]:
        return truth.read(self.truth_folder, key)

    def handled(self, key: str) -> set[int]:
        """Numbers of the messages whose handling ended, well or not."""
        return {event.note for event in truth.read(self.truth_folder, key, "end")}

    def given_back(self, key: str) -> bool:
        """Whether no server takes its messages any more. Asked of the broker, whatever the MA has heard."""
        return self.consumers(key) == 0

    def windows(self, key: str) -> list[dict[str, Any]]:
        """What was due and what became of it, newest first."""
        return list(self.pages(f"settings/{key}/windows/"))

    def consumers(self, key: str) -> int:
        return int(self.call("GET", f"queues/{key}/")["consumers"])

    def empty(self, key: str) -> None:
        self.until(f"{key} is empty", lambda: self.count(key) == [0])

    @contextmanager
    def trickle(self, address: str, seconds: float = 0.01, first: int = 0) -> Iterator[Callable[[], int]]:
        """Good messages with growing numbers, one after the other, as long as the block lasts; the block is
        given a function that answers how many were published so far."""
        published = first
        over = threading.Event()

        publisher = StompPublisher(self.account("publisher", "stomp"))

        def publish() -> None:
            nonlocal published
            while not over.wait(0.1):
                body = json.dumps(scripted.slow(published, seconds))
                publisher.publish([Outgoing(address, Message(body=Typed("string", body)))])
                published += 1

        thread = threading.Thread(target=publish, name="trickle")
        thread.start()
        try:
            yield lambda: published
        finally:
            over.set()
            thread.join()
            publisher.close()


def numbers(events: Iterable[Event]) -> list[int]:
    return [event.note for event in events]
