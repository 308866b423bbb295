"""The journal of starts: which message each child process is at, readable after everything was killed.

One memory-mapped file per run, shared with its children; what a killed process wrote stays in the page cache.
It does not outlive a power cut, and need not: then the message comes back without the protocol `kma died`, as
if it had not begun. Slots go FREE -> SENT (parent, before the message goes to a child) -> STARTED (child,
right before `run_agent`) -> FINISHED (child, right after it returned; ANSWERING when it sent something, which
only its answer carries) -> FREE (parent, when the message is settled). A success is told by FINISHED alone.

After a failure the slot stays STARTED until its protocol is in the spool. Where `run_agent` had returned it
has the mark FAILED (parent): the broker did not take what it sent, or its process died before its answer was
read. Whenever the KMA dies, the attempt has exactly one protocol, because both carry the slot's record id.
"""

import json
import math
import mmap
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import UUID

FREE, SENT, STARTED, FINISHED, SKIPPED, ANSWERING = range(6)
ENCODED, IDENTITY = range(
    2
)  # what the slot's content is: a whole encoded message, or JSON for one that is too large

_MAGIC = b"KMAJ0001"
HEADER_SIZE = 64 * 1024
SLOT_SIZE = 16 * 1024
MINUTE_AT = HEADER_SIZE - 8 * 1024  # the open minute, kma/spool/minute.py: the rest of the header
# Magic, slots, length of the JSON, stop flag.
_HEAD = struct.Struct("<8sIIB")
_TOTALS = struct.Struct("<QQQQQ")
_TOTALS_AT = 64
LEASE_AT = 104  # what kma/standalone/lease.py keeps in the header: 9 bytes
_SINCE = struct.Struct("<Q")
_SINCE_AT = 128
_JSON_AT = 1152
# State, recalled, content, marks, length, attempt, delivery count, tag, record id; then start (wall and
# monotonic), pid, bytes of the message; then end (monotonic), seconds since it was sent, or why not.
_CLAIM = struct.Struct("<BBBBIIIQ16s")
_START = struct.Struct("<ddII")
_START_AT = _CLAIM.size
_END = struct.Struct("<dd")
_END_AT = _START_AT + _START.size
_CONTENT_AT = _END_AT + _END.size
ROOM = SLOT_SIZE - _CONTENT_AT
MARKS_AT = 3  # within a slot
# Its message is accepted; its end is in the figures of the run; it returned, and has failed all the same.
COMMITTED, COUNTED, FAILED = 1, 2, 4
# Instead of the seconds since its message was sent: the message does not say when; there was no message.
NO_TIMESTAMP, NO_MESSAGE = -math.inf, math.nan


class JournalDamaged(ValueError):
    """Not a journal, or cut short. Operator: remove the file; attempts it held are not protocolled."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Of the run on this server. `successes`: handled well since the last counted failure of the setting,
    which was the one with the number `since`."""

    handled: int = 0
    failed: int = 0
    temporary: int = 0
    restarts: int = 0
    successes: int = 0
    since: int = 0


@dataclass(frozen=True, slots=True)
class UnfinishedHandling:
    """A slot whose handling began and did not end well. `committed`: its message was accepted meanwhile."""

    record: UUID
    attempt: int
    delivery_count: int
    started_at: float
    pid: int
    content: int
    data: bytes
    committed: bool = False


def failed(state: int, marks: int) -> bool:
    """Whether the handling in a slot has failed, if nothing more becomes of it."""
    return state == STARTED or (state in (FINISHED, ANSWERING) and bool(marks & FAILED))


class Journal:
    """Parent and child share one file; a slot belongs to one side at a time, so no lock is needed between
    them."""

    def __init__(self, file: int, size: int) -> None:
        self._file = file
        self._map = mmap.mmap(file, size)
        self._fence = Lock()
        self.slots = (size - HEADER_SIZE) // SLOT_SIZE

    @classmethod
    def create(cls, path: Path, about: dict[str, Any], slots: int) -> "Journal":
        """A new journal; `about` comes back from `about()` after a crash."""
        text = json.dumps(about).encode()
        if len(text) > MINUTE_AT - _JSON_AT:
            raise ValueError("the run's data is too long for the journal")
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        size = HEADER_SIZE + slots * SLOT_SIZE
        try:
            # Real blocks now: writing to a hole of a mapped file on a full disk would kill this process
            # (SIGBUS).
            os.posix_fallocate(file, 0, size)
            journal = cls(file, size)
        except OSError:
            os.close(file)
            path.unlink()  # or each try on a full disk leaves one, with the blocks that it got
            raise
        journal._map[_JSON_AT : _JSON_AT + len(text)] = text
        _HEAD.pack_into(journal._map, 0, _MAGIC, slots, len(text), 0)
        return journal

    @classmethod
    def attach(cls, file: int) -> "Journal":
        """An existing one by its file descriptor, which the journal owns from now on. Raises
        JournalDamaged."""
        size = os.fstat(file).st_size
        if size < HEADER_SIZE:
            os.close(file)
            raise JournalDamaged("too short")
        journal = cls(file, size)
        magic, slots, length, _ = _HEAD.unpack_from(journal._map, 0)
        if magic != _MAGIC or slots != journal.slots or length > HEADER_SIZE - _JSON_AT:
            journal.close()
            raise JournalDamaged("not a journal")
        return journal

    @classmethod
    def open(cls, path: Path) -> "Journal":
        return cls.attach(os.open(path, os.O_RDWR | os.O_CLOEXEC))

    @property
    def file(self) -> int:
        """The descriptor that a child process inherits."""
        return self._file

    def about(self) -> dict[str, Any]:
        length = _HEAD.unpack_from(self._map, 0)[2]
        found: dict[str, Any] = json.loads(self._map[_JSON_AT : _JSON_AT + length])
        return found

    def close(self) -> None:
        self._map.close()
        os.close(self._file)

    # -- parent ----------------------------------------------------------------------------------------------

    def claim(
        self,
        slot: int,
        record: bytes,
        attempt: int,
        delivery_count: int,
        tag: int,
        data: bytes,
        content: int = ENCODED,
    ) -> None:
        """Before the message goes to a child. `data` has at most ROOM bytes."""
        at = HEADER_SIZE + slot * SLOT_SIZE
        _CLAIM.pack_into(self._map, at, SENT, 0, content, 0, len(data), attempt, delivery_count, tag, record)
        at += _CONTENT_AT
        self._map[at : at + len(data)] = data

    def free(self, slot: int) -> None:
        self._map[HEADER_SIZE + slot * SLOT_SIZE] = FREE

    def commit(self, slot: int) -> None:
        """Its message is accepted before its handling is told: it will not come back. A slot below 0 is none:
        nothing more is to be told of that handling."""
        self._mark(slot, COMMITTED)

    def fail(self, slot: int) -> None:
        """What it handled returned, and has failed all the same. Before that is counted, and before anything
        follows from it: killed before this, it has returned. Below 0 as above."""
        self._mark(slot, FAILED)

    def _mark(self, slot: int, mark: int) -> None:
        if slot >= 0:
            self._map[HEADER_SIZE + slot * SLOT_SIZE + MARKS_AT] |= mark

    def state(self, slot: int) -> int:
        return self._map[HEADER_SIZE + slot * SLOT_SIZE]

    def recall(self, slot: int) -> bool:
        """Takes a message back that waits in a child. True: the child has not begun and will not.

        Dekker's handshake with `begin`: each side writes its byte, then reads the other's, with a full fence
        between (taking a lock is one). False: the child has begun, or is about to look: its answer tells.
        """
        at = HEADER_SIZE + slot * SLOT_SIZE
        self._map[at + 1] = 1
        with self._fence:
            pass
        return self._map[at] == SENT

    def started(self, slot: int) -> float | None:
        """When (CLOCK_MONOTONIC) the handling in the slot began, if it is under way."""
        at = HEADER_SIZE + slot * SLOT_SIZE
        if self._map[at] != STARTED:
            return None
        return float(_START.unpack_from(self._map, at + _START_AT)[1])

    def began_at(self, slot: int) -> float:
        """When (seconds since 1970) the last handling in the slot began."""
        return float(_START.unpack_from(self._map, HEADER_SIZE + slot * SLOT_SIZE + _START_AT)[0])

    def ask_to_stop(self) -> None:
        self._map[_HEAD.size - 1] = 1

    def write_totals(self, totals: Totals) -> None:
        """Killed in between: `since`, written last, speaks of an older failure, so that nobody heeds
        `successes`."""
        _TOTALS.pack_into(
            self._map,
            _TOTALS_AT,
            totals.handled,
            totals.failed,
            totals.temporary,
            totals.restarts,
            totals.successes,
        )
        _SINCE.pack_into(self._map, _SINCE_AT, totals.since)

    def totals(self) -> Totals:
        return Totals(*_TOTALS.unpack_from(self._map, _TOTALS_AT), *_SINCE.unpack_from(self._map, _SINCE_AT))

    def unfinished(self) -> Iterator[UnfinishedHandling]:
        """After a crash: every handling that began and did not end well, as far as is known; the spool may
        have its protocol."""
        for slot in range(self.slots):
            at = HEADER_SIZE + slot * SLOT_SIZE
            state, _, content, marks, length, attempt, count, _tag, record = _CLAIM.unpack_from(self._map, at)
            if not failed(state, marks) or length > ROOM:
                continue
            started_at, _, pid, _ = _START.unpack_from(self._map, at + _START_AT)
            data = self._map[at + _CONTENT_AT : at + _CONTENT_AT + length]
            yield UnfinishedHandling(
                UUID(bytes=record), attempt, count, started_at, pid, content, data, bool(marks & COMMITTED)
            )

    # -- child -----------------------------------------------------------------------------------------------

    def begin(self, slot: int, pid: int, size: int = 0) -> bool:
        """Right before `run_agent`, of a message of `size` bytes. False: the parent took the message back; do
        not handle it."""
        at = HEADER_SIZE + slot * SLOT_SIZE
        _START.pack_into(self._map, at + _START_AT, time.time(), time.monotonic(), pid, size)
        self._map[at] = STARTED
        with self._fence:
            pass
        if self._map[at + 1]:
            self._map[at] = SKIPPED
            return False
        return True

    def finish(self, slot: int, since_sent: float = NO_MESSAGE, *, answering: bool = False) -> float:
        """Right after `run_agent` returned; answers when (CLOCK_MONOTONIC). `since_sent`: seconds since the
        producer sent the message, or NO_TIMESTAMP, or NO_MESSAGE. `answering`: it is no success before its
        answer was read."""
        at, now = HEADER_SIZE + slot * SLOT_SIZE, time.monotonic()
        _END.pack_into(self._map, at + _END_AT, now, since_sent)
        self._map[at] = ANSWERING if answering else FINISHED
        return now

    def asked_to_stop(self) -> bool:
        return bool(self._map[_HEAD.size - 1])
