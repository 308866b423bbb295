"""Decides when an alert opens, is repeated and closes: a pure rule over what is known of one cause and its
newest value."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


class Phase(StrEnum):
    """`CALM` with `above_since`: on its way to open, and nobody's business yet."""

    CALM = "calm"
    OPEN = "open"
    SNOOZED = "snoozed"
    CLOSED = "closed"


class AlertStep(StrEnum):
    """Holds what a decision does. `REOPENED`: closed by itself a moment ago, so it is the same alert
    still."""

    OPENED = "opened"
    REPEATED = "repeated"
    REOPENED = "reopened"
    SNOOZED = "snoozed"
    CLOSED = "closed"


# After the opening, then after each reminder; the last one goes on.
REMINDERS = (timedelta(hours=1), timedelta(hours=4), timedelta(hours=24))
# Who closes by itself and comes back within this was never gone.
SAME = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Opens at or above `upper` for `open_after`, closes below `lower` for `close_after`; `lower` <= `upper`,
    between the two nothing changes. `reminders` empty: it is told once."""

    upper: float
    lower: float
    open_after: timedelta = timedelta()
    close_after: timedelta = timedelta()
    reminders: Sequence[timedelta] = REMINDERS


@dataclass(frozen=True, slots=True)
class State:
    """`above_since`, `below_since`: how long the value has been at or above `upper`, below `lower`, without a
    break. `by_hand`: a person closed it; `held`: and its cause has not gone since, so it stays closed.
    `repeats` counts the reminders, the next is due at `repeat_at`."""

    phase: Phase = Phase.CALM
    above_since: datetime | None = None
    below_since: datetime | None = None
    closed_at: datetime | None = None
    by_hand: bool = False
    held: bool = False
    snoozed_until: datetime | None = None
    repeats: int = 0
    repeat_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AlertDecision:
    """`step` None: nothing that anybody is told. `is_new`: `state` is of another alert than the one
    before."""

    state: State
    step: AlertStep | None = None
    is_new: bool = False


def decide_alert(state: State, value: float | None, now: datetime, limits: Thresholds) -> AlertDecision:
    """`value` None: nobody knows it now, then nothing opens and nothing closes."""
    seen = _watched(state, value, now, limits)
    if seen.phase in (Phase.OPEN, Phase.SNOOZED):
        return _while_open(seen, now, limits)
    return _while_closed(seen, now, limits)


def closed_by_person(state: State, now: datetime) -> State:
    return replace(state, phase=Phase.CLOSED, closed_at=now, by_hand=True, held=True, snoozed_until=None)


def snoozed(state: State, until: datetime) -> State:
    return replace(state, phase=Phase.SNOOZED, snoozed_until=until)


def _watched(state: State, value: float | None, now: datetime, limits: Thresholds) -> State:
    if value is None:
        return state
    above = (state.above_since or now) if value >= limits.upper else None
    below = (state.below_since or now) if value < limits.lower else None
    return replace(
        state, above_since=above, below_since=below, held=state.held and not _since(below, now, limits)
    )


def _since(below: datetime | None, now: datetime, limits: Thresholds) -> bool:
    """Returns whether the cause has gone: below the lower bound for long enough."""
    return below is not None and now - below >= limits.close_after


def _while_open(state: State, now: datetime, limits: Thresholds) -> AlertDecision:
    if _since(state.below_since, now, limits):
        return AlertDecision(replace(state, phase=Phase.CLOSED, closed_at=now), AlertStep.CLOSED)
    slept = state.phase == Phase.SNOOZED and state.snoozed_until is not None and state.snoozed_until <= now
    due = state.phase == Phase.OPEN and state.repeat_at is not None and state.repeat_at <= now
    if not slept and not due:
        return AlertDecision(state)
    repeats = state.repeats + 1
    again = replace(
        state, phase=Phase.OPEN, snoozed_until=None, repeats=repeats, repeat_at=_next(repeats, now, limits)
    )
    return AlertDecision(again, AlertStep.REPEATED)


def _while_closed(state: State, now: datetime, limits: Thresholds) -> AlertDecision:
    if state.held or state.above_since is None or now - state.above_since < limits.open_after:
        return AlertDecision(state)
    if state.closed_at is not None and not state.by_hand and now - state.closed_at < SAME:
        asleep = state.snoozed_until is not None and state.snoozed_until > now
        phase = Phase.SNOOZED if asleep else Phase.OPEN
        return AlertDecision(replace(state, phase=phase, closed_at=None), AlertStep.REOPENED)
    opened = State(Phase.OPEN, above_since=state.above_since, repeat_at=_next(0, now, limits))
    return AlertDecision(opened, AlertStep.OPENED, is_new=state.phase == Phase.CLOSED)


def _next(repeats: int, now: datetime, limits: Thresholds) -> datetime | None:
    """Returns when the reminder after so many is due."""
    if not limits.reminders:
        return None
    return now + limits.reminders[min(repeats, len(limits.reminders) - 1)]
