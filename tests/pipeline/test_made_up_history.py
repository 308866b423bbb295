"""The made-up history that somebody removed is in the archive still, and in no computation any more."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from pyspark.sql import SparkSession

from contract.names import HISTORY_KEY
from pipeline.run import Run

ROWS = [(HISTORY_KEY, 1), ("orders", 2), (None, 3)]


class Archived:
    """An archive that holds the same rows of every kind."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def manifests(self, kind: str) -> dict[int, Any]:
        return {}

    def rows(self, kind: str, **which: Any) -> Any:
        return self.session.createDataFrame(ROWS, "setting_key string, number int")


def numbers(session: SparkSession, *keys: str) -> list[set[int]]:
    """What a run sees by each of its ways to read."""
    run = cast(Any, object.__new__(Run))
    run.plan = SimpleNamespace(
        settings=[{"key": key} for key in keys], now=datetime(2026, 11, 22, tzinfo=UTC)
    )
    run.archive, run.new_blocks = Archived(session), {}
    ways = (
        run.new("protocols"),
        run.all("protocols"),
        run.of("runs", []),
        run.within("runs", (run.plan.now,) * 2),
    )
    return [{row.number for row in found.collect()} for found in ways]


def test_it_is_computed_while_its_setting_is_there(session: SparkSession) -> None:
    assert numbers(session, "orders", HISTORY_KEY) == [{1, 2, 3}] * 4


def test_it_is_left_out_once_its_setting_is_gone(session: SparkSession) -> None:
    assert numbers(session, "orders") == [{2, 3}] * 4
