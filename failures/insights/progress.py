"""How far a run is, from the lines that the application appends to its progress file. Pure, but for the
file."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Stage = dict[str, Any]
STATES = ("running", "done", "failed", "skipped")
ERROR_LENGTH = 1000


class Progress:
    """Stages in their order. A line that is not whole yet is read the next time; one that is no JSON is
    passed over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._stages: dict[str, Stage] = {}

    @property
    def stages(self) -> list[Stage]:
        return list(self._stages.values())

    def look(self) -> bool:
        """Whether there was something new."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                found = file.read()
        except OSError:
            return False
        whole = found[: found.rfind(b"\n") + 1]
        self._offset += len(whole)
        return self._take(whole.splitlines())

    def _take(self, lines: Iterable[bytes]) -> bool:
        changed = False
        for line in lines:
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if isinstance(told, dict):
                changed = self._note(told) or changed
        return changed

    def _note(self, told: dict[str, Any]) -> bool:
        names = told.get("stages")
        if isinstance(names, list):
            for name in names:
                self._stages.setdefault(str(name), {"stage": str(name), "state": "waiting"})
            return True
        if told.get("state") not in STATES or "stage" not in told:
            return False
        name = str(told["stage"])
        before = self._stages.get(name, {}).get("share", 0.0)
        self._stages[name] = stage = stage_of(told)
        # Spark tells of more tasks as it goes on: what was done stays done.
        stage["share"] = max(before, min(1.0, stage["done"] / stage["total"]) if stage["total"] else 0.0)
        return True


def stage_of(told: dict[str, Any]) -> Stage:
    """A stage as a report or a line of progress tells it; what is not understood counts as nothing."""
    return {
        "stage": str(told.get("stage", ""))[:100],
        "state": told.get("state") if told.get("state") in STATES else "failed",
        "done": _whole(told.get("done")),
        "total": _whole(told.get("total")),
        "rows": _whole(told.get("rows")),
        "seconds": round(_number(told.get("seconds")), 3),
        "error": str(told.get("error") or "")[:ERROR_LENGTH],
    }


def _whole(value: Any) -> int:
    return max(0, int(_number(value)))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and value == value and abs(value) < 1e18 else 0.0
