"""Rows of the archive as tests write them: what is not said has a value that means nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipeline.results import told as few
from pipeline.schemas import KINDS

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

PROTOCOL = {
    "setting_key": "orders",
    "activation": "a1",
    "epoch": 1,
    "server": "srv-1",
    "exception_type": "KeyError",
    "fingerprint": "f1",
    "temporary": False,
    "counted": True,
    "successes_before": 0,
    "message_key": "",
    "message_key_weak": False,
    "attempt": 1,
    "body_size": 0,
    "properties": "{}",
}
OTHERS: dict[str, dict[str, Any]] = {
    "protocols": PROTOCOL,
    "recovered": {
        "setting_key": "orders",
        "activation": "a1",
        "server": "srv-1",
        "message_key": "",
        "attempt": 2,
    },
    "activations": {"setting_key": "orders", "state": "stopped", "well": True, "launched_with": "{}"},
    "runs": {
        "activation": "a1",
        "setting_key": "orders",
        "server": "srv-1",
        "epoch": 1,
        "handled": 0,
        "failed": 0,
    },
    "trips": {"setting_key": "orders", "activation": "a1"},
    "letters": {"setting_key": "orders", "message_key": ""},
    "replays": {"setting_key": "orders", "target_key": "", "action": "give_back", "fingerprint": "f1"},
}


def at(seconds: float) -> datetime:
    """So long after START."""
    return START + timedelta(seconds=seconds)


def frame(session: SparkSession, kind: str, *rows: dict[str, Any]) -> DataFrame:
    """Of a kind of the archive. A protocol without `received_at` was received as it occurred; numbers
    ascend."""
    schema = KINDS[kind].schema
    whole = []
    for number, row in enumerate(rows):
        told = {**OTHERS[kind], **({"number": number} if kind == "protocols" else {}), **row}
        if kind in ("protocols", "recovered"):
            told.setdefault("received_at", told["occurred_at"])
        unknown = set(told) - set(schema.names)
        assert not unknown, unknown
        whole.append(told)
    return few(session, whole, schema)
