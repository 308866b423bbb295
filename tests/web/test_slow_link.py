"""The real site and a KMA's reporter with a slow link between them: what is too much at once for it comes in
parts."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from agents.models import Server
from agents.servers.admission import issue_server_token
from failures.models import FailureProtocol
from kma.host.reporter import Reporter
from kma.ma_client import Endpoint, MaClient
from kma.spool.file import SpoolFile
from kma.spool.records import New, Spool
from tests.web import reports
from tests.web.real_site import PATIENCE, real_site, until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]
BYTES_A_SECOND, PIECE = 12_000, 1_000


@contextmanager
def slow_link(to: int) -> Iterator[int]:
    """A port behind which everything goes to another one, at so many bytes a second and with small
    buffers."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    def carry(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", to)) as site:
            back = threading.Thread(target=_pour, args=(site, client, 0.0), daemon=True)
            back.start()
            _pour(client, site, PIECE / BYTES_A_SECOND)
            back.join(PATIENCE)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _address = listener.accept()
                threading.Thread(target=carry, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _pour(source: socket.socket, target: socket.socket, pause: float) -> None:
    with suppress(OSError):
        while data := source.recv(PIECE):
            target.sendall(data)
            time.sleep(pause)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def test_all_records_of_a_kma_behind_a_slow_link_arrive_also_what_is_too_much_for_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The site of this test gives a body a fifth of the usual time.
    monkeypatch.setattr("kma.host.reporter.QUICK_SECONDS", 0.5)
    server = Server.objects.create(name="srv-1")
    token = issue_server_token(server, now=timezone.now())
    run = reports.run_of(reports.run(reports.setting(), server))
    file = SpoolFile(tmp_path / "spool.sqlite3")
    spool = Spool(file, 100_000_000, 0)
    # Noise in hexadecimal, which gzip halves: at this speed about four small ones come through, the large one
    # does not.
    sizes = [10_000] * 4 + [60_000] + [10_000] * 4
    ids = [uuid4() for _size in sizes]
    failures = [reports.protocol(run, traceback=os.urandom(size // 2).hex()) for size in sizes]
    spool.append([New("run", failure, each) for failure, each in zip(failures, ids, strict=True)])

    def stored() -> set[UUID]:
        return set(FailureProtocol.objects.values_list("pk", flat=True))

    with real_site(MA_TEST_BODY_SECONDS="2") as site:
        with slow_link(site.port) as port:
            client = MaClient(Endpoint(f"http://127.0.0.1:{port}", "srv-1", token))
            reporter = Reporter(client, spool, "srv-1")
            reporter.start()
            until(lambda: stored() == set(ids) - {ids[4]})
            until(lambda: "Some records (1) do not reach the MA" in str(reporter.slow_link))
            reporter.stop(drain_seconds=0)
            client.close()
        quick = MaClient(Endpoint(site.url(""), "srv-1", token))
        Reporter(quick, spool, "srv-1").step()
        quick.close()
    assert stored() == set(ids) and spool.report().rows == 0
    file.close()
