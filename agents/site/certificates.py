"""When the certificates end that this site shows and sees: kept as a component, looked at every few
minutes."""

import socket
import ssl
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
from contract.encryption import ends_of, ends_of_file

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
    found: dict[str, Callable[[], datetime]] = {}
    for account, protocol in ((settings.MA_BROKER_AMQP, "amqp"), (settings.MA_BROKER_STOMP, "stomp")):
        for address in dialing.parse(account.url, protocol):
            if address.secure:
                found[str(address)] = partial(_shown_by, address.host, address.port)
    redis = urlsplit(redis_url.parse(settings.MA_REDIS_URL).url)
    if redis.scheme == "rediss":
        host, port = redis.hostname or "", redis.port or 6379
        found[f"{host}:{port}"] = partial(_shown_by, host, port)
    for path in (settings.MA_BROKER_AMQP.tls.certificate, settings.MA_TLS_CERT):
        if path:
            found[path] = partial(ends_of_file, path)
    return found


def _shown_by(host: str, port: int) -> datetime:
    """It need not be believed to be read: who connects says what is wrong with it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((host, port), SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        return ends_of(secured.getpeercert(binary_form=True) or b"")
