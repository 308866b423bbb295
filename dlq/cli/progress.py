"""How far a job is, on a terminal: rate, remaining time, outcomes. Ending the command ends only the
looking."""

from collections import deque
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from dlq.cli import terminal
from dlq.cli.ask import ask
from dlq.models import JobState

# Seconds between two looks; so many of them make the rate.
LOOK_EVERY, LOOKS = 1.0, 30
INTERRUPTED = 130
WAITS_FOR_PEOPLE, FAILED = 3, 1
AT_WORK = (JobState.PLANNED, JobState.RUNNING)
ENDED_BADLY = (JobState.FAILED, JobState.CANCELLED, JobState.STOPPED)

Tell = Callable[[str], None]


def follow(person: User, job: str, stderr: Any, *, outcomes: bool = False) -> dict[str, Any]:
    """Until it is over or waits for a person; with `outcomes` until something is known of every letter that
    left."""
    tell, seen = _teller(stderr), deque[tuple[float, int]](maxlen=LOOKS)
    try:
        while True:
            told: dict[str, Any] = ask(person, "GET", f"replays/{job}/")
            seen.append((monotonic(), done_of(told)))
            tell(", ".join(filter(None, [terminal.progress(told), pace(seen, told)])))
            if told["state"] not in AT_WORK and not (outcomes and told["outcomes"]["waiting"]):
                tell("")
                return told
            sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        raise CommandError(f"No longer waiting; replay {job} goes on.", returncode=INTERRUPTED) from None


def check(told: dict[str, Any]) -> None:
    """Raises CommandError for a job that did not do what it should: exit 1, or 3 where it waits for a
    person."""
    state, problem = told["state"], terminal.safe(told["problem"] or "-", 500)
    if state in ENDED_BADLY:
        raise CommandError(f"Replay {told['id']} {state}: {problem}", returncode=FAILED)
    if state in (JobState.AWAITING, JobState.PAUSED):
        raise CommandError(
            f"Replay {told['id']} is {state}: a person has to decide.", returncode=WAITS_FOR_PEOPLE
        )


def done_of(told: dict[str, Any]) -> int:
    """Letters of which is known whether they left."""
    return sum(count for state, count in told["letters"].items() if state not in ("planned", "skipped"))


def pace(seen: "deque[tuple[float, int]]", told: dict[str, Any]) -> str:
    """Over the latest looks."""
    if told["state"] != JobState.RUNNING or len(seen) < 2:
        return ""
    (begin, first), (end, last) = seen[0], seen[-1]
    rate = (last - first) / max(end - begin, 0.001)
    if rate <= 0:
        return waits(told)
    left = max(0, told["total"] - last) / rate
    return f"{rate:,.1f} a second, about {terminal.seconds(left)} left"


def waits(told: dict[str, Any]) -> str:
    if told["walk"]:
        return f"walks {terminal.walk(told['walk'])}"
    return f"waits: {told['wait_reason']}" if told["wait_reason"] else ""


def _teller(stderr: Any) -> Tell:
    """On a terminal in one place, else a line for each change. An empty line ends it."""
    before = ""

    def tell(line: str) -> None:
        nonlocal before
        if not stderr.isatty():
            if line and line != before:
                stderr.write(line)
        elif line:
            stderr.write(f"\r{line:<{len(before)}}", ending="")
        else:
            stderr.write("\n", ending="")
        before = line

    return tell
