"""When the certificates end that this site shows and sees: kept as a component, looked at every few
minutes."""

import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import urlsplit

from django.conf import settings

from agents.models import ComponentCondition, ComponentState
from agents.site.components import note_state
from broker import dialing
from contract import redis_url
from contract.encryption import end_of_authorities, end_of_chain, ends_of

NAME = "certificates"
EVERY, SOON = timedelta(minutes=10), timedelta(days=30)
SECONDS = 2.0


def look(now: datetime) -> None:
    """What cannot be asked now keeps the end that was seen last."""
    row = ComponentState.objects.filter(name=NAME).first()
    if row is not None and row.measured_at > now - EVERY:
        return
    seen = {what: end.isoformat() for what, end in seen_now()}
    if row is None and not seen:
        return
    known = dict(row.details.get("ends", {})) if row else {}
    ends = {what: end for what, end in {**known, **seen}.items() if what in _expected()}
    soon = any(datetime.fromisoformat(end) < now + SOON for end in ends.values())
    note_state(NAME, ComponentCondition.DOWN if soon else ComponentCondition.OK, now, {"ends": ends})


def ends() -> dict[str, datetime]:
    """Of what was seen: the address of who shows it, or the file."""
    row = ComponentState.objects.filter(name=NAME).first()
    found = row.details.get("ends", {}) if row else {}
    return {what: datetime.fromisoformat(end) for what, end in found.items()}


def seen_now() -> Iterator[tuple[str, datetime]]:
    for what, ask in _sources().items():
        with suppress(OSError, ValueError):
            yield what, ask()


def _expected() -> frozenset[str]:
    return frozenset(_sources())


def _sources() -> dict[str, Callable[[], datetime]]:
    """Whoever shows one, by address; then our own and the authorities that we believe, by file."""
    shown = {**_brokers(), **_redis(), **_database()}
    redis = redis_url.parse(settings.MA_REDIS_URL).tls
    database = settings.DATABASES["default"].get("OPTIONS", {})
    broker = settings.MA_BROKER_AMQP.tls
    own = (broker.certificate, redis.get("ssl_certfile"), database.get("sslcert"), settings.MA_TLS_CERT)
    believed = (broker.ca, redis.get("ssl_ca_certs"), database.get("sslrootcert"))
    return {
        **shown,
        **{path: partial(end_of_chain, path) for path in own if path},
        **{path: partial(end_of_authorities, path) for path in believed if path},
    }


def _brokers() -> dict[str, Callable[[], datetime]]:
    return {
        str(address): partial(_shown_by, address.host, address.port)
        for account, protocol in ((settings.MA_BROKER_AMQP, "amqp"), (settings.MA_BROKER_STOMP, "stomp"))
        for address in dialing.parse(account.url, protocol)
        if address.secure
    }


def _redis() -> dict[str, Callable[[], datetime]]:
    parts = urlsplit(redis_url.parse(settings.MA_REDIS_URL).url)
    if parts.scheme != "rediss":
        return {}
    host, port = parts.hostname or "", parts.port or 6379
    return {f"{host}:{port}": partial(_shown_by, host, port)}


def _database() -> dict[str, Callable[[], datetime]]:
    known = settings.DATABASES["default"]
    if known.get("OPTIONS", {}).get("sslmode") not in ("require", "verify-ca", "verify-full"):
        return {}
    host, port = known["HOST"], int(known["PORT"] or 5432)
    if not host or host.startswith("/"):
        return {}  # a Unix socket, which has no TLS
    return {f"{host}:{port}": partial(_shown_by, host, port, ask=_ask_postgresql)}


SSL_REQUEST, WILLING = struct.pack("!ii", 8, 80877103), b"S"


def _ask_postgresql(plain: socket.socket) -> None:
    """It speaks in clear until it is asked for TLS."""
    plain.sendall(SSL_REQUEST)
    if plain.recv(1) != WILLING:
        raise ConnectionError("no TLS there")


def _shown_by(host: str, port: int, ask: Callable[[socket.socket], None] = lambda plain: None) -> datetime:
    """It need not be believed to be read: who connects says what is wrong with it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, port), SECONDS) as plain:
        ask(plain)
        with context.wrap_socket(plain, server_hostname=host) as secured:
            return ends_of(secured.getpeercert(binary_form=True) or b"")
