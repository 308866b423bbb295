"""An archive of a few rows, and runs of the application over it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipeline.application import Application
from pipeline.archive.reading import Archive
from pipeline.archive.writing import write
from pipeline.plan import Plan
from pipeline.results import TABLES

NOW = datetime(2026, 3, 31, 2, 30, tzinfo=UTC)


class Archived:
    """`computed`: the blocks that the MA has marked."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session, self.folder = session, folder
        self.computed: dict[str, set[int]] = {}
        self._numbers: dict[str, int] = {}
        self._runs = 0

    @property
    def url(self) -> str:
        return str(self.folder / "archive")

    def block(self, rows: DataFrame, kind: str, day: str = "2026-03-30") -> int:
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        block = {"kind": kind, "number": number, "day": day, "first": f"{day}T00:00:00.000000+00:00"}
        last = (datetime.fromisoformat(day) + timedelta(days=1)).date().isoformat()
        write(
            self.session,
            block | {"last": f"{last}T00:00:00.000000+00:00"},
            rows,
            Archive(self.session, self.url),
            1,
        )
        return number

    def plan(self, jobs: Sequence[str] | None = None, **more: Any) -> Plan:
        self._runs += 1
        place = self.folder / f"run-{self._runs}"
        place.mkdir(parents=True, exist_ok=True)
        new = {
            kind: sorted(set(range(1, last + 1)) - self.computed.get(kind, set()))
            for kind, last in self._numbers.items()
        }
        setting = {"key": "orders", "n_days": 30, "breaker_m": 10, "server_mode": "ANY", "enabled": True}
        return Plan(
            run=f"run-{self._runs}", now=NOW, archive=self.url, results=str(place / "results"),
            results_local=place / "results", progress=place / "progress.jsonl", new_blocks=new, jobs=jobs,
            settings=[setting], **more,
        )  # fmt: skip

    def run(self, jobs: Sequence[str] | None = None, **more: Any) -> dict[str, Any]:
        """The report."""
        return Application(self.session, self.plan(jobs, **more)).run()

    def mark(self, report: dict[str, Any]) -> None:
        """As the MA does with a run of which nothing failed."""
        for kind, numbers in report["computed"].items():
            self.computed.setdefault(kind, set()).update(numbers)

    def table(self, name: str) -> list[tuple[Any, ...]]:
        """Of the last run."""
        place = str(self.folder / f"run-{self._runs}" / "results" / name)
        return sorted(map(tuple, self.session.read.schema(TABLES[name]).parquet(place).collect()), key=repr)


def states(report: dict[str, Any]) -> dict[str, str]:
    return {each["stage"]: each["state"] for each in report["stages"]}
