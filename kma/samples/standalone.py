"""Standalone agents of the demo: one to copy from, and one for rehearsals and tests.

`demo.nightly-report` walks the days from `from_day` to `to_day` (its parameters, ISO dates, default
yesterday), adds up what a shop might have sold, and with the parameter `reports` sends a report of each day
to that destination.

`demo.scripted-standalone` does what its parameter `script` says: one step, or a list of steps in this order,
as `demo.scripted` (kma/samples/scripted.py) does what its message says: ok, raise, temporary, exit, kill,
sleep, allocate, send. `"first": k` in a step: only on the first k starts by the truth file. More steps:

    {"do": "hang", "seconds": 60}       works on without looking: swallows AgentStopped and every exception
    {"do": "wait", "seconds": 60}       looks at context.stopping ten times a second, and returns then
    {"do": "tick", "seconds": 60}       adds a line to the truth file ten times a second (`note`: "tick")

The parameter `truth_file` names a file below KMA_DATA/truth (`limits.py`) to which each start adds one line
of JSON before anything is done: {"start", "pid", "at", "boottime", "note"}.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from kma.agent import AgentStopped, Context, StandaloneAgent, agent
from kma.samples import limits
from kma.samples.scripted import Step, act, number_of, steps_of

_TENTH = 0.1  # seconds


@agent("demo.nightly-report", version="1")
class NightlyReport(StandaloneAgent):
    """Adds up the sales of each day and sends a report of it."""

    def run_agent(self, context: Context) -> None:
        for day in _days(context.parameters):
            if context.stopping:
                # Between two days is a good place to end: what was sent is whole.
                raise AgentStopped(f"stopped before {day}")
            total = sales_of(day)
            context.log.info("day added up", day=day.isoformat(), total=total)
            if reports := context.parameters.get("reports"):
                # The same id for the same day: who reads the reports can tell a repeated one.
                report = {"day": day.isoformat(), "total": total, "currency": "EUR"}
                context.send_json(
                    limits.checked_destination(str(reports)), report, message_id=f"report-{day}"
                )


def sales_of(day: date) -> float:
    """The demo's ledger: another sum for each day, the same each time."""
    return round(1000 + day.toordinal() % 97 * 13.7, 2)


def _days(parameters: Mapping[str, Any]) -> list[date]:
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    first = date.fromisoformat(str(parameters.get("from_day", yesterday)))
    last = date.fromisoformat(str(parameters.get("to_day", first)))
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


@agent("demo.scripted-standalone", version="1")
class ScriptedStandalone(StandaloneAgent):
    """Does what its parameters say: ok, raise, temporary, exit, kill, sleep, send, hang, wait, tick."""

    def run_agent(self, context: Context) -> None:
        truth = str(context.parameters.get("truth_file", ""))
        start = _starts(truth) + 1
        steps = steps_of(context.parameters.get("script", {"do": "ok"}))
        _write(truth, start, steps[0].get("note") if steps else None)
        for step in steps:
            if start <= number_of(step, "first", start):
                (_ACTS.get(str(step.get("do"))) or act(step))(step, context)


def _starts(truth: str) -> int:
    """How often it has begun before."""
    if not truth:
        return 0
    try:
        file = limits.open_file(truth, os.O_RDONLY)
    except FileNotFoundError:
        return 0
    with os.fdopen(file, encoding="utf-8") as stream:
        return max((int(json.loads(line)["start"]) for line in stream), default=0)


def _write(truth: str, start: int, note: Any) -> None:
    """One write with O_APPEND: a kill leaves whole lines. `boottime` is the clock that leases are measured
    with."""
    if not truth:
        return
    boottime = time.clock_gettime(time.CLOCK_BOOTTIME)
    line = {"start": start, "pid": os.getpid(), "at": time.time(), "boottime": boottime, "note": note}
    file = limits.open_file(truth, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


def _hang(step: Step, context: Context) -> None:
    deadline = time.monotonic() + number_of(step, "seconds", 60)
    while time.monotonic() < deadline:
        try:
            time.sleep(_TENTH)
        except BaseException:  # what nobody should write
            continue


def _wait(step: Step, context: Context) -> None:
    deadline = time.monotonic() + number_of(step, "seconds", 60)
    while time.monotonic() < deadline and not context.stopping:
        try:
            time.sleep(_TENTH)
        except AgentStopped:
            return


def _tick(step: Step, context: Context) -> None:
    truth = str(context.parameters.get("truth_file", ""))
    deadline = time.monotonic() + number_of(step, "seconds", 60)
    start = _starts(truth)
    while time.monotonic() < deadline:
        _write(truth, start, "tick")
        time.sleep(_TENTH)


_ACTS: dict[str, Callable[[Step, Context], None]] = {"hang": _hang, "wait": _wait, "tick": _tick}
