"""Services of systemd: accepted by its own checks, and watched by the work that they do."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import units
from deploy.console import DeployError
from tests.kma.fake_ma import FakeMa
from tests.kma.worker import Worker
from tests.web.real_site import real_site

pytestmark = pytest.mark.process
MOST_EXPOSED = 3.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host with the programs that the services start, and their users."""
    for program in ("opt/ma/bin/ma", "opt/kma/bin/kma"):
        (tmp_path / program).parent.mkdir(parents=True)
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    units.install(["--prefix", str(tmp_path)])
    return tmp_path


def written(root: Path) -> list[Path]:
    return sorted((root / "etc" / "systemd" / "system").iterdir())


def test_each_role_has_a_service(root: Path) -> None:
    names = [path.name for path in written(root)]
    assert names == [
        "kma@.service",
        "ma-beat.service",
        "ma-feed.service",
        "ma-web.service",
        "ma-worker.service",
    ]
    assert "u ma " in (root / "usr/lib/sysusers.d/ma.conf").read_text()


def test_a_host_of_a_kma_gets_that_service_alone(tmp_path: Path) -> None:
    units.install(["--prefix", str(tmp_path), "--role", "kma"])
    assert [path.name for path in written(tmp_path)] == ["kma@.service"]
    assert (tmp_path / "usr/lib/sysusers.d/ma.conf").read_text() == 'u kma - "KMA" /var/lib/kma\n'


def test_who_may_not_write_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("a file")
    with pytest.raises(DeployError, match=r"etc/systemd/system/.*: Not a directory. Run it as root"):
        units.install(["--prefix", str(tmp_path)])


def test_systemd_finds_nothing_wrong_with_them(root: Path) -> None:
    names = [path.name.replace("@.", "@one.") for path in written(root)]
    # What every host has.
    shutil.copytree("/usr/lib/systemd/system", root / "usr/lib/systemd/system", symlinks=True)
    (root / "etc/systemd/system/kma@one.service").symlink_to("kma@.service")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", f"--root={root}", *names], capture_output=True, text=True
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if re.search(r"\b(ma-|kma@)", line)]
    assert ours == [], ours


def test_none_is_more_exposed_than_it_must_be(root: Path) -> None:
    for path in written(root):
        done = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--no-pager", str(path)],
            capture_output=True, text=True,
        )  # fmt: skip
        (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", done.stdout + done.stderr)
        assert float(exposure) <= MOST_EXPOSED, (path.name, exposure)


def test_a_secret_is_a_credential_and_stands_in_no_unit(root: Path) -> None:
    text = (root / "etc/systemd/system/ma-web.service").read_text()
    for name, file in units.SECRETS.items():
        assert f"LoadCredential={file}:/etc/ma/secrets/{file}" in text
        assert f"Environment={name}_FILE=%d/{file}" in text
        assert f"Environment={name}=" not in text


# -- the watchdog --------------------------------------------------------------------------------------------


class Manager:
    """Who listens as systemd does."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "8000000"}

    def hears(self, word: str, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if word.encode() in self.socket.recv(4096):
                    return True
            except TimeoutError:
                break
        return False

    def silence(self) -> None:
        """Forgets what was said."""
        self.socket.setblocking(False)
        while True:
            try:
                self.socket.recv(4096)
            except BlockingIOError:
                return


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(tmp_path / "notify")
    yield made
    made.socket.close()


def test_a_kma_is_ready_feeds_and_falls_silent_where_it_hangs(
    child_processes: None, manager: Manager, tmp_path: Path
) -> None:
    """Its site is away all the while, which is no reason to start it anew."""
    ma = FakeMa()
    ma.down = True
    from broker.port import Account

    worker = Worker(tmp_path, ma, Account("amqp://127.0.0.1:1", "kma", "none"), redis_url="")
    worker.environment |= manager.environment
    worker.start()
    try:
        assert manager.hears("READY=1", 60)
        assert all(manager.hears("WATCHDOG=1", 20) for _ in range(4))
        assert worker.process is not None
        worker.process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        manager.silence()
        assert not manager.hears("WATCHDOG=1", 4)
        worker.process.send_signal(signal.SIGCONT)
        assert manager.hears("WATCHDOG=1", 20)
    finally:
        worker.stop()
    assert manager.hears("STOPPING=1", 1)


@pytest.mark.django_db(transaction=True)
def test_a_site_that_nobody_asks_feeds_and_falls_silent_where_its_processes_hang(manager: Manager) -> None:
    with real_site("", tls=False, **manager.environment) as site:
        assert manager.hears("READY=1", 60)
        assert all(manager.hears("WATCHDOG=1", 20) for _ in range(3))
        task = Path(f"/proc/{site.process.pid}/task/{site.process.pid}/children")
        workers = [int(pid) for pid in task.read_text().split()]
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(1.5)
        manager.silence()
        assert not manager.hears("WATCHDOG=1", 6)
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        assert manager.hears("WATCHDOG=1", 20)


def test_an_abstract_socket_is_told_too_and_nothing_where_nobody_listens() -> None:
    name = f"ma-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        listening.settimeout(20)
        program = "from exposition import notify; notify.fed(); notify.fed(); notify.tell('READY=1')"
        for socket_name in (f"@{name}", "", "/none/such", "nonsense"):
            environ = {**os.environ, "NOTIFY_SOCKET": socket_name}
            subprocess.run([sys.executable, "-c", program], check=True, env=environ)
        assert [listening.recv(100) for _ in range(2)] == [b"WATCHDOG=1", b"READY=1"]
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.recv(100)
