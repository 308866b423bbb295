"""The rows of the demo. Everything is found by its name: making it twice changes nothing that a person changed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agents.models import Destination, LaunchSetting, Pool, Server, Spread
from agents.models.setting import AckMode
from agents.services.wishes import save_destination, save_setting

POOL = "demo"

# Letters die within half a minute: 1 + 2 + 4 s of delays before the fourth attempt, the last.
POLICY: dict[str, Any] = {"max_attempts": 4, "delay_ms": 1000, "multiplier": 2.0, "max_delay_ms": 10_000}
DESTINATIONS = {
    "demo.orders": "Orders of a shop, a steady trickle.",
    "demo.invoices": "What has to be invoiced.",
    "demo.scripted": "Messages that say themselves what shall happen: for rehearsals.",
}
SETTINGS: dict[str, dict[str, Any]] = {
    "orders": {
        "agent": "demo.orders",
        "destination": "demo.orders",
        "spread": Spread.ANY,
        "mode": AckMode.TRANSACTED,
        "concurrency": 2,
        "parameters": {"invoices": "demo.invoices"},
        "breaker_m": 60,  # its carrier is away one minute in three: that is part of the show
        "description": "Handles orders; some of them fail, each kind in its own way.",
    },
    "invoices": {
        "agent": "demo.invoices",
        "destination": "demo.invoices",
        "spread": Spread.MANY,
        "mode": AckMode.TRANSACTED,
        "concurrency": 2,
        "description": "Writes invoices on every server of the pool.",
    },
    "rehearsal": {
        "agent": "demo.scripted",
        "destination": "demo.scripted",
        "spread": Spread.MANY,
        "mode": AckMode.AUTO,
        "concurrency": 2,
        "breaker_m": 30,  # one rehearsed message dies after its 4 attempts, ten switch it off
        "description": "Does what a message says: try a failure here before it happens elsewhere.",
    },
}


def make_demo_rows(servers: Sequence[str], now: datetime) -> list[LaunchSetting]:
    """The settings of the demo, in their order."""
    pool, _ = Pool.objects.get_or_create(name=POOL, defaults={"description": "Every server of this installation."})
    pool.servers.add(*[Server.objects.get_or_create(name=name, defaults={"created_at": now})[0] for name in servers])
    for name, description in DESTINATIONS.items():
        if not Destination.objects.filter(name=name).exists():
            save_destination(Destination(name=name, description=description, **POLICY))
    return [_setting(key, pool) for key in SETTINGS]


def _setting(key: str, pool: Pool) -> LaunchSetting:
    setting = LaunchSetting.objects.filter(key=key).first()
    if setting is None:
        fields = dict(SETTINGS[key])
        destination = Destination.objects.get(name=fields.pop("destination"))
        setting = save_setting(LaunchSetting(key=key, pool=pool, destination=destination, **fields))
    return setting
