"""How a job goes about its letters: how fast, when, and whether step by step."""

from dataclasses import dataclass, field
from datetime import time
from typing import Any

from django.utils.translation import gettext as _

LEAST_PER_SECOND, MOST_PER_SECOND = 0.001, 1_000_000.0


@dataclass(frozen=True, slots=True)
class Options:
    """`per_second` 0: as fast as the broker. `window_from` and `window_until`: local times of day, both or
    neither; the window may span midnight. `ladder`: 1, 5, 25, … letters, and it stops by itself when more
    than `ladder_percent` of a step fail again. `edit_rule` is what an edit does to each letter."""

    per_second: float = 0.0
    window_from: time | None = None
    window_until: time | None = None
    ladder: bool = False
    ladder_percent: int = 10
    edit_rule: dict[str, Any] = field(default_factory=dict)

    def problem(self) -> str:
        """What is wrong with them, for people; empty: nothing."""
        # What is no number is neither.
        if not (self.per_second == 0 or LEAST_PER_SECOND <= self.per_second <= MOST_PER_SECOND):
            return _("Letters a second: 0 (as fast as possible), or a number from 0.001 to 1,000,000.")
        if (self.window_from is None) != (self.window_until is None):
            return _("Give both ends of the run window, or none.")
        if self.window_from is not None and self.window_from == self.window_until:
            return _("The run window has no length.")
        if not 0 <= self.ladder_percent <= 100:
            return _("The ladder stops above a percentage from 0 to 100.")
        return ""

    def columns(self) -> dict[str, Any]:
        """Those of a ReplayJob."""
        return {
            "per_second": self.per_second,
            "window_from": self.window_from,
            "window_until": self.window_until,
            "ladder": self.ladder,
            "ladder_percent": self.ladder_percent,
            "edit_rule": self.edit_rule,
        }
