"""When the open minute of a run is over, and what else is in its figures: memory of the processes, and how
long the spool was full.

While more than a quarter of the spool waits for the MA, the minute stays open and grows: sums stay exact, and
the spool is not filled by figures.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from contract.histogram import BUCKETS
from contract.messages import AgentKind
from kma.delivery.effects import RunFacts
from kma.logs import logger
from kma.spool.journal import Journal
from kma.spool.minute import CountedEnd, OpenMinute, resident_bytes
from kma.spool.records import New, Spool

MINUTE = 60.0
LOOK_SECONDS = 10.0  # between two looks at the memory
FIRST_LOOK_SECONDS = 2.0  # when children have started: before that they are smaller than ever after
_STORE_PAUSE = 1.0  # seconds before a failed write to the spool is tried again
_TELL_SECONDS = 1.0  # between two words to whoever shows durations

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Durations:
    """How long handlings took (`processing`) and how long after they were sent messages were handled well
    (`critical`): numbers by the bucket of contract/histogram.py. `busy`: seconds of processing."""

    setting: str
    processing: Sequence[int]
    critical: Sequence[int]
    busy: float


# Who shows durations: told of each once, from the threads of all runs.
TellDurations = Callable[[Durations], None]


def to_nobody(durations: Durations) -> None:
    """Nobody shows them."""


def ended_at(began: float, now: float, elapsed: float) -> float | None:
    """When a minute that began at `began` was over; None: it is open. `elapsed`: seconds since then by a
    clock that nobody sets.

    Where the clock jumped forward, it ends as much later as time has passed. Where it jumped back, it stays
    open, but for no longer than a minute: else nothing would be heard of a run for as long as the jump was.
    """
    end = began // MINUTE * MINUTE + MINUTE
    if now >= end:
        return min(now // MINUTE * MINUTE, end + elapsed // MINUTE * MINUTE)
    if now < began and elapsed >= MINUTE:
        return began + elapsed
    return None


class RunMinutes:
    """One thread, the run's."""

    def __init__(
        self,
        journal: Journal,
        facts: RunFacts,
        spool: Spool,
        *,
        clock: Clock = time.time,
        steady: Clock = time.monotonic,
    ) -> None:
        self._run, self._key = facts.run, facts.key
        self._spool = spool
        self._log = logger(setting=facts.run.setting)
        self._clock = clock
        self._steady = steady
        at_once = 1 if facts.desired.kind is AgentKind.STANDALONE else facts.desired.concurrency
        self._minute = OpenMinute.create(journal, clock(), at_once)
        self.children_bytes = 0  # that the processes held when they were last looked at
        self.tell: TellDurations = to_nobody
        self._tell_at = 0.0
        self._before = self._minute.measured()  # what was told of the open minute
        self._waits_since: float | None = None
        self._again_at = 0.0
        self._opened()
        self._look_at = self._since + FIRST_LOOK_SECONDS

    def count(self, ends: Sequence[CountedEnd]) -> None:
        """Handlings that are over: before anything follows from them, and before their slots are free."""
        if ends:
            self._minute.count(ends)

    def step(self, processes: Callable[[], Iterable[int]], *, waits: bool = False) -> None:
        """Often, and before what has ended since is counted. `waits`: nothing is taken because of the
        spool."""
        steady = self._steady()
        now = self._minute.now = self._clock()
        if waits or self._waits_since is not None:
            self._wait(steady, waits=waits)
        if steady >= self._look_at:
            self._look_at = steady + LOOK_SECONDS
            self.children_bytes = sum(map(resident_bytes, processes()))
            self._minute.saw(children=self.children_bytes)
        if steady >= self._tell_at:
            self._tell_at = steady + _TELL_SECONDS
            self._tell_durations()
        if now >= self._end or now < self._began:
            self._turn(steady, now)

    def finish(self) -> bool:
        """Stores what is open; whether the disk has it. The last thing of a run before its closing record."""
        now = self._minute.now = self._clock()
        self._minute.count_left(died=False)
        self._tell_durations()
        until = ended_at(self._began, now, self._steady() - self._since)
        stored = self._minute.empty or self._stored(now if until is None else until)
        if stored:
            self._minute.begin(now)
        self._minute.close()
        return stored

    def _wait(self, steady: float, *, waits: bool) -> None:
        if self._waits_since is not None:
            self._minute.saw(waited=steady - self._waits_since)
        self._waits_since = steady if waits else None

    def _turn(self, steady: float, now: float) -> None:
        until = ended_at(self._began, now, steady - self._since)
        if until is None or steady < self._again_at:
            return
        if not self._minute.empty:
            if self._spool.crowded:
                self._end = now // MINUTE * MINUTE + MINUTE
                return
            if not self._stored(until):
                self._again_at = steady + _STORE_PAUSE
                return
        self._tell_durations()
        # Of a clock that went on as it should this is the end of the minute before.
        self._minute.begin(now // MINUTE * MINUTE)
        self._before = self._minute.measured()
        self._opened()

    def _tell_durations(self) -> None:
        now, before = self._minute.measured(), self._before
        if now == before:
            return
        self._before = now
        more = [after - known for after, known in zip(now, before, strict=True)]
        processing, critical = more[:BUCKETS], more[BUCKETS:-1]
        self.tell(Durations(self._run.setting, processing, critical, more[-1] / 1e6))

    def _opened(self) -> None:
        self._began, self._since = self._minute.began, self._steady()
        self._end = self._began // MINUTE * MINUTE + MINUTE

    def _stored(self, until: float) -> bool:
        """Killed after it: the id is in the spool, and the next start does not store these figures again."""
        figures = self._minute.figures(self._run, until)
        try:
            self._spool.append([New(self._key, figures, self._minute.id)])
        except sqlite3.Error as error:
            self._log.error("figures cannot be stored", error=str(error))
            return False
        return True
