"""The open minute of a run: how many handlings ended how, in the rest of the journal's header.

There are two copies of all figures, and one byte says which counts. A batch of ends goes into the other copy,
together with the slots that they ended in; then that byte is turned, then each slot is marked as counted.
Killed

before the byte is turned: nothing was counted; whoever recovers finds the ends in their slots, unmarked;
after it, before all marks are there: the copy that counts says which slots lack their mark. A slot that holds
    another handling by now has another record id.

So each handling is counted once. A minute that is over becomes a record under an id of its own. Killed
between its record and the next minute: that id is in the spool, so what the journal has was told
(kma/host/recovery.py).
"""

import mmap
import os
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID, uuid4, uuid5

from contract.histogram import BOUNDS, BUCKETS, packed
from contract.outcomes import Outcome
from contract.records import MinuteFigures, RecordRun
from kma.spool.journal import (
    ANSWERING,
    COUNTED,
    FINISHED,
    HEADER_SIZE,
    MARKS_AT,
    MINUTE_AT,
    NO_TIMESTAMP,
    SLOT_SIZE,
    STARTED,
    Journal,
    failed,
)

_MAGIC = b"KMAM0001"
_TURN_AT = MINUTE_AT + len(_MAGIC)  # 0 or 1: the copy that counts
_SEED_AT = MINUTE_AT + 16
_COPIES_AT = MINUTE_AT + 32

# Words of a copy: whole numbers of 8 bytes. Instants in milliseconds, durations in microseconds.
_NUMBER, _BEGAN, _SEEN = 0, 1, 2
_SUCCEEDED, _FAILED, _TEMPORARY, _RECOVERED = 3, 4, 5, 6
_BYTES, _BUSY, _NO_TIMESTAMP, _BEFORE_SENT = 7, 8, 9, 10
_CONCURRENCY, _CHILDREN, _SPOOL = 11, 12, 13
_PROCESSING = 16
_CRITICAL = _PROCESSING + BUCKETS
_MARKS = _CRITICAL + BUCKETS  # their number, then slot and record of each
_AT_ONCE = 64
_WORDS = _MARKS + 1 + 2 * _AT_ONCE
_SIZE = 8 * _WORDS

# Of a slot: state; second half of the record id; start, bytes; end, seconds since the message was sent.
_ENDED = struct.Struct("<B31xQ8xd4xIdd")
_ATTEMPT = struct.Struct("<8xI")


class CountedWork(Protocol):
    """What was handled: kma.delivery.in_flight.InFlight."""

    @property
    def slot(self) -> int: ...
    @property
    def attempt(self) -> int: ...


class CountedResult(Protocol):
    """How: kma.handling.handler.HandlingResult."""

    @property
    def outcome(self) -> Outcome: ...


class CountedEnd(Protocol):
    """A handling that is over: kma.children.worker_slot.HandlingEnd. Its slot is not free yet. `seconds`
    count where the slot does not know the end, below 0 for not known."""

    @property
    def work(self) -> CountedWork: ...
    @property
    def handled(self) -> CountedResult: ...
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class _Found:
    """An end that nobody has counted; all of `CountedEnd`."""

    slot: int
    attempt: int
    outcome: Outcome
    seconds: float = -1.0

    @property
    def work(self) -> "_Found":
        return self

    handled = work


class OpenMinute:
    """One thread: the run's, or that of a recovery. `now`: when it is, as far as its owner has looked. It is
    stored with all else, so that a recovery knows when the figures end (`seen`)."""

    def __init__(self, journal: Journal) -> None:
        self._map = mmap.mmap(journal.file, 0)
        self._slots = journal.slots
        self._seed = UUID(bytes=self._map[_SEED_AT : _SEED_AT + 16])
        self._turn = self._map[_TURN_AT]
        at = self._copy(self._turn)
        self._words = array("Q", self._map[at : at + _SIZE])
        self.now = self.seen

    @classmethod
    def create(cls, journal: Journal, now: float, concurrency: int) -> "OpenMinute":
        """The first one of a new journal."""
        with mmap.mmap(journal.file, 0) as mapped:
            mapped[_SEED_AT : _SEED_AT + 16] = uuid4().bytes
            mapped[MINUTE_AT : MINUTE_AT + len(_MAGIC)] = _MAGIC
        minute = cls(journal)
        minute.now = now
        minute._words[_CONCURRENCY] = concurrency
        minute.begin(now)
        return minute

    @classmethod
    def found(cls, journal: Journal) -> "OpenMinute | None":
        """Of a run that was killed; None in a journal of a version that counted nothing."""
        with mmap.mmap(journal.file, HEADER_SIZE) as header:
            if header[MINUTE_AT : MINUTE_AT + len(_MAGIC)] != _MAGIC:
                return None
        minute = cls(journal)
        minute._mark_again()
        return minute

    def close(self) -> None:
        self._map.close()

    # -- what is counted -------------------------------------------------------------------------------------

    def count(self, ends: Sequence[CountedEnd]) -> None:
        """Handlings that are over, before anything follows from them. One that was given back counts for
        nothing: it has no end."""
        for start in range(0, len(ends), _AT_ONCE):
            self._commit(self._count(ends[start : start + _AT_ONCE]))

    def _count(self, ends: Sequence[CountedEnd]) -> list[int]:
        """Returns where their slots are."""
        words, mapped, read = self._words, self._map, _ENDED.unpack_from
        succeeded = size = 0
        busy = 0.0
        mark = _MARKS
        places = []
        for ended in ends:
            outcome, work = ended.handled.outcome, ended.work
            if outcome is Outcome.RELEASED:
                continue
            slot = work.slot
            place = HEADER_SIZE + slot * SLOT_SIZE
            places.append(place)
            state, record, began, length, over, since_sent = read(mapped, place)
            seconds = ended.seconds if state == STARTED else over - began
            if outcome is Outcome.RETURNED:
                succeeded += 1
                if work.attempt > 1:
                    words[_RECOVERED] += 1
                if since_sent >= 0.0:
                    words[_CRITICAL + bisect_left(BOUNDS, since_sent)] += 1
                elif since_sent == NO_TIMESTAMP:
                    words[_NO_TIMESTAMP] += 1
                elif since_sent < 0.0:
                    words[_BEFORE_SENT] += 1
            else:
                words[_TEMPORARY if outcome is Outcome.TEMPORARY else _FAILED] += 1
            if seconds >= 0.0:
                busy += seconds
                words[_PROCESSING + bisect_left(BOUNDS, seconds)] += 1
            size += length
            words[mark + 1] = slot
            words[mark + 2] = record
            mark += 2
        words[_SUCCEEDED] += succeeded
        words[_BYTES] += size
        words[_BUSY] += int(busy * 1e6)
        words[_MARKS] = (mark - _MARKS) >> 1
        return places

    def count_left(self, *, died: bool) -> None:
        """Ends that nobody counted: of what returned, and, where its process `died`, of what began."""
        found = []
        for slot in range(self._slots):
            at = HEADER_SIZE + slot * SLOT_SIZE
            state, marks = self._map[at], self._map[at + MARKS_AT]
            if marks & COUNTED:
                continue
            (attempt,) = _ATTEMPT.unpack_from(self._map, at)
            if failed(state, marks):
                if died:
                    found.append(_Found(slot, attempt, Outcome.KMA_DIED))
            elif state in (FINISHED, ANSWERING):
                found.append(_Found(slot, attempt, Outcome.RETURNED))
        self.count(found)

    def saw(self, *, children: int = 0, waited: float = 0.0) -> None:
        """`children`: bytes that the processes hold now; `waited`: seconds more in which nothing was taken,
        because the spool was full."""
        words = self._words
        words[_CHILDREN] = max(words[_CHILDREN], children)
        words[_SPOOL] += int(waited * 1e6)
        words[_MARKS] = 0
        self._commit()

    # -- the two copies --------------------------------------------------------------------------------------

    def _copy(self, turn: int) -> int:
        return _COPIES_AT + turn * _SIZE

    def _commit(self, places: Iterable[int] = ()) -> None:
        turn = 1 - self._turn
        at = self._copy(turn)
        self._words[_SEEN] = _milliseconds(self.now)
        self._map[at : at + _SIZE] = self._words
        mapped = self._map
        mapped[_TURN_AT] = self._turn = turn
        for place in places:
            mapped[place + MARKS_AT] |= COUNTED

    def _mark_again(self) -> None:
        """What was counted last; not a slot that has been claimed anew since."""
        words, mapped = self._words, self._map
        for at in range(_MARKS + 1, _MARKS + 1 + 2 * words[_MARKS], 2):
            place = HEADER_SIZE + words[at] * SLOT_SIZE
            if _ENDED.unpack_from(mapped, place)[1] == words[at + 1]:
                mapped[place + MARKS_AT] |= COUNTED

    def measured(self) -> "array[int]":
        """Of this minute so far: processing times by their buckets, then critical times, then microseconds of
        processing."""
        return self._words[_PROCESSING:_MARKS] + self._words[_BUSY : _BUSY + 1]

    # -- the record ------------------------------------------------------------------------------------------

    @property
    def id(self) -> UUID:
        """Of its record. It names the journal and the minute by its number there: clocks may say one minute
        twice."""
        return uuid5(self._seed, str(self._words[_NUMBER]))

    @property
    def empty(self) -> bool:
        words = self._words
        return not (words[_SUCCEEDED] or words[_FAILED] or words[_TEMPORARY] or words[_SPOOL])

    @property
    def began(self) -> float:
        return self._words[_BEGAN] / 1000

    @property
    def seen(self) -> float:
        return self._words[_SEEN] / 1000

    def figures(self, run: RecordRun, until: float) -> MinuteFigures:
        words = self._words
        return MinuteFigures(
            run=run,
            occurred_at=datetime.fromtimestamp(self.began, UTC),
            until=datetime.fromtimestamp(max(until, self.began + 0.001), UTC),
            succeeded=words[_SUCCEEDED],
            failed=words[_FAILED],
            temporary=words[_TEMPORARY],
            recovered=words[_RECOVERED],
            bytes=words[_BYTES],
            busy_seconds=words[_BUSY] / 1e6,
            processing=packed(dict(enumerate(words[_PROCESSING:_CRITICAL]))),
            critical=packed(dict(enumerate(words[_CRITICAL:_MARKS]))),
            no_timestamp=words[_NO_TIMESTAMP],
            before_sent=words[_BEFORE_SENT],
            concurrency=words[_CONCURRENCY],
            children_bytes=words[_CHILDREN],
            spool_seconds=words[_SPOOL] / 1e6,
        )

    def begin(self, now: float) -> None:
        """The next one. What was counted before is in a record, or was nothing."""
        number, concurrency = self._words[_NUMBER], self._words[_CONCURRENCY]
        self._words = array("Q", bytes(_SIZE))
        self._words[_NUMBER] = number + 1
        self._words[_BEGAN] = _milliseconds(now)
        self._words[_CONCURRENCY] = concurrency
        self._commit()


def _milliseconds(now: float) -> int:
    return max(0, int(now * 1000))


_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int) -> int:
    """What a process holds in memory, 0 where it is gone."""
    try:
        file = os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(file, 100).split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
    finally:
        os.close(file)
