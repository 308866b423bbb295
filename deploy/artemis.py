"""An Artemis instance of our own: created, configured, run, known to answer."""

import os
import secrets
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from deploy import broker_files
from deploy.broker_files import BrokerPorts
from deploy.config import LOOPBACK
from deploy.problem import Problem
from deploy.tools import run_logged

AMQP_HEADER = b"AMQP\x03\x01\x00\x00"  # of the SASL layer, which the broker asks for first
START_SECONDS = 90.0
# A program of one second gains nothing by the second compiler, which takes a third of it.
ONE_COMPILER = "-XX:TieredStopAtLevel=1"


def create_instance(
    distribution: Path, folder: Path, ports: BrokerPorts, passwords: Mapping[str, str]
) -> None:
    """Creates the instance where there is none yet and writes our configuration; the broker must not be
    running."""
    if not _belongs_here(distribution, folder):
        _create(distribution, folder)
    broker_files.write(folder, ports, passwords)


def run(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """Starts the broker as a child of this process; `wait_until_ready` says when it answers."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            [str(folder / "bin" / "artemis"), "run"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_until_ready(process: subprocess.Popen[bytes], ports: BrokerPorts, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers(ports.amqp):
        if process.poll() is not None:
            raise Problem(f"Artemis ended with exit code {process.returncode} while starting; see {log}")
        if time.monotonic() > deadline:
            raise Problem(f"Artemis does not answer after {START_SECONDS:.0f} s; see {log}")
        time.sleep(0.2)


def answers(amqp_port: int, timeout: float = 2.0) -> bool:
    """Whether an AMQP broker, and not only somebody's open port, is there."""
    try:
        with socket.create_connection((LOOPBACK, amqp_port), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(AMQP_HEADER)
            answer = connection.recv(8)
            # A half-closed and emptied connection ends quietly; a reset one is a warning in the broker's log.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
            return answer.startswith(b"AMQP")
    except OSError:
        return False


def _belongs_here(distribution: Path, folder: Path) -> bool:
    """An instance has its own path and the distribution's written into it; a moved one must be created
    anew."""
    profile = folder / "etc" / "artemis.profile"
    if not (profile.exists() and broker_files.measured_copy(folder).exists()):
        return False
    text = profile.read_text("utf-8")
    return f"ARTEMIS_HOME='{distribution}'" in text and f"ARTEMIS_INSTANCE='{folder}'" in text


def _create(distribution: Path, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The account given here never works: our own users file replaces the one that is made.
    command = [
        str(distribution / "bin" / "artemis"),
        "create",
        "--silent",
        "--force",
        "--nio",
        "--host",
        LOOPBACK,
    ]
    command += ["--user", "unused", "--password", secrets.token_urlsafe(32), "--require-login"]
    command += ["--no-web", "--no-mqtt-acceptor", "--no-hornetq-acceptor", str(folder)]
    given = os.environ.get("JAVA_ARGS_APPEND", "")
    quick = os.environ | {"JAVA_ARGS_APPEND": f"{given} {ONE_COMPILER}"}
    run_logged(command, what="artemis create", log=folder.parent / "log" / "install.log", env=quick)
    folder.chmod(0o700)
    (folder / "etc" / "broker.xml").rename(broker_files.measured_copy(folder))
