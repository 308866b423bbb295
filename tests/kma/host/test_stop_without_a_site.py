"""SIGTERM of a KMA whose site takes connections and answers nothing, as behind a firewall that swallows
packets."""

import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from broker.port import Account
from contract.records import MessageIdentity, RecordRun, Recovered
from kma.spool.file import SpoolFile
from kma.spool.records import New, Spool
from tests.kma.fakes import eventually
from tests.kma.worker import Worker

pytestmark = pytest.mark.process

# As docs/how-to/another-host.md tells a service manager.
DOCUMENTED_SECONDS = 40
RUN = RecordRun("orders", UUID(int=1), 1, "srv-1", "demo.orders")


class SilentSite:
    """Reads what it is asked, holds the connection and says nothing. `asked`: the lines of the requests."""

    server, token = "srv-1", "kma_secret"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._held: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._main, daemon=True).start()

    def _main(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._held.append(connection)
            self.asked.append(connection.recv(4096).decode(errors="replace").partition("\r\n")[0])

    def close(self) -> None:
        for each in (self._listener, *self._held):
            each.close()

    def was_asked_for(self, what: str) -> bool:
        return any(f"/{what}/" in line for line in self.asked)


@pytest.fixture
def site() -> Iterator[SilentSite]:
    site = SilentSite()
    yield site
    site.close()


def test_a_kma_ends_in_its_documented_time_while_the_site_swallows_packets(
    site: SilentSite, tmp_path: Path
) -> None:
    data = tmp_path / site.server
    data.mkdir()
    file = SpoolFile(data / "spool.sqlite3")
    message = MessageIdentity(key="ID:1")
    Spool(file, 10**6).append([New("run", Recovered(RUN, message, datetime.now(UTC)), uuid4())])
    file.close()
    worker = Worker(tmp_path, site, Account("amqp://127.0.0.1:1", "kma", "none"))  # type: ignore[arg-type]
    worker.start()
    assert worker.process is not None
    try:
        eventually(
            lambda: site.was_asked_for("protocols") and site.was_asked_for("heartbeat"), "both requests", 60
        )
        worker.process.send_signal(signal.SIGTERM)
        try:
            code: int | None = worker.process.wait(DOCUMENTED_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        assert code == 0, f"not ended after {DOCUMENTED_SECONDS} s; see {worker.log}"
    finally:
        worker.process.kill()
        worker.process.wait()

    file = SpoolFile(data / "spool.sqlite3")
    assert len(Spool(file, 10**6).head(10, 10**6)) == 1, "what was not reported is there still"
    file.close()
