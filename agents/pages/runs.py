"""Runs as rows: what the server said of them and how near the breaker's limits they are."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from agents.models import LaunchSetting, Run, ServerState
from agents.pages.shown import RUNS, server_shown
from console.ui.labels import Shown
from contract.breaker import same_limit


@dataclass(frozen=True, slots=True)
class Meter:
    """`value` of `limit`, drawn no longer than its whole length: handlers that were at hand may go past the
    limit."""

    value: int
    limit: int

    @property
    def drawn(self) -> int:
        return min(self.value, self.limit)

    @property
    def tone(self) -> str:
        if self.value >= self.limit:
            return "bad"
        return "warn" if self.value * 2 >= self.limit else "ok"


@dataclass(frozen=True, slots=True)
class RunRow:
    run: Run
    server: Shown
    state: Shown
    same: Meter
    any: Meter


def run_shown(run: Run, now: datetime) -> Shown:
    """What a silent server said last is no news: it is shown as such."""
    shown = RUNS[run.state]
    if run.closed_at is None and run.server.state(now) is ServerState.SILENT:
        return Shown(format_lazy(_("last told: {state}"), state=shown.word), "off", "wait")
    return shown


def run_rows(runs: Iterable[Run], setting: LaunchSetting, now: datetime) -> list[RunRow]:
    limit, m = same_limit(setting.breaker_m), setting.breaker_m
    return [
        RunRow(
            run=run,
            server=server_shown(run.server, now),
            state=run_shown(run, now),
            same=Meter(run.same_count, limit),
            any=Meter(run.any_count, m),
        )
        for run in runs
    ]
