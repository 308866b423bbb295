"""A generated archive: protocols with the skew of real ones, and what belongs to them.

200 settings and 500 fingerprints with long tails, 20 servers. An activation has about 100 failures: mostly
one fingerprint, of messages that fail three times. In one of four nothing is handled well between them. They
occur over 30 days, and are archived in blocks of one day each.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 30
PER_ACTIVATION = 100
IN_A_BLOCK = 250_000
SETTINGS = 200

# u(x, k): a number from 0 to 1 that is always the same for `x` and `k`.
_FUNCTIONS = """
CREATE OR REPLACE MACRO h(x) AS (hash(x) % 1000000007)::BIGINT;
CREATE OR REPLACE MACRO u(x, k) AS (hash(x * 1000003 + k) % 1000000)::BIGINT / 1000000.0;
CREATE OR REPLACE MACRO setting_of(a) AS 'setting-' || lpad(CAST(floor(200 * power(u(a, 1), 3))
AS INTEGER)::VARCHAR,
    3, '0');
CREATE OR REPLACE MACRO server_of(a, n) AS 'server-' || lpad(((h(a) % 20 + n) % 20)::VARCHAR, 2, '0');
CREATE OR REPLACE MACRO servers_of(a) AS 1 + CAST(floor(4 * u(a, 2)) AS INTEGER);
CREATE OR REPLACE MACRO activation_of(a) AS substr(md5(a::VARCHAR), 1, 8) || '-' || substr(md5(a::VARCHAR),
9, 4)
    || '-4'
    || substr(md5(a::VARCHAR), 14, 3) || '-8' || substr(md5(a::VARCHAR), 18,
    3) || '-' || substr(md5(a::VARCHAR), 21,
        12);
"""

# From here on `i` is the number of a protocol, `a` of its activation, `begun` the start of that, `s` over how
# many seconds its failures spread.
_PROTOCOLS = """
SELECT md5('p' || i) AS id, i AS number, setting_of(a) AS setting_key, activation_of(a) AS activation,
1::BIGINT
    AS epoch,
    server_of(a, CAST(floor(servers_of(a) * u(i, 3)) AS INTEGER)) AS server, 'agent' AS agent, 'raised'
    AS outcome,
    'shop.errors.Error' || (kind % 40) AS exception_type, 'value ' || (i % 1000) AS exception_text,
    repeat('  File "shop/orders.py", line 12, in handle' || chr(10), 10) || kind AS traceback,
    md5('f' || kind)
        AS fingerprint,
    'shop/orders.py:handle' AS place, u(i, 4) < 0.05 AS temporary, u(i, 4) >= 0.05 AS counted, false
    AS last_attempt,
    CASE WHEN u(i, 5) < (CASE WHEN u(a, 6) < 0.25 THEN 0.02 ELSE 0.6 END) THEN 1 + i % 50 ELSE 0 END::BIGINT
        AS successes_before,
    'ID:' || a || '-' || (i % 100) // 3 AS message_key, false AS message_key_weak, (1 + i % 3)::BIGINT
    AS attempt,
    (100 + h(i // 3) % 5000)::BIGINT AS body_size,
    '{"region": "' || (['EU', 'US', 'ASIA'])[1 + h(i // 3) % 3] || '", "kind": "k' || (h(i // 3 + 1) % 8)
        || '", "lines": ' || (h(i // 3 + 2) % 200) || '}' AS properties,
    happened AS occurred_at, happened + INTERVAL 2 SECONDS AS received_at
FROM (SELECT *, CASE WHEN u(i, 7) < 0.85 THEN CAST(floor(500 * power(u(a, 8), 2)) AS INTEGER)
        ELSE CAST(floor(500 * power(u(i, 9), 2)) AS INTEGER) END AS kind,
    begun + to_microseconds(CAST((i % 100) * 1e6 * s / 100 + u(i, 10) * 1e6 AS BIGINT)) AS happened FROM base)
"""
_RECOVERED = """
SELECT md5('r' || i) AS id, setting_of(a) AS setting_key, activation_of(a) AS activation, server_of(a, 0)
AS server,
    'ID:' || a || '-' || (i % 100) // 3 AS message_key, 4::BIGINT AS attempt, happened AS occurred_at,
    happened + INTERVAL 2 SECONDS AS received_at
FROM (SELECT *, begun + to_microseconds(CAST((i % 100) * 1e6 * s / 100 + 60e6 * u(i, 11) AS BIGINT))
AS happened
    FROM base)
WHERE i % 10 = 0
"""
_LETTERS = """
SELECT i AS id, 'DLQ' AS queue, setting_of(a) AS setting_key, 'ID:' || a || '-' || (i % 100) // 3
AS message_key,
    md5('f' || (i % 500)) AS fingerprint, 500::BIGINT AS size,
    begun + to_microseconds(CAST(3600e6 * u(i, 12) AS BIGINT)) AS seen_at, seen_at AS archived_at
FROM base WHERE (i % 100 = 50 OR (i % 100 > 90 AND (['EU', 'US', 'ASIA'])[1 + h(i // 3) % 3] = 'EU'))
AND i % 2 = 0
"""
_REPLAYS = """
SELECT i AS id, 'job' AS job, 'give_back' AS action, i AS letter, setting_of(a) AS setting_key, ''
AS target_key,
    md5('f' || CAST(floor(500 * power(u(a, 8), 2)) AS INTEGER)) AS fingerprint, begun AS died_at,
    begun + to_microseconds(CAST(3600e6 * u(i, 13) * 50 AS BIGINT)) AS given_back_at,
    (['handled', 'failed_again', 'dead_again'])[1 + h(i) % 3] AS outcome,
    begun + INTERVAL 60 HOURS AS outcome_at, begun AS archived_at
FROM base WHERE i % 200 = 0
"""
_ACTIVATIONS = """
SELECT activation_of(a) AS id, setting_of(a) AS setting_key, 'stopped' AS state, 'enabled' AS trigger, u(a,
    6) >= 0.25 AS well,
    begun AS started_at, begun + INTERVAL 2 HOURS AS ended_at, 10::BIGINT AS breaker_m, 'many' AS mode, '{}'
        AS launched_with,
    begun AS archived_at
FROM base WHERE i % 100 = 0
"""
_RUNS = """
SELECT activation_of(a) AS activation, setting_of(a) AS setting_key, server_of(a, n) AS server, 1::BIGINT
AS epoch,
    'finished' AS state, (1000 + h(a + n) % 2000)::BIGINT AS handled,
    (CASE WHEN server_of(a, n) = 'server-07' THEN 90 ELSE 25 END)::BIGINT AS failed, begun AS created_at,
    begun + INTERVAL 2 HOURS AS closed_at, begun AS archived_at
FROM base, (SELECT unnest(range(4)) AS n) WHERE i % 100 = 0 AND n < servers_of(a)
"""
_TRIPS = """
SELECT a AS id, setting_of(a) AS setting_key, activation_of(a) AS activation, server_of(a, 0) AS server,
    'any_type' AS reason, begun + INTERVAL 30 MINUTES AS "at", begun + INTERVAL 4 HOURS AS enabled_again_at,
    begun
        AS archived_at
FROM base WHERE i % 2000 = 0
"""
KINDS = {
    "protocols": (_PROTOCOLS, "occurred_at"),
    "recovered": (_RECOVERED, "occurred_at"),
    "letters": (_LETTERS, "seen_at"),
    "replays": (_REPLAYS, "outcome_at"),
    "activations": (_ACTIVATIONS, "started_at"),
    "runs": (_RUNS, "created_at"),
    "trips": (_TRIPS, '"at"'),
}


@dataclass(frozen=True, slots=True)
class Day:
    """Protocols `first` to `last` (exclusive) of one day."""

    at: datetime
    first: int
    last: int


def days(rows: int, number: int = DAYS, *, first: int = 0, start: datetime = START) -> list[Day]:
    """Whole activations."""
    each = max(PER_ACTIVATION, rows // number // PER_ACTIVATION * PER_ACTIVATION)
    edges = [first + min(rows, each * day) for day in range(number)] + [first + rows]
    return [
        Day(start + timedelta(days=at), edges[at], edges[at + 1])
        for at in range(number)
        if edges[at] < edges[at + 1]
    ]


def write(archive: Path, every: list[Day], numbers: dict[str, int]) -> None:
    """Appends blocks; `numbers`: by kind the last block that is there."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET threads = 2; SET preserve_insertion_order = false")
    connection.execute(_FUNCTIONS)
    for day in every:
        for first in range(day.first, day.last, IN_A_BLOCK):
            some = range(first, min(first + IN_A_BLOCK, day.last))
            connection.execute(_base(day, some))
            for kind, (select, occurred) in KINDS.items():
                _block(connection, archive, kind, select, occurred, day, numbers)
    connection.close()


def _base(day: Day, some: range) -> str:
    """An activation begins somewhere in the first 20 hours of the day, its failures last for two."""
    begun = (
        f"TIMESTAMPTZ '{day.at.isoformat()}' + to_microseconds(CAST(72e9 * u(i // "
        f"{PER_ACTIVATION}, 14) AS BIGINT))"
    )
    return f"""CREATE OR REPLACE TEMP TABLE base AS SELECT i, i // {PER_ACTIVATION} AS a, {begun} AS begun,
        600 + 6600 * u(i // {PER_ACTIVATION}, 15) AS s FROM range({some.start}, {some.stop}) t(i)"""


def _block(
    connection: Any, archive: Path, kind: str, select: str, occurred: str, day: Day, numbers: dict[str, int]
) -> None:
    number = numbers[kind] = numbers.get(kind, 0) + 1
    date = day.at.date().isoformat()
    folder = f"data/{kind}/day={date}/block-{number:06d}-bench"
    (archive / folder).mkdir(parents=True)
    file = archive / folder / "part-0.zstd.parquet"
    connection.execute(f"COPY ({select} ORDER BY {occurred}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
    text = "strftime({}, '%Y-%m-%dT%H:%M:%S.%f+00:00')"
    ends = ", ".join(text.format(f"{end}({occurred})") for end in ("min", "max"))
    found = connection.execute(f"SELECT count(*), {ends} FROM '{file}'").fetchone()
    _, least, most = found
    manifest = {
        "version": 1, "kind": kind, "block": number, "day": date, "folder": folder, "rows": found[0],
        "schema": 1,
        "checksum": "", "keys": "", "first": _midnight(day.at), "last": _midnight(day.at + timedelta(days=1)),
        "occurred_min": least, "occurred_max": most, "archived_at": _midnight(day.at), "late_of": None,
        "replaces": [],
        "files": [{"name": file.name, "rows": found[0], "bytes": file.stat().st_size, "occurred_min": least,
                   "occurred_max": most}],
    }  # fmt: skip
    place = archive / "manifest" / kind / f"{number:06d}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(manifest), "utf-8")


def _midnight(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")


def settings() -> Iterator[dict[str, Any]]:
    for number in range(SETTINGS):
        yield {
            "key": f"setting-{number:03d}",
            "n_days": 30,
            "breaker_m": 10,
            "server_mode": "MANY",
            "enabled": True,
        }
