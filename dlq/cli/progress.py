"""Finds a job and describes how far it is, on a terminal: rate, remaining time, outcomes. Ending the command
ends only the looking."""

import re
from collections import deque
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from dlq.cli import terminal
from dlq.cli.rest import as_refused, call_api
from dlq.models import JobState
from dlq.replay.operations import REPLAY_JOBS

# Seconds between two looks; so many of them make the rate.
LOOK_EVERY, LOOKS = 1.0, 30
INTERRUPTED = 130
WAITS_FOR_PEOPLE, FAILED = 3, 1
AT_WORK = (JobState.PLANNED, JobState.RUNNING)
ENDED_BADLY = (JobState.FAILED, JobState.CANCELLED, JobState.STOPPED)

Tell = Callable[[str], None]

ID_DIGITS, LONGEST_ID = 32, 80
_HEXADECIMAL = re.compile(f"[0-9a-f]{{1,{ID_DIGITS}}}")


def full_id(person: User, begin: str) -> str:
    """Finds a job that this person may see by the begin of its id, as pages show it. Raises CommandError."""
    digits = begin.replace("-", "").lower()
    if not _HEXADECIMAL.fullmatch(digits):
        raise CommandError(
            f"{terminal.safe(begin, LONGEST_ID)!r} is not a replay id, nor the beginning of one."
        )
    if len(digits) == ID_DIGITS:
        return str(UUID(digits))
    first, last = UUID(digits.ljust(ID_DIGITS, "0")), UUID(digits.ljust(ID_DIGITS, "f"))
    with as_refused("replays"):
        jobs = REPLAY_JOBS.rows_for(person).filter(pk__range=(first, last))
    found = [str(pk) for pk in jobs.values_list("pk", flat=True)[:2]]
    if not found:
        raise CommandError(f"No replay {begin}; list them with ./ma manage dlq jobs.")
    if len(found) > 1:
        raise CommandError(f"Several replays begin with {begin}: {', '.join(found)}, …; use a longer id.")
    return found[0]


def follow(person: User, job: str, stderr: Any, *, outcomes: bool = False) -> dict[str, Any]:
    """Until it is over or waits for a person; with `outcomes` until something is known of every dead letter
    that left."""
    show, seen = _printer(stderr), deque[tuple[float, int]](maxlen=LOOKS)
    try:
        while True:
            answer: dict[str, Any] = call_api(person, "GET", f"replays/{job}/")
            seen.append((monotonic(), done_of(answer)))
            show(", ".join(filter(None, [terminal.progress(answer), rate_text(seen, answer)])))
            if answer["state"] not in AT_WORK and not (outcomes and answer["outcomes"]["waiting"]):
                show("")
                return answer
            sleep(LOOK_EVERY)
    except KeyboardInterrupt:
        raise CommandError(f"Stopped waiting; replay {job} continues.", returncode=INTERRUPTED) from None


def check_ended(answer: dict[str, Any]) -> None:
    """Raises CommandError for a job that did not do what it should: exit 1, or 3 where it waits for a
    person."""
    state, problem = answer["state"], terminal.safe(answer["problem"] or "-", 500)
    if state in ENDED_BADLY:
        raise CommandError(f"Replay {answer['id']} {state}: {problem}", returncode=FAILED)
    if state in (JobState.AWAITING, JobState.PAUSED):
        raise CommandError(
            f"Replay {answer['id']} is {state}: an operator must decide.", returncode=WAITS_FOR_PEOPLE
        )


def done_of(answer: dict[str, Any]) -> int:
    """Dead letters of which is known whether they left."""
    return sum(count for state, count in answer["letters"].items() if state not in ("planned", "skipped"))


def rate_text(seen: "deque[tuple[float, int]]", answer: dict[str, Any]) -> str:
    """Returns the rate over the latest readings."""
    if answer["state"] != JobState.RUNNING or len(seen) < 2:
        return ""
    (begin, first), (end, last) = seen[0], seen[-1]
    rate = (last - first) / max(end - begin, 0.001)
    if rate <= 0:
        return waits(answer)
    if not answer.get("counted", True):
        return f"{rate:,.1f} per second, still counting"
    left = max(0, answer["total"] - last) / rate
    return f"{rate:,.1f} per second, about {terminal.seconds(left)} left"


def waits(answer: dict[str, Any]) -> str:
    if answer["walk"]:
        return f"scanning {terminal.walk_line(answer['walk'])}"
    return f"waiting: {answer['wait_reason']}" if answer["wait_reason"] else ""


def _printer(stderr: Any) -> Tell:
    """Prints on a terminal in one place, else a line for each change. An empty line ends it."""
    before = ""

    def show(line: str) -> None:
        nonlocal before
        if not stderr.isatty():
            if line and line != before:
                stderr.write(line)
        elif line:
            stderr.write(f"\r{line:<{len(before)}}", ending="")
        else:
            stderr.write("\n", ending="")
        before = line

    return show
