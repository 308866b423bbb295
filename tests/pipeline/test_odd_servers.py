"""Servers that fail more often than their peers."""

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.jobs.odd_servers import Z, bound, odd_servers
from tests.pipeline.rows import frame


def odd(session: SparkSession, *runs: tuple[str, int, int]) -> set[str]:
    rows = [{"server": server, "handled": handled, "failed": failed} for server, handled, failed in runs]
    return {row["server"] for row in odd_servers(frame(session, "runs", *rows)).where("odd").collect()}


def test_the_bound_is_wilsons(session: SparkSession) -> None:
    """The interval of 10 of 100 at 95 % in the books: 0.0552 to 0.1744; of none of 20 with 99 %: 0 to
    0.2491."""
    books = session.range(1).select(
        *(
            bound(F.lit(10), F.lit(100), z).alias(name)
            for name, z in (("low", -1.959964), ("high", 1.959964))
        ),
        bound(F.lit(0), F.lit(20), -Z).alias("none"),
        bound(F.lit(0), F.lit(20), Z).alias("most"),
        bound(F.lit(0), F.lit(0), Z).alias("nothing"),
    )
    found = books.first()

    assert found is not None
    assert [round(found[name], 4) for name in ("low", "high", "none", "most")] == [
        0.0552,
        0.1744,
        0.0,
        0.2491,
    ]
    assert found["nothing"] is None


def test_a_server_far_above_its_peers_is_odd(session: SparkSession) -> None:
    assert odd(session, ("srv-1", 900, 100), ("srv-2", 990, 10), ("srv-3", 500, 5), ("srv-3", 490, 5)) == {
        "srv-1"
    }


def test_few_attempts_few_failures_or_a_small_difference_say_nothing(session: SparkSession) -> None:
    assert odd(session, ("srv-1", 9, 10), ("srv-2", 10_000, 1)) == set()
    assert odd(session, ("srv-1", 90, 4), ("srv-2", 10_000, 1)) == set()
    assert odd(session, ("srv-1", 98_000, 2_000), ("srv-2", 99_000, 1_100)) == set()
    assert odd(session, ("srv-1", 0, 1_000)) == set()


def test_rates_are_those_of_all_runs_of_a_server(session: SparkSession) -> None:
    runs: list[dict[str, Any]] = [
        {"handled": 30, "failed": 10},
        {"handled": 50, "failed": 10},
        {"server": "srv-2", "handled": 75, "failed": 25},
    ]
    rows = odd_servers(frame(session, "runs", *runs, {"server": "srv-3"})).orderBy("server").collect()

    assert [tuple(row)[1:6] for row in rows] == [("srv-1", 80, 20, 0.2, 0.25), ("srv-2", 75, 25, 0.25, 0.2)]
    assert all(row["low"] < row["rate"] < row["high"] for row in rows)
