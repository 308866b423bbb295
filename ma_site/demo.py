"""The rows of the demo, and a month that never was. Everything is found by its name: making it twice
changes nothing that a person changed."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Q, QuerySet

from agents.groups.members import save_members
from agents.models import (
    Activation,
    ActivationState,
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
from console.audit.saves import record_deletion, saving
from console.reasons import said
from contract.fingerprint import fingerprint
from contract.names import HISTORY_KEY
from contract.outcomes import Outcome
from failures.models import FailureProtocol, RecoveredMessage
from insights.archive import planning
from insights.models import ArchiveBlock
from insights.runs.folder import TABLES

POOL = "demo"
# Agents that do what a message or a parameter says; nothing of a real installation begins with these.
DEMO_PREFIX = "demo."
SAMPLE_PREFIXES = (DEMO_PREFIX, "bench.")

# Letters die within half a minute: 1 + 2 + 4 s of delays before the fourth attempt, the last.
POLICY: dict[str, Any] = {"max_attempts": 4, "delay_ms": 1000, "multiplier": 2.0, "max_delay_ms": 10_000}
DESTINATIONS = {
    "demo.orders": "Steady stream of shop orders.",
    "demo.invoices": "Orders to invoice.",
    "demo.scripted": "Messages that define their own outcome, for rehearsals.",
    "demo.reports": "Daily sales reports.",
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
        "description": "Processes orders. Some fail, each kind with a different error.",
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
        "description": "Acts as each message defines: rehearse failures here.",
    },
    "report": {
        "agent": "demo.nightly-report",
        "kind": SettingKind.STANDALONE,
        "timing": Timing.DELAYED,
        "parameters": {"reports": "demo.reports"},
        "description": "Adds up the sales of a day and sends a report.",
    },
    "mailing": {
        "agent": "demo.audit",
        "destination": "demo.reports",
        "timing": Timing.DELAYED,
        "drain_idle_seconds": 2.0,
        "description": "Reads the collected reports.",
    },
}
GROUP, MEMBERS, EVERY_SECONDS = "closing-day", ("report", "mailing"), 60
GROUP_TEXT = "Runs the report, then its reader, every minute."


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
        pool = Pool(name=POOL, description="All servers of this site.")
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


# -- a month that never was ----------------------------------------------------------------------------------
# So that *Insights* has something to show on the first day. All of it belongs to one launch setting, which
# is disabled and takes no messages. Its protocols are written past the intake: no tally, no breaker, no
# alert and no total ever counts them. It is made, and removed, in one transaction: a process that dies in
# it has done nothing.


HISTORY_DESCRIPTION = (
    "Generated demo data for Insights: a month of failures. Remove it with ./ma manage demo_history --remove"
)
HISTORY_DAYS = 30
HISTORY_SERVERS = ("old-1", "old-2", "old-3")
NAMESPACE = uuid5(NAMESPACE_URL, "ma:demo-history")
CHUNK = 500
# Type, text, place, temporary, failures a day in the first and in the last week, first and last day that it
# was seen.
FAULTS = (
    ("KeyError", "'wrapping'", "orders.py:41 in wrap", False, 4, 16, 0, HISTORY_DAYS),
    ("ConnectionError", "carrier does not answer", "carrier.py:17 in book", True, 14, 10, 0, HISTORY_DAYS),
    ("ValueError", "negative quantity", "orders.py:63 in check", False, 9, 1, 0, 24),
    ("TimeoutError", "stock took longer than 5 s", "stock.py:88 in reserve", False, 3, 7, 21, HISTORY_DAYS),
)


def make_history(pool: Pool, now: datetime) -> bool:
    """Returns whether it was made now. It ends yesterday, so that no day of it is still going on."""
    if LaunchSetting.objects.filter(key=HISTORY_KEY).exists():
        return False
    setting = LaunchSetting(
        key=HISTORY_KEY,
        kind=SettingKind.STANDALONE,
        agent="demo.history",
        pool=pool,
        description=HISTORY_DESCRIPTION,
    )
    with saving(setting, None):
        save_setting(setting)
        begin = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=HISTORY_DAYS)
        activation = Activation.objects.create(
            id=uuid5(NAMESPACE, "activation"), setting=setting, state=ActivationState.STOPPED,
            started_at=begin,
            ended_at=begin + timedelta(days=HISTORY_DAYS) - timedelta(minutes=1), well=False,
            reason=said(HISTORY_DESCRIPTION),
        )  # fmt: skip
        rows = list(_protocols(setting, activation, begin))
        FailureProtocol.objects.bulk_create(rows, batch_size=CHUNK)
        RecoveredMessage.objects.bulk_create(list(_recovered(rows)), batch_size=CHUNK)
    return True


def remove_history() -> bool:
    """Returns whether there was any. What the archive has of it stays there and is never computed again."""
    with transaction.atomic():
        setting = LaunchSetting.objects.filter(key=HISTORY_KEY).first()
        protocols = FailureProtocol.objects.filter(setting_key=HISTORY_KEY)
        if setting is None and not protocols.exists():
            return False
        protocols.delete()
        RecoveredMessage.objects.filter(setting_key=HISTORY_KEY).delete()
        if setting is not None:
            Activation.objects.filter(setting=setting).delete()
            record_deletion(setting, None)
            setting.delete()
        # Sums over all settings hold it until the next run.
        for table in TABLES.values():
            table._default_manager.filter(setting_key=HISTORY_KEY).delete()
        if ArchiveBlock.objects.exists():
            planning.request_recomputation("the demo history was removed")
    return True


def _protocols(setting: LaunchSetting, activation: Activation, begin: datetime) -> Iterator[FailureProtocol]:
    chance = random.Random(20)
    number = 0
    for day in range(HISTORY_DAYS):
        for kind, text, place, temporary, early, late, first, last in FAULTS:
            if not first <= day < last:
                continue
            usual = early + (late - early) * (day - first) / max(1, last - first - 1)
            for _ in range(max(0, round(usual * chance.uniform(0.7, 1.3)))):
                number += 1
                at = begin + timedelta(days=day, seconds=chance.uniform(6 * 3600, 22 * 3600))
                # The third server fails twice as often as the others.
                server = chance.choices(HISTORY_SERVERS, (1, 1, 2))[0]
                yield _protocol(setting, activation, number, at, server, (kind, text, place, temporary))


def _protocol(
    setting: LaunchSetting, activation: Activation, number: int, at: datetime, server: str,
    fault: tuple[str, str, str, bool],
) -> FailureProtocol:  # fmt: skip
    kind, text, place, temporary = fault
    outcome = Outcome.TEMPORARY if temporary else Outcome.RAISED
    return FailureProtocol(
        id=uuid5(NAMESPACE, f"protocol {number}"), spool=NAMESPACE, number=number, setting=setting,
        setting_key=setting.key, activation=activation, activation_uuid=activation.pk, epoch=1,
        server_name=server,
        agent=setting.agent, agent_version="0", outcome=outcome.value, exception_type=kind,
        exception_text=f"{text} (demo data)", fingerprint=fingerprint(kind, text, ""), place=place,
        temporary=temporary,
        counted=not temporary, message_key=f"made-up-{number}", queue=setting.key, destination="demo.history",
        attempt=1, delivery_count=1, duration_seconds=0.2, occurred_at=at, received_at=at,
    )  # fmt: skip


def _recovered(rows: list[FailureProtocol]) -> Iterator[RecoveredMessage]:
    """What failed for a while only was handled a minute later."""
    for row in rows:
        if row.temporary:
            at = row.occurred_at + timedelta(minutes=1)
            yield RecoveredMessage(
                id=uuid5(NAMESPACE, f"recovered {row.number}"), setting_key=row.setting_key,
                activation_uuid=row.activation_uuid, server_name=row.server_name, message_key=row.message_key,
                attempt=2, occurred_at=at, received_at=at,
            )  # fmt: skip
