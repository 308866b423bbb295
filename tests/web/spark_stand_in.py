"""In place of spark-submit: `spark_stand_in.py MODE … --plan plan.json`. Takes the same way as the real
application."""

import datetime
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

UTC = datetime.UTC
HOUR = datetime.datetime(2026, 11, 20, 9, tzinfo=UTC)


def trend(hour: int, count: int, **other: Any) -> dict[str, Any]:
    at = HOUR + datetime.timedelta(hours=hour)
    row = {"hour": at, "setting_key": "orders", "server": "srv-1", "fingerprint": "f" * 40, "count": count}
    return row | {"temporary": 0, "first_at": at, "last_at": at, "messages": 1} | other


def backtest(m: int) -> dict[str, Any]:
    row = {"setting_key": "orders", "m": m, "mode": "any", "runs": 9, "trips": 2, "deliveries_saved": 7}
    return row | {"false_trips": 1, "first_trip_at": HOUR, "last_trip_at": HOUR}


def suggestion(m: int) -> dict[str, Any]:
    evidence = {"runs": 9, "now": {"m": 10, "trips": 2, "deliveries_saved": 7, "false_trips": 1}}
    evidence["suggested"] = {"m": m, "trips": 3, "deliveries_saved": 40, "false_trips": 1}
    row = {"setting_key": "orders", "m_now": 10, "m_suggested": m, "why": "earlier_saves"}
    return row | {"evidence": json.dumps(evidence)}


def write(plan: dict[str, Any], table: str, rows: list[dict[str, Any]], parts: int = 2) -> int:
    folder = Path(plan["results"]) / table
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(parts):
        mine = rows[part::parts]
        if mine:
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(mine), folder / f"part-{part}.parquet")
    return len(rows)


def main() -> None:
    mode, plan_path = sys.argv[1], sys.argv[sys.argv.index("--plan") + 1]
    plan = json.loads(Path(plan_path).read_text())
    print("stand-in begins", mode, flush=True)

    def tell(**line: Any) -> None:
        with Path(plan["progress"]).open("a") as file:
            file.write(json.dumps(line) + "\n")

    tell(stages=["archive protocols", *plan["jobs"]])
    tell(stage="archive protocols", state="running", done=1, total=4)
    if mode == "hangs":
        Path(plan["report"]).with_name("hanging").touch()
        time.sleep(600)
    if mode == "forks":
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        Path(plan["report"]).with_name("hanging").touch()
        time.sleep(600)
    if mode == "eats":
        held = bytearray(os.urandom(1024)) * (1400 * 1024)
        time.sleep(600 + len(held) * 0)
    if mode == "fails":
        print("Traceback …\nValueError: no such day", flush=True)
        sys.exit(3)
    if mode == "says nothing":
        sys.exit(0)
    rows = [trend(0, 5), trend(1, 7)] if mode != "more" else [trend(1, 8), trend(2, 1)]
    results: list[dict[str, Any]] = [
        {
            "table": "failure_trends",
            "rows": write(plan, "failure_trends", rows),
            "replaces": {"column": "hour", "values_file": "replaced/failure_trends"},
        },
        {"table": "breaker_backtest", "rows": write(plan, "breaker_backtest", [backtest(3), backtest(10)])},
        {"table": "breaker_suggestions", "rows": write(plan, "breaker_suggestions", [suggestion(3)])},
    ]
    write(plan, "replaced/failure_trends", [{"hour": row["hour"]} for row in rows], 1)
    for result in results[1:]:
        result["replaces"] = {"all": True}
    stages = [{"stage": "archive protocols", "state": "done", "rows": 12, "seconds": 0.5}]
    stages += [{"stage": job, "state": "done", "rows": 2, "seconds": 0.25} for job in plan["jobs"]]
    if mode == "nonsense":
        results[2]["rows"] = write(plan, "breaker_suggestions", [suggestion(-3)])
    if mode == "miscounts":
        results[0]["rows"] = 99
    if mode == "torn":
        (Path(plan["results"]) / "failure_trends" / "part-1.parquet").write_bytes(b"PAR1 torn")
    if mode == "partial":
        stages[-1] |= {"state": "failed", "rows": 0, "error": "ValueError: of this job alone"}
    if mode == "nothing":
        stages, results = stages[:1], []
    for stage in stages:
        tell(**stage)
    report = {
        "run": plan["run"],
        "stages": stages,
        "results": results,
        "archive": {},
        "versions": {"spark": "stand-in"},
        "window": {"from": HOUR.isoformat(), "until": (HOUR + datetime.timedelta(hours=3)).isoformat()},
    }
    aside = Path(plan["report"]).with_suffix(".aside")
    aside.write_text(json.dumps(report))
    aside.rename(plan["report"])


main()
