"""Hosts for tests: network namespaces on one switch, each with an address and a name, and what goes over each
link. Needs root; nothing of it is seen outside."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.network import capture

NETWORK = "10.77.0"
STOP_SECONDS = 30
# The last word of a mount namespace of its own: the host knows the others by name.
INSIDE = 'mount --bind "$0" /etc/hosts && exec "$@"'


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@dataclass
class Host:
    name: str
    number: int
    network: "Network"

    @property
    def address(self) -> str:
        return f"{NETWORK}.{self.number}"

    @property
    def namespace(self) -> str:
        return f"{self.network.prefix}-{self.number}"

    @property
    def link(self) -> str:
        """The end of its cable at the switch."""
        return f"p{self.number}"

    def command(self, *command: str) -> list[str]:
        """As it is run on this host; keeps the pid of what is started."""
        return [
            *self.network.entering(self.namespace),
            *("unshare", "--mount", "sh", "-c", INSIDE, str(self.network.names)),
            *command,
        ]

    def run(self, *command: str, **options: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.command(*command), capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return]

    def start(
        self, log: Path, *command: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> "subprocess.Popen[bytes]":
        """Ended with the network at the latest, as a group of its own."""
        with log.open("ab") as out:
            process = subprocess.Popen(
                self.command(*command), stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd,
                env=environ, start_new_session=True,
            )  # fmt: skip
        self.network.processes.append(process)
        return process

    def cut(self) -> None:
        """Pulls the cable out."""
        ip("-n", self.network.switch, "link", "set", self.link, "down")

    def mend(self) -> None:
        ip("-n", self.network.switch, "link", "set", self.link, "up")


@dataclass
class Network:
    folder: Path
    prefix: str = field(default_factory=lambda: f"ma{os.getpid()}")
    hosts: dict[str, Host] = field(default_factory=dict)
    processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def switch(self) -> str:
        return f"{self.prefix}-0"

    @property
    def names(self) -> Path:
        return self.folder / "hosts"

    @staticmethod
    def entering(namespace: str) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{namespace}"]

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    @contextmanager
    def captured(self) -> Iterator[dict[str, Path]]:
        """What goes over each link meanwhile, in a file for `capture.streams`."""
        found = {name: self.folder / f"{name}.frames" for name in self.hosts}
        with ExitStack() as stack:
            for name, host in self.hosts.items():
                stack.enter_context(self._capturing(host, found[name]))
            yield found

    @contextmanager
    def _capturing(self, host: Host, file: Path) -> Iterator[None]:
        command = [*self.entering(self.switch), sys.executable, capture.__file__, host.link, str(file)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)
            process.stdout.close()

    def end(self) -> None:
        for process in reversed(self.processes):
            end(process)


def end(process: "subprocess.Popen[bytes]", number: signal.Signals = signal.SIGTERM) -> None:
    """The process and what it started."""
    if process.poll() is None:
        os.killpg(process.pid, number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def network(folder: Path, *names: str) -> Iterator[Network]:
    """So many hosts, which reach one another and nothing else."""
    made = Network(folder)
    made.hosts = {name: Host(name, number, made) for number, name in enumerate(names, start=1)}
    lines = ["127.0.0.1 localhost", *(f"{host.address} {host.name}" for host in made.hosts.values())]
    made.names.write_text("\n".join(lines) + "\n")
    with ExitStack() as stack:
        _namespace(stack, made.switch)
        ip("-n", made.switch, "link", "add", "switch", "type", "bridge")
        ip("-n", made.switch, "link", "set", "switch", "up")
        for host in made.hosts.values():
            _namespace(stack, host.namespace)
            ip("-n", made.switch, "link", "add", host.link, "type", "veth", "peer", "name", "eth0",
               "netns", host.namespace)  # fmt: skip
            ip("-n", made.switch, "link", "set", host.link, "master", "switch", "up")
            ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.namespace, "link", "set", "eth0", "up")
        stack.callback(made.end)
        yield made


def _namespace(stack: ExitStack, name: str) -> None:
    ip("netns", "add", name)
    stack.callback(ip, "netns", "delete", name)
    ip("-n", name, "link", "set", "lo", "up")
