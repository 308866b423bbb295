"""A year of figures as the product keeps them, by COPY. Rows of a table are drawn from some hundred that were
made with the product's own functions: durations are log-normal, as those of real handlers mostly are."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection

from agents.models import LaunchSetting, Pool, Server
from console.database import bulk
from contract.histogram import bucket
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


@dataclass(frozen=True, slots=True)
class Scale:
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
    settings, servers = _make(scale)
    pairs = {(setting, server) for setting in settings for server in servers}
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
        for table in TABLES:
            cursor.execute(f"VACUUM ANALYZE {table._meta.db_table}")


def _make(scale: Scale) -> tuple[list[int], list[int]]:
    pool = Pool.objects.create(name="bench")
    LaunchSetting.objects.bulk_create(
        LaunchSetting(key=f"s{number}", agent="bench", pool=pool, kind="standalone")
        for number in range(scale.settings_made)
    )
    Server.objects.bulk_create(Server(name=f"srv-{number}") for number in range(scale.servers))
    return list(LaunchSetting.objects.values_list("pk", flat=True)), list(
        Server.objects.values_list("pk", flat=True)
    )


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
    made, wider, pairs = scale.settings_made, 1 + scale.servers, scale.servers
    grown = {
        ScopeMinute: (scale.settings + wider) / (made + wider),
        Minute: scale.settings / made,
        HourMinutes: scale.settings / made,
    }
    of_all = (scale.settings * (pairs + 1) + wider) / (made * (pairs + 1) + wider)
    found = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute("SELECT pg_total_relation_size(%s)", [table._meta.db_table])
            found[table.__name__] = cursor.fetchone()[0] / 1e6 * grown.get(table, of_all)
    return found
