"""Messages to and from real JMS clients, over Core and AMQP: `JmsProducer.java` with the jars of the broker.
One process of it serves the whole session."""

import atexit
import select
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from deploy.installing import artemis_download
from tests.services import Account, ArtemisService, cache

PROGRAM = Path(__file__).with_name("JmsProducer.java")
CORE_FACTORY = "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory"
AMQP_FACTORY = "org.apache.qpid.jms.JmsConnectionFactory"
COMPRESSING = "?compressLargeMessage=true"
ANSWER_SECONDS = 180


@dataclass(frozen=True)
class Sent:
    """One message: `size` is of its text, or of its bytes."""

    kind: str
    number: int
    size: int = 10


def send(url: str, account: Account, address: str, messages: Sequence[Sent]) -> None:
    """In their order; on the broker's disk when this returns. `url` begins with `tcp:` (Core) or `amqp:`."""
    factory = CORE_FACTORY if url.startswith("tcp:") else AMQP_FACTORY
    parts = [(address, each.kind, str(each.number), str(each.size)) for each in messages]
    _ask("send", factory, url, account.user, account.password, *(part for each in parts for part in each))


def receive(url: str, account: Account, queue: str, count: int, selector: str) -> dict[int, str]:
    """Takes so many messages of `address::queue` that the selector finds: what a client sees of each, by its
    property `number`."""
    factory = CORE_FACTORY if url.startswith("tcp:") else AMQP_FACTORY
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as found:
        who = (account.user, account.password)
        _ask("receive", factory, url, *who, queue, str(count), selector, found.name)
        lines = [line.rstrip("\n").partition("\t") for line in found]
    told = {int(number): seen for number, _tab, seen in lines}
    assert len(told) == len(lines) == count, "one came twice"
    return told


def send_by_command(
    service: ArtemisService, protocol: str, address: str, *content: str, query: str = ""
) -> None:
    """One message, as `artemis producer` makes it from the options in `content`; `query` is of the broker's
    URL."""
    url = (service.core_url if protocol == "CORE" else service.amqp_url) + query
    account = service.publisher
    _ask(
        "producer", "--silent", "--url", url, "--protocol", protocol, "--user", account.user,
        "--password", account.password, "--destination", f"topic://{address}", "--message-count", "1",
        *content,
    )  # fmt: skip


def _ask(*parts: str) -> None:
    client = _client()
    assert client.stdin is not None and client.stdout is not None
    client.stdin.write("\t".join(parts) + "\n")
    client.stdin.flush()
    ready, _, _ = select.select([client.stdout], [], [], ANSWER_SECONDS)
    answer = client.stdout.readline() if ready else f"no answer within {ANSWER_SECONDS} s"
    assert answer == "done\n", answer + _errors().read_text()


@once
def _errors() -> Path:
    return Path(tempfile.mkstemp(prefix="ma-jms-producer-")[1])


@once
def _client() -> "subprocess.Popen[str]":
    jars = artemis_download.unpacked_in(cache()) / "lib" / "*"
    with _errors().open("w") as errors:
        client = subprocess.Popen(
            ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(jars),
            str(PROGRAM)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8",
        )  # fmt: skip
    atexit.register(_end, client)
    return client


def _end(client: "subprocess.Popen[str]") -> None:
    assert client.stdin is not None
    with client:
        client.stdin.close()
    _errors().unlink()
