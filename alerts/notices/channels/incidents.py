"""What is open until it is resolved: events of PagerDuty (Events API v2) and alerts of Alertmanager (v2)."""

from datetime import datetime, timedelta
from typing import Any

from alerts.notices.channels.request import (
    BAD,
    INFO,
    TEST,
    WARNING,
    Message,
    OutgoingRequest,
    Recipient,
    as_json,
    cut,
    house,
)

SEVERITIES: dict[int, str] = {INFO: "info", WARNING: "warning", BAD: "critical"}

# -- PagerDuty -----------------------------------------------------------------------------------------------

# PagerDuty cuts or refuses what is longer.
SUMMARY, DEDUP_KEY = 1024, 255


def pagerduty(message: Message, to: Recipient, now: datetime) -> tuple[OutgoingRequest, ...]:
    """A test triggers and resolves, so that nothing stays open."""
    key = {"routing_key": to.secret, "dedup_key": cut(f"{house()}/{message.cause}", DEDUP_KEY)}
    resolve = OutgoingRequest(to.address, as_json({**key, "event_action": "resolve"}))
    if message.over:
        return (resolve,)
    labels = message.labels
    optional = {"component": labels.get("setting"), "group": labels.get("pool")}
    payload = {
        "summary": cut(message.title, SUMMARY),
        "source": labels.get("server") or house(),
        "severity": SEVERITIES[message.severity],
        "timestamp": message.at.isoformat(),
        "class": message.event,
        "custom_details": {"details": list(message.lines)},
        **{name: value for name, value in optional.items() if value},
    }
    body: dict[str, Any] = {
        **key,
        "event_action": "trigger",
        "payload": payload,
        "client": "MA",
        "client_url": message.link,
        "links": [{"href": message.link, "text": "MA"}],
    }
    trigger = OutgoingRequest(to.address, as_json(body))
    return (trigger, resolve) if message.event == TEST else (trigger,)


# -- Alertmanager --------------------------------------------------------------------------------------------

# Sent again so often while it is open. Alertmanager takes it for resolved where it has not heard of it for
# `LASTS`, so that two lost repetitions do no harm.
REPEATED_EVERY = timedelta(minutes=2)
LASTS = timedelta(minutes=10)
TEST_LASTS = timedelta(minutes=1)
ALERTS_PATH = "/api/v2/alerts"
ANNOTATION = 1000


def alertmanager(message: Message, to: Recipient, now: datetime) -> tuple[OutgoingRequest, ...]:
    """`labels` are what it is known by. It ends `LASTS` after this repetition, or now where it is over."""
    lasts = TEST_LASTS if message.event == TEST else LASTS
    alert = {
        "labels": dict(message.labels),
        "annotations": {
            "summary": cut(message.title, ANNOTATION),
            "description": cut("\n".join(message.lines), ANNOTATION),
        },
        "startsAt": message.began_at.isoformat(),
        "endsAt": (max(message.began_at, min(message.at, now)) if message.over else now + lasts).isoformat(),
        "generatorURL": message.link,
    }
    address = to.address.rstrip("/")
    url = address if address.endswith(ALERTS_PATH) else address + ALERTS_PATH
    return (OutgoingRequest(url, as_json([alert])),)
