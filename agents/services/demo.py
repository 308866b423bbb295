"""The rows of the demo. Everything is found by its name: making it twice changes nothing that a person
changed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agents.models import (
    Destination,
    Kind,
    LaunchSetting,
    Pool,
    Schedule,
    ScheduledGroup,
    Server,
    Spread,
    Timing,
)
from agents.models.setting import AckMode
from agents.services.group_members import save_members
from agents.services.schedules import save_schedule
from agents.services.wishes import save_destination, save_setting
from console.audit.saves import saving

POOL = "demo"
# Agents that do what a message or a parameter says; nothing of a real installation begins with these.
SAMPLE_PREFIXES = ("demo.", "bench.")

# Letters die within half a minute: 1 + 2 + 4 s of delays before the fourth attempt, the last.
POLICY: dict[str, Any] = {"max_attempts": 4, "delay_ms": 1000, "multiplier": 2.0, "max_delay_ms": 10_000}
DESTINATIONS = {
    "demo.orders": "Orders of a shop, a steady trickle.",
    "demo.invoices": "What has to be invoiced.",
    "demo.scripted": "Messages that say themselves what shall happen: for rehearsals.",
    "demo.reports": "What was sold on a day.",
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
    "report": {
        "agent": "demo.nightly-report",
        "kind": Kind.STANDALONE,
        "timing": Timing.DELAYED,
        "parameters": {"reports": "demo.reports"},
        "description": "Adds up what was sold on a day and sends the report.",
    },
    "mailing": {
        "agent": "demo.audit",
        "destination": "demo.reports",
        "timing": Timing.DELAYED,
        "drain_idle_seconds": 2.0,
        "description": "Reads the reports that have gathered.",
    },
}
GROUP, MEMBERS, EVERY_SECONDS = "closing-day", ("report", "mailing"), 60
GROUP_TEXT = "First the report, then who reads it; each minute, so that there is something to see."


def make_demo_rows(servers: Sequence[str], now: datetime) -> list[LaunchSetting]:
    """The settings of the demo, in their order."""
    pool = make_demo_pool()
    with saving(pool, None):
        pool.servers.add(*[_server(name, now) for name in servers])
    for name, description in DESTINATIONS.items():
        if not Destination.objects.filter(name=name).exists():
            destination = Destination(name=name, description=description, **POLICY)
            with saving(destination, None):
                save_destination(destination)
    return [_setting(key, pool) for key in SETTINGS]


def make_demo_pool() -> Pool:
    pool = Pool.objects.filter(name=POOL).first()
    if pool is None:
        pool = Pool(name=POOL, description="Every server of this installation.")
        with saving(pool, None):
            pool.save()
    return pool


def make_demo_group(now: datetime) -> ScheduledGroup:
    """The group of the demo with its schedule, not yet enabled. Its members are there, and in no group."""
    group = ScheduledGroup(name=GROUP, description=GROUP_TEXT, created_at=now)
    with saving(group, None):
        group.save()
        save_members(group, MEMBERS, None, now)
        save_schedule(Schedule(group=group, every_seconds=EVERY_SECONDS), None, now)
    return group


def _server(name: str, now: datetime) -> Server:
    server = Server.objects.filter(name=name).first()
    if server is None:
        server = Server(name=name, created_at=now)
        with saving(server, None):
            server.save()
    return server


def _setting(key: str, pool: Pool) -> LaunchSetting:
    setting = LaunchSetting.objects.filter(key=key).first()
    if setting is None:
        fields = dict(SETTINGS[key])
        destination = Destination.objects.filter(name=fields.pop("destination", "")).first()
        setting = LaunchSetting(key=key, pool=pool, destination=destination, **fields)
        with saving(setting, None):
            save_setting(setting)
    return setting
