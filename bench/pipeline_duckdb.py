"""The answers of the pipeline's jobs by DuckDB, in its own words: `python -m bench pipeline --only
duckdb`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

MEMORY = "3GB"
LOWEST, HIGHEST = 3, 30

TRENDS = """
SELECT date_trunc('hour', occurred_at) AS hour, setting_key, server, fingerprint, count(*) AS count,
    count(*) FILTER (temporary) AS temporary, min(occurred_at) AS first_at, max(occurred_at) AS last_at,
    count(DISTINCT message_key) FILTER (message_key <> '') AS messages
FROM protocols GROUP BY ALL
"""
DAY_COUNTS = """
SELECT CAST(occurred_at AS DATE) AS day, setting_key, fingerprint, count(*) AS count,
    count(DISTINCT message_key) FILTER (message_key <> '') AS messages
FROM protocols GROUP BY ALL
"""
FAILURE_DAYS = """
WITH placed AS (
    SELECT *, row_number() OVER (PARTITION BY day ORDER BY count DESC, setting_key, fingerprint) AS rank,
        lag(day) OVER name AS before, lead(day) OVER name AS after
    FROM day_counts WINDOW name AS (PARTITION BY setting_key, fingerprint ORDER BY day))
SELECT day, setting_key, fingerprint, count, messages,
    CASE WHEN before IS NULL THEN 'new' WHEN before = day - 1 THEN 'same' ELSE 'returned' END AS standing,
    rank
FROM placed
UNION ALL
SELECT day + 1, setting_key, fingerprint, 0, 0, 'gone', rank FROM placed
WHERE (after IS NULL OR after > day + 1) AND day + 1 < DATE '{today}'
"""
HEALTH = """
WITH failed AS (
    SELECT activation, count(*) AS failures, count(*) FILTER (temporary) AS temporary,
        count(*) FILTER (attempt > 1) AS wasted_deliveries, min(occurred_at) AS first_failure_at
    FROM protocols GROUP BY 1),
ran AS (SELECT activation, sum(handled) AS handled FROM runs GROUP BY 1),
first AS (
    SELECT activation, min("at") AS tripped_at, arg_min(setting_key, struct_pack("at", id)) AS setting_key,
        arg_min(enabled_again_at, struct_pack("at", id)) AS enabled_again_at
    FROM trips WHERE activation IS NOT NULL GROUP BY 1),
repaired AS (
    SELECT first.activation, tripped_at,
        CASE WHEN min(recovered.occurred_at) <= any_value(enabled_again_at) + INTERVAL 7 DAYS
        THEN min(recovered.occurred_at) END AS repaired_at
    FROM first LEFT JOIN recovered ON recovered.setting_key = first.setting_key
        AND recovered.occurred_at > first.enabled_again_at
            AND recovered.occurred_at <= first.enabled_again_at + INTERVAL 7 DAYS
    GROUP BY 1, 2)
SELECT activations.id AS activation, setting_key, started_at, ended_at,
    epoch_us(ended_at) / 1e6 - epoch_us(started_at) / 1e6
    AS duration_seconds, coalesce(handled, 0) AS handled, coalesce(failures, 0) AS failures,
    CASE WHEN coalesce(handled, 0) + coalesce(failures, 0) > 0
        THEN coalesce(failures, 0) * 1000.0 / (coalesce(handled, 0) + coalesce(failures, 0)) END
        AS failures_per_1000,
    first_failure_at, tripped_at,
    CASE WHEN tripped_at >= first_failure_at
    THEN (epoch_us(tripped_at) - epoch_us(first_failure_at)) / 1e6 END
        AS seconds_to_trip,
    (epoch_us(repaired_at) - epoch_us(tripped_at)) / 1e6 AS seconds_to_repair,
    coalesce(wasted_deliveries, 0) AS wasted_deliveries,
    CASE WHEN failures > 0 THEN temporary / failures END AS temporary_share
FROM activations LEFT JOIN failed ON failed.activation = id LEFT JOIN ran ON ran.activation = id
    LEFT JOIN repaired ON repaired.activation = id
WHERE ended_at IS NOT NULL
"""
LIVES = """
SELECT id AS activation, setting_key, least(coalesce(servers, 1), 2) AS needed
FROM activations LEFT JOIN (SELECT activation, count(DISTINCT server) AS servers FROM runs GROUP BY 1) ran
    ON ran.activation = id
WHERE ended_at IS NOT NULL
"""
# Where each limit trips first in a run: see pipeline/jobs/breaker_backtest.py.
RECORDS = """
WITH effects AS (
    SELECT * FROM (
        SELECT activation, server, epoch, occurred_at, number, successes_before > 0 AS resets,
            CASE WHEN counted AND NOT temporary THEN exception_type END AS kind,
            row_number() OVER (PARTITION BY activation ORDER BY occurred_at DESC, number DESC,
            server DESC) - 1 AS after
        FROM protocols SEMI JOIN lives USING (activation))
    WHERE kind IS NOT NULL OR resets),
told AS (
    SELECT *, count(kind) OVER so_far AS counted, last_value(kind IGNORE NULLS) OVER before AS kind_before,
        lead(CASE WHEN resets THEN occurred_at END IGNORE NULLS) OVER run AS again_at
    FROM effects WINDOW run AS (PARTITION BY activation, server, epoch ORDER BY occurred_at, number),
        so_far AS (PARTITION BY activation, server, epoch ORDER BY occurred_at,
        number ROWS UNBOUNDED PRECEDING),
        before AS (PARTITION BY activation, server, epoch ORDER BY occurred_at, number
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
counts AS (
    SELECT *, counted - coalesce(max(CASE WHEN resets
    THEN counted - (kind IS NOT NULL)::INT END) OVER so_far, 0)
        AS any_of,
        counted - coalesce(max(CASE WHEN resets OR (kind IS NOT NULL AND kind IS DISTINCT FROM kind_before)
            THEN counted - (kind IS NOT NULL)::INT END) OVER so_far, 0) AS same
    FROM told WINDOW so_far AS (PARTITION BY activation, server, epoch ORDER BY occurred_at,
        number ROWS UNBOUNDED PRECEDING)),
reaches AS (
    SELECT *, coalesce(max(reach) OVER (PARTITION BY activation, server, epoch ORDER BY occurred_at, number
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), {lowest} - 1) AS reached
    FROM (SELECT *, CASE WHEN kind IS NOT NULL THEN greatest(any_of, 3 * same + 2) END AS reach FROM counts))
SELECT activation, server, occurred_at AS "at", after, again_at, reached + 1 AS from_m, least(reach,
{highest}) AS to_m
FROM reaches WHERE reach > reached AND reached < {highest}
"""
STEPS = """
WITH answered AS (
    SELECT records.*, recovered.occurred_at AS recovered_at FROM records
    ASOF LEFT JOIN recovered ON records.activation = recovered.activation
    AND records."at" < recovered.occurred_at),
given_up AS (
    SELECT activation, m, list(struct_pack(after, server, "at", false_trip) ORDER BY after DESC) AS given
    FROM (SELECT *, coalesce(least(again_at, recovered_at) <= "at" + INTERVAL 10 MINUTES, false)
    AS false_trip,
        unnest(range(from_m, to_m + 1)) AS m FROM answered)
    GROUP BY 1, 2),
modes AS (
    SELECT setting_key, m, given[1] AS first, needed,
        list_filter(given, lambda one: one.server <> given[1].server)[1] AS other
    FROM given_up JOIN lives USING (activation))
SELECT setting_key, m, 'any' AS mode, first AS off FROM modes
UNION ALL
SELECT setting_key, m, 'many', CASE WHEN needed > 1 THEN other ELSE first END FROM modes WHERE needed = 1
    OR other IS NOT NULL
"""
BACKTEST = """
WITH summed AS (
    SELECT setting_key, m, mode, count(*) AS trips, sum(off.after) AS saved, count(*) FILTER (off.false_trip)
        AS false_trips,
        min(off."at") AS first_at, max(off."at") AS last_at
    FROM steps GROUP BY 1, 2, 3),
grid AS (
    SELECT setting_key, count(*) AS runs, unnest(range({lowest}, {highest} + 1)) AS m FROM lives GROUP BY 1)
SELECT setting_key, m::INT AS m, mode, runs, coalesce(trips, 0) AS trips, coalesce(saved, 0)::BIGINT
    AS deliveries_saved,
    coalesce(false_trips, 0) AS false_trips, first_at AS first_trip_at, last_at AS last_trip_at
FROM grid CROSS JOIN (SELECT unnest(['any', 'many']) AS mode) modes LEFT JOIN summed USING (setting_key, m,
mode)
"""
SUGGESTIONS = """
WITH chosen AS (
    SELECT setting_key, bool_or(trips >= 3) AS enough, min(m) FILTER (trips >= 3
    AND false_trips <= 0.1 * trips) AS good
    FROM (SELECT 'setting-' || lpad(n::VARCHAR, 3, '0') AS setting_key FROM range(200) t(n)) settings
        LEFT JOIN (FROM breaker_backtest WHERE mode = 'many') of_mode USING (setting_key) GROUP BY 1)
SELECT setting_key, 10 AS m_now, coalesce(good, 10)::INT AS m_suggested,
    CASE WHEN NOT coalesce(enough, false) THEN 'too_little' WHEN coalesce(good, 10) = 10
        THEN 'as_it_is' WHEN good < 10 THEN 'earlier_saves'
        ELSE 'later_avoids_false' END AS why
FROM chosen
"""
REPLAYS = """
WITH given AS (
    SELECT setting_key, fingerprint, outcome, died_at, given_back_at FROM replays
    WHERE action IN ('give_back', 'redirect', 'edit') AND given_back_at IS NOT NULL
        AND outcome_at < TIMESTAMPTZ '{now}'),
placed AS (
    SELECT given.*, enabled_again_at AS fixed_at
        FROM given ASOF LEFT JOIN (FROM trips WHERE enabled_again_at IS NOT NULL) enabled
    ON given.setting_key = enabled.setting_key AND given.given_back_at >= enabled.enabled_again_at),
aged AS (
    SELECT *, (epoch_us(given_back_at) - epoch_us(died_at)) / 1e6 AS age,
        (epoch_us(given_back_at) - epoch_us(fixed_at)) / 1e6 AS since FROM placed)
SELECT setting_key, fingerprint,
    CASE WHEN age < 3600 THEN 'under_1h' WHEN age < 86400 THEN 'under_1d' WHEN age < 604800 THEN 'under_7d'
        WHEN age < 2592000 THEN 'under_30d' ELSE 'older' END AS age_bucket,
    CASE WHEN fixed_at IS NULL THEN 'unknown' WHEN since < 3600 THEN 'under_1h' WHEN since < 86400
    THEN 'under_1d'
        WHEN since < 604800 THEN 'under_7d' ELSE 'older' END AS since_fix_bucket,
    count(*) FILTER (outcome = 'handled') AS handled, count(*) FILTER (outcome = 'failed_again')
    AS failed_again,
    count(*) FILTER (outcome = 'dead_again') AS dead_again
FROM aged GROUP BY ALL
"""
SERVERS = """
WITH each AS (
    SELECT setting_key, server, sum(handled)::BIGINT AS handled, sum(failed)::BIGINT AS failures,
        (sum(handled) + sum(failed))::DOUBLE
        AS n FROM runs WHERE created_at >= TIMESTAMPTZ '{since}' GROUP BY 1, 2),
beside AS (
    SELECT *, sum(n) OVER (PARTITION BY setting_key) - n AS peers,
        sum(failures) OVER (PARTITION BY setting_key) - failures
        AS peers_failed, failures / n AS rate FROM each WHERE n > 0),
bounds AS (
    SELECT *, peers_failed / nullif(peers, 0) AS peers_rate, {low} AS low, {high} AS high, {peers_high}
    AS peers_high
        FROM beside)
SELECT setting_key, server, handled, failures, rate, peers_rate, low, high,
    coalesce(n >= 20 AND failures >= 5 AND peers >= 20 AND low > peers_high AND rate >= 2 * peers_rate,
    false) AS odd
        FROM bounds
"""
MARKS = """
WITH ended AS (
    SELECT setting_key, message_key, sum(dead) AS dead, sum(recovered) AS recovered
    FROM (SELECT setting_key, message_key, 1 AS dead, 0 AS recovered FROM letters WHERE message_key <> ''
        UNION ALL SELECT setting_key, message_key, 0, 1 FROM recovered WHERE message_key <> '') GROUP BY 1,
        2),
latest AS (
    SELECT setting_key, message_key, any_value(dead) AS dead, any_value(recovered) AS recovered,
        arg_max(properties, struct_pack(occurred_at, number)) AS properties,
        arg_max(body_size, struct_pack(occurred_at, number)) AS body_size
    FROM protocols JOIN ended USING (setting_key, message_key) GROUP BY 1, 2),
pairs AS (
    SELECT setting_key, dead, recovered, unnest(json_keys(properties)) AS property, properties FROM latest),
told AS (
    SELECT setting_key, dead, recovered, property, json_extract_string(properties,
    '$."' || property || '"') AS value
        FROM pairs
    UNION ALL SELECT setting_key, dead, recovered, 'body_size', body_size::VARCHAR FROM latest
    UNION ALL SELECT setting_key, dead, recovered, '', '' FROM latest),
bucketed AS (
    SELECT setting_key, property, dead, recovered, CASE WHEN abs(try_cast(value AS DOUBLE)) BETWEEN 16
    AND 1e18
        THEN printf('[%d, %d)', power(2, floor(log2(value::DOUBLE)))::BIGINT, power(2,
            floor(log2(value::DOUBLE)) + 1)::BIGINT)
        ELSE value[:60] END AS value_bucket FROM told)
SELECT setting_key, property, value_bucket, sum(dead) AS dead, sum(recovered) AS recovered
FROM bucketed GROUP BY 1,
    2, 3
QUALIFY row_number() OVER (PARTITION BY setting_key, property ORDER BY sum(dead) + sum(recovered) DESC,
    value_bucket) <= 200
"""
POISON = """
WITH whole AS (SELECT setting_key, dead AS all_dead, dead + recovered AS every FROM marks
WHERE property = ''),
lifted AS (
    SELECT marks.*, (dead + recovered) / every AS support,
    (dead / (dead + recovered)) / (all_dead / every) AS lift
    FROM marks JOIN whole USING (setting_key) WHERE property <> '')
SELECT setting_key, property, value_bucket, dead::BIGINT AS dead, recovered::BIGINT AS recovered, support,
lift
    FROM lifted
WHERE dead >= 5 AND lift >= 1.2
QUALIFY row_number() OVER (PARTITION BY setting_key ORDER BY lift DESC, dead DESC, property,
value_bucket) <= 20
"""


def _wilson(failed: str, n: str, z: float) -> str:
    rate = f"({failed} / nullif({n}, 0))"
    spread = f"sqrt({rate} * (1 - {rate}) / {n} + {z * z!r} / (4 * {n} * {n}))"
    return (
        f"greatest(0.0, least(1.0, ({rate} + {z * z!r} / (2 * {n}) + {z!r} * {spread}) / "
        f"(1 + {z * z!r} / {n})))"
    )


def answer(archive: Path, results: Path, *, now: str, since: str) -> None:
    """Writes each table as results/<name>.parquet."""
    import duckdb

    z = 2.5758293035489004
    bounds = {"low": _wilson("failures", "n", -z), "high": _wilson("failures", "n", z)}
    told: Mapping[str, Any] = {
        "today": now[:10], "now": now, "since": since, "lowest": LOWEST, "highest": HIGHEST, **bounds,
        "peers_high": _wilson("peers_failed", "peers", z),
    }  # fmt: skip
    connection = duckdb.connect(str(results / "work.duckdb"))
    connection.execute(f"SET TimeZone = 'UTC'; SET threads = 2; SET memory_limit = '{MEMORY}'")
    connection.execute(f"SET preserve_insertion_order = false; SET temp_directory = '{results / 'spill'}'")
    for kind in ("protocols", "recovered", "activations", "runs", "trips", "letters", "replays"):
        connection.execute(
            f"CREATE VIEW {kind} AS FROM read_parquet('{archive}/data/{kind}/*/*/*.parquet', "
            f"hive_partitioning=false)"
        )
    for name, select in (
        ("day_counts", DAY_COUNTS),
        ("lives", LIVES),
        ("records", RECORDS),
        ("steps", STEPS),
        ("marks", MARKS),
    ):
        connection.execute(f"CREATE TABLE {name} AS {_filled(select, told)}")
    for name, select in TABLES.items():
        connection.execute(f"CREATE TABLE {name} AS {_filled(select, told)}")
        connection.execute(f"COPY {name} TO '{results / name}.parquet' (FORMAT parquet, COMPRESSION zstd)")
    connection.close()


def _filled(select: str, told: Mapping[str, Any]) -> str:
    for name, value in told.items():
        select = select.replace(f"{{{name}}}", str(value))
    return select


TABLES = {
    "failure_trends": TRENDS,
    "failure_days": FAILURE_DAYS,
    "activation_health": HEALTH,
    "breaker_backtest": BACKTEST,
    "breaker_suggestions": SUGGESTIONS,
    "replay_success": REPLAYS,
    "odd_servers": SERVERS,
    "poison_profile": POISON,
}
