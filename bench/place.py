"""Where a bench finds a broker: a throw-away one, or the one that the environment names."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from broker.port import Account

NAMES = ("BENCH_AMQP_URL", "BENCH_STOMP_ADDRESS", "BENCH_USER", "BENCH_PASSWORD")


@dataclass(frozen=True, slots=True)
class Place:
    """A broker and an account that may do everything there. `folder` is the throw-away broker's own, `pid`
    its process (None: it is somebody else's)."""

    amqp_url: str
    stomp_address: str
    user: str
    password: str = field(repr=False)
    folder: Path | None = None
    pid: int | None = None

    @property
    def amqp(self) -> Account:
        return Account(self.amqp_url, self.user, self.password)

    @property
    def stomp(self) -> Account:
        return Account(self.stomp_address, self.user, self.password)

    def environment(self) -> dict[str, str]:
        """With it a process of the bench finds this broker by `from_environment`."""
        found = dict(zip(NAMES, (self.amqp_url, self.stomp_address, self.user, self.password), strict=True))
        return found | {"KMA_SAMPLES_ANYWHERE": "1"}


@contextmanager
def find_place() -> Iterator[Place]:
    """The broker that the environment names, else a throw-away one."""
    if "BENCH_AMQP_URL" in os.environ:
        yield from_environment()
        return
    with tempfile.TemporaryDirectory(prefix="bench-artemis-") as name, throw_away(Path(name)) as place:
        yield place


def from_environment() -> Place:
    missing = [name for name in NAMES if not os.environ.get(name)]
    if missing:
        raise SystemExit(f"not set: {', '.join(missing)}")
    amqp_url, stomp_address, user, password = (os.environ[name] for name in NAMES)
    return Place(amqp_url, stomp_address, user, password)


@contextmanager
def throw_away(folder: Path) -> Iterator[Place]:
    from deploy.config import LOOPBACK
    from deploy.installing import artemis_download
    from deploy.services import artemis
    from deploy.services.artemis import BrokerPorts
    from deploy.services.ports import free_ports

    home = Path(os.environ.get("MA_DATA") or "var").absolute()
    ports = BrokerPorts(*free_ports(3))
    passwords = {user: secrets.token_urlsafe(16) for user in ("kma", "publisher", "ma-ops")}
    program = artemis_download.ensure_unpacked(home, home / "log" / "install.log")
    artemis.create_instance(program, folder / "broker", ports, passwords)
    process = artemis.run_artemis(folder / "broker", folder / "artemis.log")
    try:
        artemis.wait_until_ready(process, ports, folder / "artemis.log")
        amqp, stomp = f"amqp://{LOOPBACK}:{ports.amqp}", f"{LOOPBACK}:{ports.stomp}"
        yield Place(amqp, stomp, "ma-ops", passwords["ma-ops"], folder, process.pid)
    finally:
        process.terminate()
        process.wait(60)
