"""Two real brokers on hosts of their own, one live and the other its backup: over a journal that both see,
or each with a copy, and a lock of ZooKeeper decides who is live."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from deploy.services.artemis import BrokerPorts, BrokerTls
from tests import prepared_artemis
from tests.network.hosts import Host, Network, end
from tests.services import artemis_distribution
from tests.tls import Authority

PORTS = BrokerPorts(amqp=5672, stomp=61613, core=61616)
ZOOKEEPER = 2181
# A primary that is cut off notices after two thirds of this and takes up to 8 s to stop; its backup gets the
# lock after all of it. With 6 s both were live for 7 s, and both gave out what was in both.
SESSION_MS = 30_000
# Debian's libdropwizard-metrics-java and libsnappy-java.
SERVER_JARS = ("/usr/share/java/metrics-core.jar", "/usr/share/java/snappy-java.jar")
START_SECONDS = 120
# What a broker writes into its log.
ACTIVE, SYNCHRONIZED, ANNOUNCED = "AMQ221007", "AMQ221024", "AMQ221031"

# Whether a live broker answers; a backup that waits listens to nobody.
PROBE = """
import socket, ssl
with socket.create_connection(("127.0.0.1", {port}), timeout=2) as one:
    if {tls}:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        one = context.wrap_socket(one)
    one.settimeout(2)
    one.sendall({hello!r})
    raise SystemExit(0 if one.recv(8).startswith(b"AMQP") else 1)
"""


class Kind(Enum):
    SHARED = "shared"
    REPLICATED = "replicated"


def policy(kind: Kind, *, primary: bool, locks: str) -> str:
    """The ha-policy of one of the two."""
    role = "primary" if primary else "backup"
    if kind is Kind.SHARED:
        inner = "<failover-on-shutdown>true</failover-on-shutdown>"
        inner += "" if primary else "<allow-failback>true</allow-failback>"
        return f"<ha-policy><shared-store><{role}>{inner}</{role}></shared-store></ha-policy>"
    manager = (
        "<manager><class-name>org.apache.activemq.artemis.lockmanager.zookeeper.CuratorDistributedLockManager"
        f'</class-name><properties><property key="connect-string" value="{locks}"/>'
        f'<property key="session-ms" value="{SESSION_MS}"/><property key="session-percent" value="1"/>'
        "</properties></manager>"
    )
    more = "" if primary else "<allow-failback>true</allow-failback>"
    return (
        f"<ha-policy><replication><{role}>{manager}<group-name>pair</group-name>{more}"
        f"</{role}></replication></ha-policy>"
    )


@dataclass
class Broker:
    host: Host
    folder: Path
    log: Path
    tls: bool = False
    process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    def start(self) -> None:
        self.process = self.host.start(self.log, str(self.folder / "bin" / "artemis"), "run")

    def kill(self) -> None:
        """As a crash of its machine: nothing flushed, no goodbye."""
        assert self.process is not None
        end(self.process, signal.SIGKILL)

    def stop(self) -> None:
        assert self.process is not None
        end(self.process)

    @property
    def live(self) -> bool:
        probe = PROBE.format(port=PORTS.amqp, hello=b"AMQP\x03\x01\x00\x00", tls=self.tls)
        return self.host.run(sys.executable, "-c", probe).returncode == 0


@dataclass
class Pair:
    kind: Kind
    primary: Broker
    backup: Broker

    @classmethod
    def create(
        cls,
        network: Network,
        kind: Kind,
        names: Sequence[str],
        passwords: Mapping[str, str],
        locks: str = "",
        authority: Authority | None = None,
    ) -> "Pair":
        """`authority`: of certificates for both; they then speak TLS only, also with each other."""
        made = [
            _create(network, kind, number == 0, name, names[1 - number], passwords, locks, authority)
            for number, name in enumerate(names)
        ]
        return cls(kind, *made)

    @property
    def live(self) -> list[Broker]:
        return [one for one in (self.primary, self.backup) if one.live]

    def until_live(self, which: Broker, seconds: float = START_SECONDS) -> float:
        """Seconds until `which` alone is live; two at once fail at once."""
        began = time.monotonic()
        while (live := self.live) != [which]:
            assert len(live) < 2, "both are live"
            assert time.monotonic() < began + seconds, f"{which.host.name} is not live; see {which.log}"
            time.sleep(0.2)
        return time.monotonic() - began

    def until_backed_up(self) -> None:
        """Until the backup can take over, as its log says last."""
        ready = ANNOUNCED if self.kind is Kind.SHARED else SYNCHRONIZED

        def is_ready() -> bool:
            text = self.backup.log.read_text()
            return text.rfind(ready) > text.rfind(ACTIVE)

        until(f"{self.backup.host.name} can take over; see {self.backup.log}", is_ready)


def _create(
    network: Network,
    kind: Kind,
    primary: bool,
    name: str,
    other: str,
    passwords: Mapping[str, str],
    locks: str,
    authority: Authority | None,
) -> Broker:
    folder = network.folder / name
    tls, secure = None, ""
    if authority is not None:
        tls = BrokerTls(authority.pair(name, f"DNS:{name}", f"IP:{network[name].address}"))
        secure = f"?sslEnabled=true;trustStoreType=PEMCA;trustStorePath={authority.certificate}"
    prepared_artemis.create_instance(artemis_distribution(), folder, PORTS, passwords, tls)
    profile = folder / "etc" / "artemis.profile"
    classes = prepared_artemis.Classes(artemis_distribution(), folder)
    profile.write_text(profile.read_text() + classes.profile(record=False))
    file = folder / "etc" / "broker.xml"
    text = file.read_text().replace("tcp://127.0.0.1:", "tcp://0.0.0.0:")
    cluster = text.split("<cluster-password>")[1].split("</cluster-password>")[0]
    text = text.replace(cluster, "of-both-for-tests")
    connectors = (
        f'<connectors><connector name="self">tcp://{name}:{PORTS.core}{secure}</connector>'
        f'<connector name="other">tcp://{other}:{PORTS.core}{secure}</connector></connectors>'
        "<cluster-connections>"
        '<cluster-connection name="pair"><connector-ref>self</connector-ref>'
        # A cut cable says nothing: without these the backup believes in its primary for a minute and more.
        "<check-period>1000</check-period><connection-ttl>5000</connection-ttl>"
        "<message-load-balancing>OFF</message-load-balancing>"
        "<static-connectors><connector-ref>other</connector-ref></static-connectors></cluster-connection>"
        "</cluster-connections>"
    )
    text = text.replace("      <acceptors>", f"      {policy(kind, primary=primary, locks=locks)}\n"
                        f"      {connectors}\n      <acceptors>")  # fmt: skip
    if kind is Kind.SHARED:
        text = text.replace(">data/", f">{network.folder / 'journal'}/")
    file.write_text(text)
    return Broker(network[name], folder, network.folder / f"{name}.log", authority is not None)


def start_zookeeper(host: Host, folder: Path) -> "subprocess.Popen[bytes]":
    """The broker brings it, but for what only a server needs. Returns when it answers."""
    folder.mkdir()
    config = folder / "zoo.cfg"
    config.write_text(
        f"tickTime=2000\ndataDir={folder / 'data'}\nclientPort={ZOOKEEPER}\nadmin.enableServer=false\n"
        "4lw.commands.whitelist=ruok\n"
    )
    jars = ":".join((str(artemis_distribution() / "lib" / "*"), *SERVER_JARS))
    process = host.start(
        folder / "log", "java", "-Xmx128M", "-XX:TieredStopAtLevel=1", "-cp", jars,
        "org.apache.zookeeper.server.ZooKeeperServerMain", str(config),
    )  # fmt: skip
    asks = (
        "import socket\n"
        f"with socket.create_connection(('127.0.0.1', {ZOOKEEPER}), timeout=2) as one:\n"
        "    one.sendall(b'ruok')\n    raise SystemExit(one.recv(4) != b'imok')\n"
    )
    until("ZooKeeper answers", lambda: host.run(sys.executable, "-c", asks).returncode == 0)
    return process


def until(what: str, true: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds:.0f} s: {what}"
        time.sleep(0.2)
