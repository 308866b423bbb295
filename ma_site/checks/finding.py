"""A finding says what is right, or what is wrong and what to do."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    ok: bool
    detail: str
    what_to_do: str = ""


Check = Callable[[datetime], Iterable[Finding]]
CHECKS: dict[tuple[int, str], Check] = {}


def register_check(name: str, order: int) -> Callable[[Check], Check]:
    """What a check tells is easier to mend when what it stands on was told before: hence the order."""

    def add(check: Check) -> Check:
        CHECKS[order, name] = check
        return check

    return add


def good(detail: str) -> Finding:
    return Finding("", True, detail)


def bad(detail: str, what_to_do: str) -> Finding:
    return Finding("", False, detail, what_to_do)


def run_checks(now: datetime) -> Iterator[Finding]:
    """Every check, one after the other; one that breaks is itself a finding."""
    for (_, name), check in sorted(CHECKS.items(), key=lambda item: item[0]):
        try:
            found = list(check(now))
        except Exception as error:
            log.warning("check broke", check=name, exc_info=error)
            found = [
                bad(
                    f"{type(error).__name__}: {error}",
                    "First fix the findings reported above, then run the check again.",
                )
            ]
        for finding in found:
            yield Finding(name, finding.ok, finding.detail, finding.what_to_do)
