"""The audit of what people change here. It belongs to a higher app, which registers how an entry is made."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

Recorder = Callable[..., object]

_recorders: list[Recorder] = []


def register(recorder: Recorder) -> None:
    """`recorder(action, by=, now=, target=, counts=, detail=)` adds one entry, in the transaction that is
    open."""
    if recorder not in _recorders:
        _recorders.append(recorder)


def record(
    action: str, *, by: Any, now: datetime, target: str, counts: dict[str, int], detail: dict[str, Any]
) -> None:
    """In the transaction of the change: both are there, or neither."""
    for recorder in _recorders:
        recorder(action, by=by, now=now, target=target, counts=counts, detail=detail)
