"""A year of figures as the product keeps them, by COPY, in a large house where much happened in 90 days. Rows
of a table are drawn from some hundred that were made with the product's own functions: durations are
log-normal, as those of real handlers mostly are."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection

from agents.models import BreakerTrip, Interruption, LaunchSetting, Server, StateChange
from alerts.models import Alert
from bench import pages_rows
from bench.pages_rows import uuid_of
from console.database import bulk
from contract.histogram import bucket
from dlq.models import ReplayJob
from metrics.intake import scopes_of
from metrics.models import GAUGES, Day, Hour, HourMinutes, Minute, ScopeMinute, Summed, key_of
from metrics.rollup import columns_of
from metrics.rules import (
    DAY,
    DAYS_KEPT,
    FIGURES,
    HOUR,
    HOURS_KEPT,
    MINUTES_KEPT,
    Figures,
    minute_of,
    pack_minutes,
)

TABLES = (Minute, ScopeMinute, HourMinutes, Hour, Day)
DRAWN_FROM = 150
# Handled in a minute by a setting on a server, and what of an hour is not packed yet.
IN_A_MINUTE, UNPACKED = 60, 70
ACTIVATIONS = 100_000
# Of each kind of event, which is of settings, of servers or of both in turn.
EVENTS = 2_000


@dataclass(frozen=True, slots=True)
class Scale:
    """`share`: of the settings whose figures on each server are made; their own are made of all."""

    settings: int
    servers: int
    share: float

    @property
    def settings_made(self) -> int:
        return max(1, round(self.settings * self.share))


def figures(number: int, of: random.Random) -> Figures:
    """Of so many messages: 50 ms each, seen 2 s after they were sent, one in fifty fails."""
    drawn = min(number, 2_000)
    failed = number // 50
    found = Figures(
        succeeded=number - failed,
        failed=failed,
        recovered=failed // 2,
        bytes=number * 1_200,
        busy_seconds=number * 0.05 * of.uniform(0.9, 1.1),
        capacity_seconds=number * 4.0,
        children_bytes=of.randrange(200_000_000, 400_000_000),
    )
    for _ in range(drawn):
        for histogram, middle, width in ((found.processing, 0.05, 0.6), (found.critical, 2.0, 0.8)):
            index = bucket(middle * of.lognormvariate(0, width))
            histogram[index] = histogram.get(index, 0) + number // drawn
    return found


def fill(scale: Scale, now: datetime) -> None:
    pages_rows.make(ACTIVATIONS, scale.settings, scale.servers)
    settings = list(LaunchSetting.objects.order_by("pk").values_list("pk", flat=True))
    servers = list(Server.objects.order_by("pk").values_list("pk", flat=True))
    _make_events(settings, servers)
    pairs = {(setting, server) for setting in settings[: scale.settings_made] for server in servers}
    wider = {(None, None), *((setting, None) for setting in settings), *((None, each) for each in servers)}
    of_pairs = sorted(scopes_of(pairs).values())
    of_wider = sorted(scopes_of(wider).values())
    every, present, of = of_pairs + of_wider, minute_of(now), random.Random(25)
    minutes = range(present - MINUTES_KEPT, present)
    _copy(ScopeMinute, of_wider, minutes, IN_A_MINUTE * scale.servers, of)
    hours = range((present - HOURS_KEPT) // HOUR, present // HOUR)
    _copy(Hour, every, hours, IN_A_MINUTE * 60, of)
    _copy(Day, every, range((present - DAYS_KEPT) // DAY, present // DAY + 1), IN_A_MINUTE * 60 * 24, of)
    packs = [_pack(of) for _ in range(DRAWN_FROM)]
    kept = range((present - MINUTES_KEPT) // HOUR, (present - UNPACKED) // HOUR + 1)
    bulk.insert_values(
        HourMinutes._meta.db_table,
        ("key", "span", "minutes"),
        ((key_of(scope, hour), hour, of.choice(packs)) for hour in kept for scope in of_pairs),
    )
    _copy_reported(of_pairs, range(present - UNPACKED, present), of)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _make_events(settings: list[int], servers: list[int]) -> None:
    """Evenly over 90 days."""
    at = pages_rows.instant("i", EVENTS, apart=90 * 24 * 3600 / EVENTS)
    setting = f"{settings[0]} + i % {len(settings)}"
    server = f"{servers[0]} + i % {len(servers)}"
    agent = '\'{"code": "version.agent", "params": {"agent": "bench.noop"}}\''
    changes: dict[str, dict[str, str]] = {
        "setting": {
            "setting_id": setting,
            "new": "case i / 200 % 2 when 0 then 'enabled' else 'disabled' end",
        },
        "server_stop": {"setting_id": setting, "server_id": server, "new": "'stopped'"},
        "version": {"server_id": server, "old": "'1.' || i", "new": "'1.' || (i + 1)", "reason": agent},
        "server": {"server_id": server, "new": "case i % 2 when 0 then 'cordoned' else 'active' end"},
    }
    for what, columns in changes.items():
        pages_rows.fill(StateChange, EVENTS, {"what": f"'{what}'", "at": at, **columns})
    trip = {"id": "i", "setting_id": setting, "reason": "'same'", "at": at, "ended_at": at}
    pages_rows.fill(BreakerTrip, EVENTS, trip)
    gave_up = {
        "id": uuid_of("i"), "trip_id": "i", "setting_id": setting, "server_id": server, "epoch": "1",
        "activation_uuid": uuid_of("i"), "reason": "'same'", "limit_m": "5", "occurred_at": at,
        "received_at": at,
    }  # fmt: skip
    pages_rows.fill(Interruption, EVENTS, gave_up)
    key = f"'setting-' || lpad((i % {len(settings)})::text, 3, '0')"
    job = {"id": uuid_of("i"), "setting_id": setting, "setting_key": key, "scope": "'all'", "state": "'done'"}
    pages_rows.fill(ReplayJob, EVENTS, {**job, "created_at": at, "finished_at": at, "outcomes_ended_at": at})
    alert = {
        "kind": "'trip'",
        "subject": "'' || i",
        "severity": "2",
        "state": "'closed'",
        "setting_id": setting,
    }
    pages_rows.fill(Alert, EVENTS, {**alert, "server_id": server, "opened_at": at, "closed_at": at})


def _drawn(number: int, of: random.Random) -> list[list[Any]]:
    gauges = [1_234, 5, 10, 67, 12.5]
    made = [columns_of(figures(number, of)) for _ in range(DRAWN_FROM)]
    return [[*(each[name] for name in FIGURES), *gauges] for each in made]


def _copy(table: type[Summed], scopes: list[int], spans: range, number: int, of: random.Random) -> None:
    drawn = _drawn(number, of)
    columns = ("key", "scope_id", "span", *FIGURES, *GAUGES)

    def rows() -> Iterator[list[Any]]:
        for span in spans:
            for scope in scopes:
                yield [key_of(scope, span), scope, span, *of.choice(drawn)]

    bulk.insert_values(table._meta.db_table, columns, rows())


def _pack(of: random.Random) -> bytes:
    return pack_minutes({minute: figures(IN_A_MINUTE, of) for minute in range(60)})


def _copy_reported(scopes: list[int], minutes: range, of: random.Random) -> None:
    drawn = [each[: len(FIGURES)] for each in _drawn(IN_A_MINUTE, of)]
    instants = ("began_at", "ended_at", "occurred_at", "until", "received_at")
    columns = ("id", "scope_id", "span", *instants, "verified", "folded", "long", *FIGURES)

    def rows() -> Iterator[list[Any]]:
        for minute in minutes:
            begun = datetime.fromtimestamp(minute * 60).astimezone()
            over = begun + timedelta(minutes=1)
            for scope in scopes:
                identity: UUID = uuid4()
                yield [
                    identity,
                    scope,
                    minute,
                    begun,
                    over,
                    begun,
                    over,
                    over,
                    True,
                    True,
                    False,
                    *of.choice(drawn),
                ]

    bulk.insert_values(Minute._meta.db_table, columns, rows())


def size_of_all(scale: Scale) -> dict[str, float]:
    """MB by table, with indexes and what lies beside the table; reckoned for all settings."""
    wider = 1 + scale.settings + scale.servers
    made, whole = scale.settings_made * scale.servers, scale.settings * scale.servers
    of_pairs, of_all = whole / made, (whole + wider) / (made + wider)
    grown = {ScopeMinute: 1.0, Minute: of_pairs, HourMinutes: of_pairs}
    found = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute("SELECT pg_total_relation_size(%s)", [table._meta.db_table])
            found[table.__name__] = cursor.fetchone()[0] / 1e6 * grown.get(table, of_all)
    return found
