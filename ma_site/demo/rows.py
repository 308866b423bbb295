"""The rows of the demo. Everything is found by its name: making it twice changes nothing that a person
changed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q, QuerySet

from agents.groups.members import save_members
from agents.models import (
    Destination,
    LaunchSetting,
    Pool,
    Schedule,
    ScheduledGroup,
    Server,
    SettingKind,
    Spread,
    Timing,
)
from agents.models.setting import AckMode
from agents.provisioning.topology import save_destination, save_setting
from agents.schedules.tick import save_schedule
from console.audit.saves import saving

POOL = "demo"
# Agents that do what a message or a parameter says; nothing of a real installation begins with these.
DEMO_PREFIX = "demo."
SAMPLE_PREFIXES = (DEMO_PREFIX, "bench.")

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
        "kind": SettingKind.STANDALONE,
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


# -- the two groups that every installation has: operators act, viewers look ---------------------------------


# Apps whose rows people may see. Tokens are nobody's to look at but an administrator's.
SEEN_APPS = ("console", "agents", "failures", "dlq", "insights", "alerts", "retention")
SECRET_MODELS = ("servertoken", "apitoken")
CHANGED_BY_OPERATORS = (
    "launchsetting",
    "destination",
    "pool",
    "replayjob",
    "schedule",
    "scheduledgroup",
    "groupmember",
    "noticetarget",
    "alertrule",
)
# Nothing is lost with these. Settings, servers, pools and destinations are an administrator's to remove.
REMOVED_BY_OPERATORS = ("schedule", "scheduledgroup", "groupmember", "noticetarget", "alertrule")
CUSTOM_PREFIX = "can_"
GIVEN_TO_OPERATORS = ("give_back", "handle_waiting")
# What settings mask, and what throws messages away, is for those whom an administrator names.
NAMED_BY_ADMINISTRATORS = ("can_see_masked", "can_discard")


def make_groups() -> None:
    """Creates `operator` and `viewer` or brings their permissions up to date; people in them stay."""
    permissions = Permission.objects.filter(content_type__app_label__in=SEEN_APPS)
    permissions = permissions.exclude(content_type__model__in=SECRET_MODELS)
    permissions = permissions.exclude(codename__in=NAMED_BY_ADMINISTRATORS)
    looks = Q(codename__startswith="view_")
    acts = Q(codename__startswith=CUSTOM_PREFIX) | Q(codename__in=GIVEN_TO_OPERATORS)
    for model in CHANGED_BY_OPERATORS:
        acts |= Q(codename__in=[f"add_{model}", f"change_{model}"])
    acts |= Q(codename__in=[f"delete_{model}" for model in REMOVED_BY_OPERATORS])
    _group("viewer", permissions.filter(looks))
    _group("operator", permissions.filter(looks | acts))


def _group(name: str, permissions: QuerySet[Permission]) -> None:
    group = Group.objects.filter(name=name).first() or Group(name=name)
    with saving(group, None):
        group.save()
        group.permissions.set(permissions)
