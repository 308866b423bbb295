"""The whole product, started by its own script in a data folder of its own, and the two ways to look at it:
its REST interface and the broker itself."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import requests

from broker.amqp.publisher import AmqpPublisher
from broker.port import Account, Message, Outgoing
from broker.stomp.client import StompManagement, StompPublisher
from contract.encryption import SYSTEM, TlsFiles
from contract.typed import Typed
from deploy import certificates
from deploy.config import DEMO_AGENTS
from deploy.installing.artemis_download import unpacked_in
from deploy.layout import Layout
from deploy.processes.runner import Runner
from deploy.services.artemis import ONE_COMPILER, BrokerPorts
from deploy.services.ports import free_ports
from ma_site.management.commands.prepare import STAMP
from tests import migrated, prepared_artemis
from tests.services import artemis_distribution, cache

ROOT = Path(__file__).resolve().parent.parent.parent
COMMANDS = """
import json, sys, django
from django.core.management import call_command
django.setup()
for command in json.loads(sys.argv[1]):
    call_command(*command)
"""
PORTS = ("MA_PORT", "MA_AMQP_PORT", "MA_STOMP_PORT", "MA_CORE_PORT", "MA_REDIS_PORT")


class House:
    """`./ma` and what it started. `servers` are the names of its KMAs."""

    # The clone, and the Python that has its packages.
    root, python = ROOT, Path(sys.executable)

    def __init__(self, data: Path, servers: Sequence[str] = ("srv-1", "srv-2"), **environ: str) -> None:
        self.data = data
        self.servers = tuple(servers)
        ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MA_", "KMA_", "DJANGO_"))
        }
        agents = ",".join((DEMO_AGENTS, "tests.product.agents"))
        own |= {"KMA_AGENTS": agents, "KMA_SAMPLES_ANYWHERE": "1"}
        # A run of the pipeline takes gigabytes; tests of its own switch it on.
        own |= {"MA_PIPELINE": "off", "JAVA_ARGS_APPEND": ONE_COMPILER}
        first = free_row(2 + len(self.servers))
        addresses = [f"127.0.0.1:{first + number}" for number in range(2 + len(self.servers))]
        # Of feed and worker, and of each KMA.
        self.metrics_of_site, self.metrics_of_kmas = addresses[:2], addresses[2:]
        own |= {"MA_METRICS_ADDRESS": addresses[0], "KMA_METRICS_ADDRESS": addresses[2]}
        self.environ = own | ports | {"MA_DATA": str(data), "MA_SERVERS": ",".join(servers)} | environ
        # Every test of the product can be run over TLS.
        self.tls = os.environ.get("MA_TEST_TLS") == "1"
        self.token = ""
        self.password = ""
        self.printed = ""
        self.facts: dict[str, Any] = {}

    def run(self, *arguments: str, check: bool = True, timeout: float = 900) -> str:
        """`./ma ARGUMENTS`; what it printed. The run fails with all of it when the exit code is not 0."""
        done = self._ma(arguments, timeout)
        assert not check or done.returncode == 0, f"./ma {' '.join(arguments)}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def refused(self, *arguments: str) -> str:
        """What `./ma ARGUMENTS` says that does not do it."""
        done = self._ma(arguments, 180)
        assert done.returncode == 1, f"./ma {' '.join(arguments)}: {done.stdout}\n{done.stderr}"
        return done.stderr

    def _ma(self, arguments: Sequence[str], timeout: float) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(self.root / "ma"), *arguments],
            cwd=self.root, env=self.environ, stdin=subprocess.DEVNULL, text=True, capture_output=True,
            timeout=timeout,
        )  # fmt: skip

    def up(self, *arguments: str) -> str:
        """Finds what costs most of a first start done: `run` starts from nothing."""
        if not Layout(self.data).database.exists():
            _put_broker(Layout(self.data))
            migrated.make_file(Layout(self.data).database)
            _put_static_files(Layout(self.data).static)
        if self.tls:
            arguments = ("--tls", *arguments)
        printed = self.printed = self.run("up", "--detach", *arguments)
        _keep_static_files(Layout(self.data).static)
        if shown := re.search(r"password: (\S+)", printed):
            self.password = shown[1]
        self.facts = json.loads(self.run("env", "--json"))
        commands = [["create_api_token", "admin"]]
        if "--no-demo" in arguments:
            commands.insert(
                0, ["createsuperuser", "--noinput", "--username", "admin", "--email", "admin@example.org"]
            )
        self.token = self.manage(*self.own_commands, *commands).split()[-1]
        return printed

    @property
    def own_commands(self) -> list[list[str]]:
        """What else this house asks of `manage.py` when it has started."""
        return []

    def manage(self, *commands: Sequence[str]) -> str:
        """Each of `manage.py` with the environment of the running site; one process loads the site for
        all."""
        done = subprocess.run(
            [str(self.python), "-c", COMMANDS, json.dumps(commands)],
            cwd=self.root, env=self.environ | self.facts["environ"], text=True, capture_output=True,
            timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def down(self) -> None:
        self.run("down", timeout=180)

    @property
    def authority(self) -> Path:
        """Of an installation that speaks TLS."""
        return certificates.files_of(Layout(self.data)).authority

    @property
    def verify(self) -> str | bool:
        """For requests."""
        return str(self.authority) if self.tls else True

    # -- REST ------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, body: Any = None, *, status: int | None = None) -> Any:
        """One call of `/api/v1/PATH`; tried again while the site does not answer, which the tests bring
        about."""
        url = f"{self.facts['url'].rstrip('/')}/api/v1/{path}"
        headers = {"Authorization": f"Bearer {self.token}"}
        for _ in range(60):
            try:
                answer = requests.request(
                    method, url, json=body, headers=headers, timeout=30, verify=self.verify
                )
            except requests.RequestException:
                time.sleep(1)
                continue
            if answer.status_code in (502, 503) and status is None:
                time.sleep(1)
                continue
            expected = [status] if status else range(200, 300)
            assert answer.status_code in expected, (
                f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
            )
            return answer.json() if answer.content else None
        raise AssertionError(f"{method} {path}: the site did not answer for a minute")

    def browser(self) -> requests.Session:
        """Signed in as the administrator, whose password the first start printed."""
        session = requests.Session()
        session.verify = self.verify
        login = f"{self.facts['url']}login/"
        session.get(login, timeout=30)
        form = {
            "username": "admin",
            "password": self.password,
            "csrfmiddlewaretoken": session.cookies["csrftoken"],
        }
        answer = session.post(login, data=form, headers={"Referer": login}, timeout=30, allow_redirects=False)
        assert answer.status_code == 302, "the printed password signs in"
        return session

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Every row of a keyset-paged list."""
        while path:
            page = self.call("GET", path)
            yield from page["results"]
            path = (page["next"] or "").partition("/api/v1/")[2]

    # -- settings --------------------------------------------------------------------------------------------

    def setting(
        self, key: str, *, destination: str = "", policy: dict[str, Any] | None = None, **fields: Any
    ) -> str:
        """A provisioned and enabled setting of the scripted agent on a destination of its own (or a shared
        one)."""
        address = destination or f"t.{key}"
        truth = self.data / f"truth-{key}.jsonl"
        if not any(row["name"] == address for row in self.pages("destinations/")):
            fast = {"max_attempts": 4, "delay_ms": 200, "multiplier": 2.0, "max_delay_ms": 1000}
            self.call("POST", "destinations/", {"name": address} | fast | (policy or {}))
        wish = {
            "key": key, "agent": "demo.scripted", "timing": "ASAP", "spread": "MANY", "pool": "demo",
            "destination": address, "mode": "AUTO", "concurrency": 2,
            "parameters": {"truth_file": str(truth)},
            "breaker_m": 1000,  # switches off only where a test is about it
        }  # fmt: skip
        self.call("POST", "settings/", wish | fields)
        self.until(
            f"{key} is provisioned",
            lambda: self.call("GET", f"settings/{key}/")["provision_state"] == "ready",
        )
        return address

    def enable(self, key: str) -> None:
        self.call("POST", f"settings/{key}/enable/", {})

    def mend(self, key: str) -> None:
        """What people do: off, the better agent in its place, on. The better one consumes when this
        returns."""

        def consumers() -> int:
            return int(self.call("GET", f"queues/{key}/")["consumers"])

        self.call("POST", f"settings/{key}/disable/", {"reason": "to be mended"})
        self.until("the servers have let go", lambda: consumers() == 0)
        self.call("PATCH", f"settings/{key}/", {"agent": "test.mended"})
        self.until("it may run", lambda: self.call("GET", f"settings/{key}/")["provision_state"] == "ready")
        self.enable(key)
        self.until("a server consumes again", lambda: consumers() > 0)

    def truth(self, key: str) -> list[int]:
        """The number of the message of every attempt that began, as the agent itself wrote it down."""
        file = self.data / f"truth-{key}.jsonl"
        lines = map(json.loads, file.read_text().splitlines() if file.exists() else ())
        return [line["note"] for line in lines if "note" in line]

    def dead_letters(self, key: str) -> list[dict[str, Any]]:
        return list(self.pages(f"dead-letters/?setting={key}"))

    def protocols(self, key: str) -> list[dict[str, Any]]:
        return list(self.pages(f"protocols/?setting={key}"))

    def job(self, key: str, **asked: Any) -> dict[str, Any]:
        """A job on dead letters, begun by somebody who has thought of everything that it warns of."""
        wish = {"setting": key} | asked
        ahead = self.call("POST", "preflight/", wish)
        return dict(
            self.call(
                "POST", "replays/", wish | {"acknowledge": [each["code"] for each in ahead["warnings"]]}
            )
        )

    def replay_all(self, key: str) -> dict[str, Any]:
        """Gives everything back and waits until the job is over."""
        job = self.job(key, all=True, reason="mended")
        path = f"replays/{job['id']}/"
        self.until(
            "the replay is over", lambda: self.call("GET", path)["state"] not in ("planned", "running")
        )
        return dict(self.call("GET", path))

    # -- the broker itself -----------------------------------------------------------------------------------

    def account(self, name: str, protocol: str) -> Account:
        known = self.facts["broker"]["accounts"][name]
        tls = TlsFiles(str(self.authority)) if self.tls else SYSTEM
        return Account(self.facts["broker"][protocol], known["user"], known["password"], tls)

    def publish(self, address: str, bodies: Sequence[Any], properties: dict[str, str] | None = None) -> None:
        """Persistent JSON texts over STOMP, as the demo sends them; on the broker's disk when this
        returns."""
        publisher = StompPublisher(self.account("publisher", "stomp"))
        try:
            typed = {name: Typed("string", value) for name, value in (properties or {}).items()}
            publisher.publish(
                [
                    Outgoing(address, Message(body=Typed("string", json.dumps(b)), properties=typed))
                    for b in bodies
                ]
            )
        finally:
            publisher.close()

    def publish_with_ids(self, address: str, bodies: Mapping[str, Any]) -> None:
        """As JMS publishes, by AMQP: each with its JMS message id, and in this order."""
        publisher = AmqpPublisher(self.account("publisher", "amqp"))
        try:
            for identity, body in bodies.items():
                text = Typed("string", json.dumps(body))
                publisher.publish(
                    [Outgoing(address, Message(body=text, message_id=Typed("string", identity)))]
                )
        finally:
            publisher.close()

    def count(self, *queues: str) -> list[int]:
        """The broker's own message counts."""
        management = StompManagement(self.account("ma-ops", "stomp"), "MA.reply.acceptance")
        try:
            return [int(management.attribute(f"queue.{queue}", "MessageCount")) for queue in queues]
        finally:
            management.close()

    # -- processes -------------------------------------------------------------------------------------------

    @property
    def runner(self) -> Runner:
        """The process runner, to hold a process back for a while."""
        return Runner(Layout(self.data))

    def pid(self, name: str) -> int:
        """The pid of a process of the Procfile, by the runner that started it; 0 while it is down."""
        state = self.runner.state(name)
        return state.pid if state.running else 0

    def kill(self, name: str) -> int:
        """`kill -9` of a process that this house started; its pid. The runner starts it again."""
        pid = self.pid(name)
        assert pid, f"{name} does not run"
        os.kill(pid, signal.SIGKILL)
        return pid

    def agent_processes(self, server: str) -> list[int]:
        """The agent processes of one KMA."""
        return children_of(self.pid(f"kma-{server}"), "kma.handling.child")

    @staticmethod
    def until(what: str, true: Callable[[], bool], seconds: float = 180) -> None:
        """Waits for something that must come; the bound only ends a test that would never end."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, f"waited {seconds:.0f} s: {what}"
            time.sleep(0.5)


def free_row(number: int) -> int:
    """The first of so many free ports side by side."""
    while True:
        found = free_ports(number)
        if found[-1] - found[0] == number - 1:
            return found[0]


def _put_broker(layout: Layout) -> None:
    """Its ports and passwords are written by each start."""
    program, own = artemis_distribution(), unpacked_in(layout.data)
    own.symlink_to(program)
    prepared_artemis.create_instance(program, layout.broker, BrokerPorts(1, 2, 3), {})
    profile = layout.broker / "etc" / "artemis.profile"
    text = profile.read_text().replace(f"'{program}'", f"'{own}'")
    profile.write_text(text + prepared_artemis.Classes(program, layout.broker).profile(record=False))


def _put_static_files(folder: Path) -> None:
    """As the last installation collected them: a start makes them anew where the source has changed since."""
    with migrated.alone():
        if _kept_static_files().exists():
            shutil.copytree(_kept_static_files(), folder)


def _keep_static_files(folder: Path) -> None:
    kept = _kept_static_files()
    with migrated.alone():
        if not (kept / STAMP).exists() or (kept / STAMP).read_text() != (folder / STAMP).read_text():
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)


def _kept_static_files() -> Path:
    return cache() / "static"


def children_of(pid: int, word: str) -> list[int]:
    """Descendants of `pid` whose command line holds `word`."""
    found, ask = [], [pid]
    while ask:
        for task in Path(f"/proc/{ask.pop()}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                ask.append(child)
                if word in Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace"):
                    found.append(child)
    return found
