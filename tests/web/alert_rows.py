"""Alerts of the busy house: one open, one snoozed, one that has closed."""

from datetime import timedelta
from typing import TYPE_CHECKING

from agents.models import Pool
from alerts.models import Alert, AlertTransition, Notice, NoticeState, Severity

if TYPE_CHECKING:
    from tests.web.factories import World


def make_alerts(world: "World") -> Alert:
    """The open one."""
    at, person = world.now - timedelta(minutes=40), world.people["operator"]
    silent = Alert.objects.create(
        kind="server_silent", subject="srv-4", severity=Severity.BAD, state="open",
        server=world.servers["srv-4"],
        facts={"server": "srv-4"}, value=127, opened_at=at, above_since=at, repeats=1,
    )  # fmt: skip
    old = Alert.objects.create(
        kind="dead_letters_old", subject="DLQ.orders-export", severity=Severity.WARNING, state="snoozed",
        setting=world.settings["orders-export"], facts={"queue": "DLQ.orders-export"}, value=200_000,
        opened_at=at,
        above_since=at, snoozed_until=world.now + timedelta(hours=3),
    )  # fmt: skip
    spool = Alert.objects.create(
        kind="spool_filling", subject="srv-2", severity=Severity.BAD, state="closed",
        server=world.servers["srv-2"],
        facts={"server": "srv-2", "bytes": 500_000_000, "rows": 9}, value=91,
        opened_at=at - timedelta(days=1),
        closed_at=at - timedelta(hours=23),
    )  # fmt: skip
    for alert in (silent, old, spool):
        alert.pools.set(Pool.objects.filter(name="main"))
        AlertTransition.objects.create(
            alert=alert, step="opened", value=alert.value, at=alert.opened_at or at
        )
    AlertTransition.objects.create(alert=silent, step="repeated", value=100, at=world.now)
    AlertTransition.objects.create(
        alert=old,
        step="snoozed",
        value=old.value,
        at=world.now,
        by=person,
        until=old.snoozed_until,
        reason="known",
    )
    AlertTransition.objects.create(alert=spool, step="closed", value=12, at=spool.closed_at or at)
    Notice.objects.create(
        transition=silent.transitions.first(), channel="email", address="oncall@shop.example",
        state=NoticeState.SENT,
        attempts=1, sent_at=at,
    )  # fmt: skip
    return silent
