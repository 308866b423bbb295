"""A notification before any channel gives it its form, and the requests that a form makes of it. Pure: made
of rows by `alerts/notices/message.py`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

from django.conf import settings

from alerts.models import Event, EventKind, LeastSeverity
from alerts.rules import AlertStep

INFO, WARNING, BAD = LeastSeverity.EVERYTHING, LeastSeverity.WARNING, LeastSeverity.BAD
ALERT_EVENTS = {
    AlertStep.OPENED.value: "alert.opened",
    AlertStep.REPEATED.value: "alert.repeated",
    AlertStep.REOPENED.value: "alert.opened",
    AlertStep.CLOSED.value: "alert.resolved",
}
EVENTS = {
    EventKind.ENABLED.value: "setting.enabled",
    EventKind.DISABLED.value: "setting.disabled",
    EventKind.REPLAY_ENDED.value: "replay.ended",
    EventKind.DEAD_LETTERS.value: "dead_letters.first",
}
TRIPPED, TRIP_ENDED, TEST = "setting.tripped", "setting.trip_ended", "test"
# Names of events, as Standard Webhooks carry them.
EVERY_EVENT = (*sorted({*ALERT_EVENTS.values(), *EVENTS.values()}), TRIPPED, TRIP_ENDED, TEST)


@dataclass(frozen=True, slots=True)
class Message:
    """`id`: the same in each repetition of this notification. `cause`: the same in what opens, repeats and
    resolves one alert or trip. `over`: it resolves it. `labels`: names by which Alertmanager knows it.
    `data`: the same facts for programs."""

    id: str
    event: str
    cause: str
    severity: int
    title: str
    lines: tuple[str, ...]
    link: str
    began_at: datetime
    at: datetime
    over: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


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


def house() -> str:
    """Names this installation, where several send to one place."""
    return urlsplit(settings.MA_BASE_URL).netloc or "ma"


def severity_of_event(event: Event) -> int:
    bad = event.kind == EventKind.DEAD_LETTERS or event.facts.get("state") in ("failed", "stopped")
    return WARNING if bad else INFO
