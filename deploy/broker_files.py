"""The files under the broker instance's etc/ that are ours: written from the templates at every start."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from deploy import secret_files

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


def write(instance: Path, ports: BrokerPorts, passwords: Mapping[str, str]) -> None:
    """`passwords` by user name; a user's role has the user's name."""
    etc = instance / "etc"
    secret_files.write(
        etc / "broker.xml", broker_xml(ports, _measured_timeout(instance), secrets.token_urlsafe(32))
    )
    secret_files.write(etc / "artemis-users.properties", users_file(passwords))
    secret_files.write(etc / "artemis-roles.properties", "".join(f"{user} = {user}\n" for user in passwords))
    secret_files.write(etc / "log4j2.properties", (TEMPLATES / "log4j2.properties").read_text("utf-8"))
    profile = etc / "artemis.profile"
    secret_files.write(profile, _with_heap(profile.read_text("utf-8")))


def broker_xml(ports: BrokerPorts, journal_buffer_timeout: str, cluster_password: str) -> str:
    return Template((TEMPLATES / "broker.xml").read_text("utf-8")).substitute(
        amqp_port=ports.amqp,
        stomp_port=ports.stomp,
        core_port=ports.core,
        journal_buffer_timeout=journal_buffer_timeout,
        cluster_password=cluster_password,
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
