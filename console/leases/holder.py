"""A process's side of a lease: it asks for it, renews it, leaves it. The row is the truth; races are won by a
conditional UPDATE of what was seen."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

import structlog
from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.db.models import DateTimeField, Expression, ExpressionWrapper, QuerySet
from django.db.models.functions import Now

from console.jobs import detached
from console.leases import rules
from console.leases.models import Lease
from console.leases.rules import LEASE, Held, Watched

log = structlog.get_logger(__name__)

BEAT, FEED = "beat", "feed"


NOTHING = timedelta(0)
# One who waits says so at each renewal time; silent for so long it is gone.
NOTE_EVERY = timedelta(seconds=rules.RENEW_SECONDS)
WAITS = 3 * NOTE_EVERY


def since_boot() -> float:
    """Seconds; also those in which the machine slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def by_database(later: timedelta = NOTHING) -> Expression:
    """Its clock, and so much later. The sum makes SQLite write an instant as a parameter would be: it
    compares texts."""
    return ExpressionWrapper(Now() + later, output_field=DateTimeField())


class LeaseOver(Exception):
    """Somebody else may hold it by now: whoever was at work stops, and waits as a standby."""


class Holder:
    """One process, which wants the lease `name`. `tend` is a step; `may_act` asks nobody."""

    def __init__(self, name: str, clock: Callable[[], float] = since_boot) -> None:
        self._name = name
        self._clock = clock
        self._held: Held | None = None
        self._watched: Watched | None = None
        self._ask_at = 0.0
        self._asking = False
        self._lock = threading.Lock()

    def may_act(self) -> bool:
        return rules.may_act(self._held, self._clock())

    def require(self) -> None:
        if not self.may_act():
            raise LeaseOver(self._name)

    def worked(self) -> None:
        """Called when something was got done, or there was nothing to do: a holder that hangs, or whose
        broker is away, leaves the lease to one that waits."""
        with self._lock:
            if self._held is not None:
                self._held = rules.worked(self._held, self._clock())

    def tend(self) -> bool:
        """Renews, or asks, when it is time; returns whether work may be done. Never raises for the
        database."""
        self._asking = True
        try:
            self._tend(self._clock())
        except (DatabaseError, InterfaceError) as error:
            log.warning("lease waits for the database", lease=self._name, reason=str(error))
            with suppress(DatabaseError, InterfaceError):
                connection.close()
        finally:
            self._asking = False
        return self.may_act()

    def leave(self) -> None:
        """Others may take it at once. Killed before: they wait until it is over.

        Also called by the handler of a signal: one that comes while the database is asked would wait for ever
        for the connection that it has interrupted."""
        held, self._held = self._held, None
        if held is not None and not self._asking:
            self._free(held)

    def _free(self, held: Held) -> None:
        with suppress(DatabaseError, InterfaceError):
            self._mine(held).update(holder=None, until=by_database())
            log.info("lease left", lease=self._name)

    def _tend(self, now: float) -> None:
        held = self._held
        if held is None:
            if now >= self._ask_at:
                self._ask_at = now + rules.ASK_SECONDS
                self._ask(now)
        elif rules.is_due(held, now) and now >= self._ask_at:
            self._ask_at = now + rules.ASK_SECONDS
            self._renew(held, now)

    def _mine(self, held: Held) -> QuerySet[Lease]:
        return Lease.objects.filter(name=self._name, holder=held.holder)

    def _renew(self, held: Held, now: float) -> None:
        if rules.is_idle(held, now) and self._somebody_waits():
            log.warning("lease left to a standby: nothing was done for a while", lease=self._name)
            self._held = None
            self._free(held)
            self._ask_at = now + rules.LEFT_SECONDS
            return
        if self._mine(held).update(until=by_database(LEASE)):
            with self._lock:
                if self._held is not None:
                    self._held = rules.renewed(self._held, now)
            return
        self._held = self._watched = None
        log.warning("lease lost", lease=self._name)

    def _somebody_waits(self) -> bool:
        recently = by_database(-WAITS)
        return Lease.objects.filter(name=self._name, standby_at__gte=recently).exists()

    def _ask(self, now: float) -> None:
        row = self._row()
        if self._watched is None and row.holder is not None:
            log.info("lease is held, this process waits", lease=self._name, by=row.host)
        self._watched = rules.watch(self._watched, row.holder, row.until, now)
        gone = detached.is_gone(row.process)
        if not rules.may_take(self._watched, now, over_for=row.asked_at - row.until, gone=gone):
            self._note_waiting(row)
            return
        holder = uuid4()
        taken = Lease.objects.filter(name=self._name, holder=row.holder, until=row.until).update(
            holder=holder,
            host=detached.host(),
            process=detached.identity(),
            until=by_database(LEASE),
            taken_at=by_database(),
        )
        if taken:
            self._held = Held(holder, asked_at=now, worked_at=now)
            self._watched = None
            log.info("lease taken", lease=self._name, host=detached.host(), before=row.host)

    def _row(self) -> Any:
        """With `asked_at`, the time by the clock of the database."""
        rows: QuerySet[Any] = Lease.objects.filter(name=self._name).annotate(asked_at=by_database())
        found = rows.first()
        if found is None:
            Lease.objects.get_or_create(name=self._name, defaults={"until": by_database()})
            found = rows.get()
        return found

    def _note_waiting(self, row: Any) -> None:
        recent = row.standby_at is not None and row.asked_at - row.standby_at < NOTE_EVERY
        if not recent or row.standby_host != detached.host():
            Lease.objects.filter(name=self._name).update(
                standby_host=detached.host(), standby_at=by_database()
            )


@contextmanager
def kept(holder: Holder) -> Iterator[None]:
    """Renews in a thread of its own meanwhile, for work whose steps may take longer than a lease. Leaves it
    at the end."""
    ending = threading.Event()

    def keep() -> None:
        while not ending.wait(rules.ASK_SECONDS / 2):
            close_old_connections()
            holder.tend()
        connection.close()

    thread = threading.Thread(target=keep, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(LEASE.total_seconds())
        holder.leave()
