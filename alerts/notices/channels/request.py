"""One POST of JSON, as a channel wants it sent."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from alerts.notices.message import Message


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """`headers` beside those that every request has. None of it is ever logged or stored."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recipient:
    """Where a notification goes: the address as it was entered, and the secret, a key or of a signature."""

    address: str
    secret: str = ""


class Form(Protocol):
    """Returns the requests of one message, sent one after the other; each must be answered with 2xx."""

    def __call__(self, message: Message, to: Recipient, now: datetime, /) -> tuple[OutgoingRequest, ...]: ...


def as_json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, sort_keys=True).encode()


def cut(text: str, most: int) -> str:
    """Returns at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
