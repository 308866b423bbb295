"""Where brokers are: one address or several, of which one is live; who is asked first, and how."""

import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from broker.port import AccessRefused, Account, BrokerError, BrokerUnavailable
from contract.encryption import context_of, is_local, tls_problem

T = TypeVar("T")
PORTS = {"amqp": 5672, "amqps": 5671, "stomp": 61613, "stomps": 61614}
SECURE = ("amqps", "stomps")
# Seconds that each of several addresses gets at least, however many there are.
LEAST = 1.0


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    secure: bool

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str, protocol: str) -> tuple[Address, ...]:
    """Of a list with commas: `amqp://host:port` or `amqps://host:port`; `stomps://host:port`, or `host:port`
    in clear. `protocol`: amqp or stomp. Raises ValueError."""
    found = tuple(_address(each.strip(), protocol) for each in text.split(",") if each.strip())
    if not found:
        raise ValueError("lists no address")
    if len({each.secure for each in found}) > 1:
        raise ValueError("lists addresses with TLS and without: use one or the other")
    if len(set(found)) < len(found):
        raise ValueError("lists an address twice")
    return found


def _address(text: str, protocol: str) -> Address:
    if protocol == "stomp" and "://" not in text:
        text = f"stomp://{text}"
    example = "host:port or stomps://host:port" if protocol == "stomp" else "amqp(s)://host:port"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"must be {example}") from None
    if parts.scheme not in (protocol, f"{protocol}s") or not parts.hostname or port == 0:
        raise ValueError(f"must be {example}, or several with commas")
    if "@" in parts.netloc:
        raise ValueError("must not contain an account: URLs are logged")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f"must be {example}, with nothing behind it")
    if port is None and protocol == "stomp" and parts.scheme == "stomp":
        raise ValueError(f"must be {example}")
    try:
        parts.hostname.encode("idna")
    except UnicodeError:
        # A socket raises the same, and nobody who dials expects it.
        raise ValueError(f"has {parts.hostname}, which is no name of a host") from None
    return Address(parts.hostname, port or PORTS[parts.scheme], parts.scheme in SECURE)


def refuse_clear(account: Account, address: Address) -> None:
    """Raises AccessRefused where others would read the password."""
    if not address.secure and not account.in_clear and not is_local(address.host):
        raise AccessRefused(f"{address} is another machine, and the connection to it would not be encrypted")


def dial(account: Account, address: Address, timeout: float) -> socket.socket:
    """A connected socket, with TLS where the address says so. Raises BrokerUnavailable with what is wrong,
    AccessRefused as `refuse_clear` does."""
    refuse_clear(account, address)
    try:
        plain = socket.create_connection((address.host, address.port), timeout=timeout)
    except OSError as error:
        raise BrokerUnavailable(f"no connection to {address}: {error}") from error
    if not address.secure:
        return plain
    try:
        return context_of(account.tls).wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLError as error:
        plain.close()
        raise BrokerUnavailable(tls_problem(error, str(address))) from error
    except OSError as error:
        plain.close()
        raise BrokerUnavailable(f"no TLS with {address}: {error}") from error


# Which one of a list answered last, by the text of the list: the next connection begins there.
_last: dict[str, Address] = {}


def first_live(text: str, protocol: str, seconds: float, attempt: Callable[[Address, float], T]) -> T:
    """What `attempt(address, seconds)` returns for the first address that has it.

    It raises a BrokerError for one that is not live; the next one is asked then. All together get `seconds`.
    A wrong account is one only where no other broker takes it; raises that, or what the last one said.
    """
    addresses = parse(text, protocol)
    begin = addresses.index(_last[text]) if text in _last else 0
    deadline = time.monotonic() + seconds
    errors: list[BrokerError] = []
    for left, address in enumerate([*addresses[begin:], *addresses[:begin]]):
        share = (deadline - time.monotonic()) / (len(addresses) - left)
        try:
            answer = attempt(address, max(LEAST if len(addresses) > 1 else 0.0, share))
        except BrokerError as error:
            errors.append(error)
        else:
            _last[text] = address
            return answer
    raise _worst(errors)


def _worst(errors: list[BrokerError]) -> BrokerError:
    refused = [error for error in errors if isinstance(error, AccessRefused)]
    if refused or len(errors) == 1:
        return (refused or errors)[0]
    return BrokerUnavailable("; ".join(str(error) for error in errors))
