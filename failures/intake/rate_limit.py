"""Describes how much a token may send: rows and bytes per minute, as a debt that is worked off at the rate of
the limits.

A batch is taken while less than a minute's worth is owed, however large it is: no limit blocks a spool for
good. In any minute at most two minutes' worth and one batch come through.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.models import ServerToken
from failures.models import IntakeDebt

MINUTE = timedelta(minutes=1)
# Nobody waits longer than this after the batch that was too much: a clock that was set back must not shut a
# KMA out.
MOST = timedelta(minutes=5)


class TooFast(Exception):
    """The token has sent more than it may: refuse it whole, it comes again. `wait`: after so long."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"The rate limit of this token is exceeded: retry in {wait.total_seconds():.1f} s.")
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Limits:
    """Per minute and token."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Debt:
    """Instants at which what was taken is worked off; those that are past say that nothing is owed."""

    rows_until: datetime
    bytes_until: datetime

    def wait(self, now: datetime) -> timedelta:
        """Returns how long until something is taken again; not positive: now."""
        return min(max(self.rows_until, self.bytes_until), now + MOST) - now - MINUTE

    def more(self, rows: int, size: int, limits: Limits, now: datetime) -> "Debt":
        return Debt(
            _later(self.rows_until, MINUTE * (rows / limits.rows), now),
            _later(self.bytes_until, MINUTE * (size / limits.bytes), now),
        )


def _later(until: datetime, cost: timedelta, now: datetime) -> datetime:
    return min(max(until, now) + cost, now + MOST)


def check(token: ServerToken, now: datetime) -> None:
    """Before a body is read. Raises TooFast."""
    row = IntakeDebt.objects.filter(pk=token.pk).first()
    if row is not None:
        _refuse(Debt(row.rows_until, row.bytes_until), now)


@dataclass(frozen=True, slots=True)
class Charge:
    """One body of `size` bytes that a token has sent, and what it is held to."""

    token: ServerToken
    size: int
    limits: Limits

    def take(self, rows: int, now: datetime) -> None:
        """Within the transaction that stores the rows: what is not stored is not owed. Raises TooFast."""
        debts = IntakeDebt.objects.select_for_update()
        row, _ = debts.get_or_create(token=self.token, defaults={"rows_until": now, "bytes_until": now})
        debt = Debt(row.rows_until, row.bytes_until)
        _refuse(debt, now)
        debt = debt.more(rows, self.size, self.limits, now)
        IntakeDebt.objects.filter(pk=row.pk).update(rows_until=debt.rows_until, bytes_until=debt.bytes_until)


def _refuse(debt: Debt, now: datetime) -> None:
    wait = debt.wait(now)
    if wait > timedelta(0):
        raise TooFast(wait)
