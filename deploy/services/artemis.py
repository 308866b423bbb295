"""An Artemis instance of our own: created, configured, run, known to answer."""

import hashlib
import os
import re
import secrets
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from urllib.parse import quote

from deploy import secret_files
from deploy.config import LOOPBACK
from deploy.console import DeployError, run_logged

# -- the files under its etc/ that are ours: written from the templates at every start -----------------------


TEMPLATES = Path(__file__).parent / "templates"

# Heap. Half of it is what messages may take in memory before their address pages to disk.
SMALLEST_HEAP, LARGEST_HEAP = "256M", "1G"

# Nanoseconds, where `artemis create` could not measure the disk: its own default for this journal.
JOURNAL_BUFFER_TIMEOUT = "3333333"

# What the broker itself uses for hashed passwords.
HASH_ROUNDS, HASH_SALT_BYTES, HASH_BYTES = 1024, 32, 64


@dataclass(frozen=True)
class BrokerPorts:
    amqp: int
    stomp: int
    core: int


@dataclass(frozen=True)
class BrokerTls:
    """Files in PEM format. `pair`: certificate and key of the broker in one. `clients`: the authority of
    certificates that clients may show instead of a password; None: they are not asked."""

    pair: Path
    clients: Path | None = None

    @property
    def parameters(self) -> str:
        """Of an acceptor."""
        found = {
            "sslEnabled": "true",
            "enabledProtocols": "TLSv1.2,TLSv1.3",
            "keyStoreType": "PEM",
            "keyStorePath": quote(str(self.pair)),
            "sslAutoReload": "true",
        }
        if self.clients is not None:
            found |= {
                "wantClientAuth": "true",
                "saslMechanisms": "EXTERNAL,PLAIN",
                "trustStoreType": "PEMCA",
                "trustStorePath": quote(str(self.clients)),
            }
        return "".join(f";{name}={value}" for name, value in found.items())


def write_broker_files(
    instance: Path, ports: BrokerPorts, passwords: Mapping[str, str], tls: BrokerTls | None = None
) -> None:
    """`passwords` by user name; a user's role has the user's name."""
    etc = instance / "etc"
    secret_files.write(
        etc / "broker.xml", broker_xml(ports, _measured_timeout(instance), secrets.token_urlsafe(32), tls)
    )
    secret_files.write(etc / "artemis-users.properties", users_file(passwords))
    secret_files.write(etc / "artemis-roles.properties", "".join(f"{user} = {user}\n" for user in passwords))
    secret_files.write(etc / "log4j2.properties", (TEMPLATES / "log4j2.properties").read_text("utf-8"))
    profile = etc / "artemis.profile"
    secret_files.write(profile, _with_heap(profile.read_text("utf-8")))


def broker_xml(
    ports: BrokerPorts, journal_buffer_timeout: str, cluster_password: str, tls: BrokerTls | None = None
) -> str:
    return Template((TEMPLATES / "broker.xml").read_text("utf-8")).substitute(
        amqp_port=ports.amqp,
        stomp_port=ports.stomp,
        core_port=ports.core,
        journal_buffer_timeout=journal_buffer_timeout,
        cluster_password=cluster_password,
        tls=tls.parameters if tls else "",
        accounts=(TEMPLATES / "accounts.xml").read_text("utf-8"),
    )


def users_file(passwords: Mapping[str, str]) -> str:
    return "".join(f"{user} = {hashed(password)}\n" for user, password in passwords.items())


def hashed(password: str) -> str:
    """The form in which the broker's own `artemis mask --hash` writes a password."""
    salt = secrets.token_bytes(HASH_SALT_BYTES)
    digest = hashlib.pbkdf2_hmac("sha1", password.encode(), salt, HASH_ROUNDS, HASH_BYTES)
    return f"ENC({HASH_ROUNDS}:{salt.hex().upper()}:{digest.hex().upper()})"


def measured_copy(instance: Path) -> Path:
    """The broker.xml that `artemis create` wrote, kept for what it measured."""
    return instance / "etc" / "broker-created.xml"


def _measured_timeout(instance: Path) -> str:
    found = re.search(r"<journal-buffer-timeout>(\d+)<", measured_copy(instance).read_text("utf-8"))
    return found[1] if found else JOURNAL_BUFFER_TIMEOUT


def _with_heap(profile: str) -> str:
    return re.sub(r"-Xms\w+ -Xmx\w+", f"-Xms{SMALLEST_HEAP} -Xmx{LARGEST_HEAP}", profile)


# -- artemis -------------------------------------------------------------------------------------------------


AMQP_HEADER = b"AMQP\x03\x01\x00\x00"  # of the SASL layer, which the broker asks for first
START_SECONDS = 90.0
# A program of one second gains nothing by the second compiler, which takes a third of it.
ONE_COMPILER = "-XX:TieredStopAtLevel=1"


def create_instance(
    distribution: Path,
    folder: Path,
    ports: BrokerPorts,
    passwords: Mapping[str, str],
    tls: BrokerTls | None = None,
) -> None:
    """Creates the instance where there is none yet and writes our configuration; the broker must not be
    running."""
    if not _belongs_here(distribution, folder):
        _create(distribution, folder)
    write_broker_files(folder, ports, passwords, tls)


def run_artemis(folder: Path, log: Path) -> subprocess.Popen[bytes]:
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


def wait_until_ready(
    process: subprocess.Popen[bytes], ports: BrokerPorts, log: Path, authority: Path | None = None
) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not artemis_answers(ports.amqp, authority=authority):
        if process.poll() is not None:
            raise DeployError(f"Artemis ended with exit code {process.returncode} while starting; see {log}")
        if time.monotonic() > deadline:
            raise DeployError(f"Artemis does not answer after {START_SECONDS:.0f} s; see {log}")
        time.sleep(0.2)


def artemis_answers(amqp_port: int, timeout: float = 2.0, authority: Path | None = None) -> bool:
    """Whether an AMQP broker, and not only somebody's open port, is there. With an `authority` by TLS."""
    try:
        with _connected(amqp_port, timeout, authority) as connection:
            connection.sendall(AMQP_HEADER)
            answer = connection.recv(8)
            # A half-closed and emptied connection ends quietly; a reset one is a warning in the broker's log.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
            return answer.startswith(b"AMQP")
    except OSError:
        return False


def _connected(port: int, timeout: float, authority: Path | None) -> socket.socket:
    plain = socket.create_connection((LOOPBACK, port), timeout)
    if authority is None:
        return plain
    return ssl.create_default_context(cafile=authority).wrap_socket(plain, server_hostname=LOOPBACK)


def _belongs_here(distribution: Path, folder: Path) -> bool:
    """An instance has its own path and the distribution's written into it; a moved one must be created
    anew."""
    profile = folder / "etc" / "artemis.profile"
    if not (profile.exists() and measured_copy(folder).exists()):
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
    (folder / "etc" / "broker.xml").rename(measured_copy(folder))
