"""The badge that says that servers differ."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.activations.rules.outcome import is_partial
from agents.models import Run, Server
from console.reasons import Reason

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


FULL = [Reason("spool.full")]


def run(server: int, state: str = "running", *, seen: int = 1, **fields: Any) -> Run:
    on = Server(pk=server, name=f"srv-{server}", last_seen_at=NOW - timedelta(seconds=seen))
    return Run(server=on, state=state, **{"epoch": 1, "wanted": True, **fields})


@pytest.mark.parametrize(
    ("runs", "partial"),
    [
        ([run(1), run(2)], False),
        ([run(1), run(2, "starting")], False),
        ([run(1), run(2, "interrupted", wanted=False)], True),
        ([run(1, "interrupted"), run(2, "interrupted")], False),
        ([run(1), run(2, "interrupted", wanted=False), run(2, epoch=2)], False),
        ([run(1), run(2, seen=60)], True),
        ([run(1, seen=60), run(2, seen=60)], False),
        ([run(1), run(2, problems=FULL)], True),
        ([run(1), run(2, blocked={"key": "ID:1"})], True),
        ([run(1), run(2, "lost", wanted=False, closed_at=NOW)], True),
        ([run(1), run(2, "finished", wanted=False, closed_at=NOW)], False),
        ([run(1), run(2, "finished", closed_at=NOW)], False),
        ([run(1), run(2, "starting", seen=60)], True),
        ([run(1), run(2, "draining", seen=60, wanted=False)], False),
        ([run(1), run(2, problems=FULL, wanted=False)], False),
        ([run(1), run(2, problems=FULL, closed_at=NOW)], False),
        ([run(1), run(2, seen=60, closed_at=NOW)], False),
        ([run(1, "running", closed_at=NOW), run(2, "failed")], False),
        ([run(1, "finished"), run(2, "failed")], False),
        ([run(1, "finished", wanted=False, closed_at=NOW), run(2, "failed")], False),
        ([run(1, "starting"), run(2, "lost")], False),
        ([run(1), run(1, "failed", epoch=2), run(2, "failed")], False),
        ([], False),
        ([run(1, "finished", closed_at=NOW), run(2, "failed", closed_at=NOW)], True),
    ],
)
def test_servers_differ(runs: list[Run], partial: bool) -> None:
    assert is_partial(runs, NOW) is partial
