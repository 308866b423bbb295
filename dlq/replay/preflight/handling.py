"""Decides how handling differs between two settings of different destinations: what awaits dead letters that
are redirected from one to the other. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

Value = str | bool | int | float | tuple[str, ...] | tuple[int, ...]

# How often they were attempted: no property of a setting, but theirs.
ATTEMPTED = "attempted"
# Of the target, what is hidden from those who may not see masked properties.
MASKED = "masked_properties"


@dataclass(frozen=True, slots=True)
class Handling:
    """A setting as its messages meet it. The names of the fields are the codes of differences.

    `versions`: of its agent, as live servers of its pool offer it. `exception_destination` and
    `duplicate_window_seconds` are empty and 0 where nothing goes by them; `max_attempts` -1: without end."""

    destination: str
    agent: str
    versions: tuple[str, ...]
    mode: str
    ordered: bool
    max_attempts: int
    delay_ms: int
    multiplier: float
    after_last: str
    exception_destination: str
    duplicate_key: str
    duplicate_window_seconds: float
    handling_timeout_seconds: float
    masked_properties: tuple[str, ...]


CODES = (*(each.name for each in fields(Handling)), ATTEMPTED)


@dataclass(frozen=True, slots=True)
class Difference:
    """`code` is one of CODES. Of `attempted` both values are the least and the most."""

    code: str
    source: Value
    target: Value


def differences(source: Handling, target: Handling, attempts: Sequence[int]) -> tuple[Difference, ...]:
    """`attempts` of the dead letters that were looked at: a redirect counts them anew."""
    return (*_of_settings(source, target), *_of_attempts(attempts))


def _of_settings(source: Handling, target: Handling) -> Iterator[Difference]:
    for each in fields(Handling):
        here, there = getattr(source, each.name), getattr(target, each.name)
        if here != there:
            yield Difference(each.name, here, there)


def _of_attempts(attempts: Sequence[int]) -> Iterator[Difference]:
    if any(attempts):
        yield Difference(ATTEMPTED, (min(attempts), max(attempts)), (0, 0))
