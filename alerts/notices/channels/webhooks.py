"""Signed JSON for programs: our own form, which receivers of before Standard Webhooks know, and the one of
that specification."""

import base64
import hashlib
import hmac
import secrets
from datetime import datetime

from alerts.notices.channels.request import (
    TEST,
    TRIP_ENDED,
    TRIPPED,
    Message,
    OutgoingRequest,
    Recipient,
    as_json,
)

# -- our own: MA-Signature -----------------------------------------------------------------------------------

SIGNATURE_VERSION = "v1"
VERSION = 1
OWN_NAMES = {TRIPPED: "trip", TRIP_ENDED: "trip", TEST: "test"}


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 in hex over the timestamp, a point, and the body, as docs/how-to/notices.md tells
    receivers."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def own_webhook(message: Message, to: Recipient, now: datetime) -> tuple[OutgoingRequest, ...]:
    event = OWN_NAMES.get(message.event, "alert")
    facts = {name: value for name, value in message.data.items() if name != "ended_at"}
    body = as_json({"version": VERSION, "event": event, "at": message.at.isoformat(), **facts})
    timestamp = str(int(now.timestamp()))
    headers = {
        "MA-Event": event,
        "MA-Timestamp": timestamp,
        "MA-Signature": f"{SIGNATURE_VERSION}={sign(to.secret, timestamp, body)}",
    }
    return (OutgoingRequest(to.address, body, headers),)


# -- Standard Webhooks ---------------------------------------------------------------------------------------

PREFIX = "whsec_"
KEY_BYTES = 32


def new_standard_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def standard_webhook(message: Message, to: Recipient, now: datetime) -> tuple[OutgoingRequest, ...]:
    """`webhook-id` is the same in each repetition: a receiver that knows it has nothing to do. The timestamp
    is that of the attempt."""
    body = as_json({"type": message.event, "timestamp": message.at.isoformat(), "data": dict(message.data)})
    timestamp = str(int(now.timestamp()))
    key = base64.b64decode(to.secret.removeprefix(PREFIX))
    signed = f"{message.id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    headers = {
        "webhook-id": message.id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }
    return (OutgoingRequest(to.address, body, headers),)
