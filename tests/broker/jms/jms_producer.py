"""Messages of real JMS clients, over Core and AMQP: `JmsProducer.java` with the jars of the broker."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy import distribution
from tests.services import Account, cache

PROGRAM = Path(__file__).with_name("JmsProducer.java")
CORE_FACTORY = "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory"
AMQP_FACTORY = "org.apache.qpid.jms.JmsConnectionFactory"
COMPRESSING = "?compressLargeMessage=true"


@dataclass(frozen=True)
class Sent:
    """One message: `size` is of its text, or of its bytes."""

    kind: str
    number: int
    size: int = 10


def send(url: str, account: Account, address: str, messages: Sequence[Sent]) -> None:
    """In their order; on the broker's disk when this returns. `url` begins with `tcp:` (Core) or `amqp:`."""
    jars = distribution.unpacked_in(cache()) / "lib" / "*"
    factory = CORE_FACTORY if url.startswith("tcp:") else AMQP_FACTORY
    lines = "".join(f"{address}\t{each.kind}\t{each.number}\t{each.size}\n" for each in messages)
    done = subprocess.run(
        ["java", "-Xmx256m", "-cp", str(jars), str(PROGRAM), factory, url, account.user, account.password],
        input=lines, text=True, capture_output=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
