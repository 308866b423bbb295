"""Talks to the MA: heartbeats, and the spool's records in order. A record that is refused never blocks the
next.

A batch that does not come through in the time that the MA gives it (408) is halved, and so is one whose
answer does not come. A single record for which the link is too slow goes behind the others, where a smaller
one waits. It keeps its id, so the MA stores it once. Its number changes in one transaction of the spool:
killed before, the record stands first as it did; killed after, it stands last. What the MA answers with 2xx
alone leaves the spool.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

from contract import reasons
from contract.messages import MAX_RECORDS, Record, RecordBatch, RecordReceipt
from contract.reasons import Reason
from kma.logs import logger
from kma.ma_client import LONGEST_PAUSE, MaClient, NotAllowed, Rejected, TooSlow, Unanswered
from kma.spool.records import Spool

BATCH_BYTES = 4 * 1024 * 1024  # before gzip
FIRST_PAUSE = 0.5
QUICK_SECONDS = 2.5  # twice a batch that took less comes through, too
_TRIES_OF_ONE = (
    3  # of a single record that is answered with 4xx or does not come through, before others go on
)


class Pause:
    """Growing pauses with full jitter: servers that lost the MA together do not come back together."""

    def __init__(
        self, draw: Callable[[float, float], float] = random.uniform, *, longest: float = LONGEST_PAUSE
    ) -> None:
        self._draw = draw
        self._bound = longest
        self._longest = FIRST_PAUSE

    def reset(self) -> None:
        self._longest = FIRST_PAUSE

    def next(self, asked: float | None = None) -> float:
        """Seconds to wait now."""
        longest, self._longest = self._longest, min(self._longest * 2, self._bound)
        return max(asked or 0.0, self._draw(FIRST_PAUSE / 2, longest))


def larger(limit: int, seconds: float) -> int:
    """How many records to send at once after so many took so long. A slow link is not filled to its bound
    again and again: each time it is, the whole time that the MA gives is lost."""
    return min(MAX_RECORDS, limit * 2 if seconds < QUICK_SECONDS else limit + max(1, limit // 8))


class Reporter:
    """Drains the spool. `step` does one request and answers how long to wait before the next."""

    IDLE = 0.2
    TIDY = 60.0  # between looks at what was taken long ago

    def __init__(self, client: MaClient, spool: Spool, server: str) -> None:
        self._client = client
        self._spool = spool
        self._server = server
        self._pause = Pause()
        self._limit = MAX_RECORDS
        self._tries = 0
        self._too_slow: set[UUID] = set()  # records that went behind others, of this process
        self._asked_for: tuple[int, int | None] | None = None
        self._tidy_at = 0.0
        self._log = logger(server=server)
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._main, name="reporter", daemon=True)
        self.problem: Reason | None = None

    @property
    def slow_link(self) -> Reason | None:
        """Of single records that do not come through, while others do; None where there are none."""
        number = len(self._too_slow)
        return reasons.LINK_TOO_SLOW(n=number) if number else None

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """The MA answers again: no need to wait for the end of a pause."""
        self._pause.reset()
        self._wake.set()

    def send_again(self, stored_up_to: int, told: int | None) -> None:
        """The MA has no more than this of the spool, though we `told` it that it had taken more. From any
        thread."""
        self._asked_for = stored_up_to, told
        self.wake()

    def stop(self, *, drain_seconds: float) -> None:
        """Sends what is left, as long as the MA answers and time remains; what is not sent stays on disk.

        A request that is under way when time is up is left alone: its records come again, and the MA knows
        them.
        """
        deadline = time.monotonic() + drain_seconds
        self._client.hurry(drain_seconds)
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(drain_seconds)
            if self._thread.is_alive():
                return
        while time.monotonic() < deadline and self._spool.report().rows:
            self.step()
            if self.problem:
                break

    def _main(self) -> None:
        while not self._stop.is_set():
            try:
                wait = self.step()
            except Exception as error:
                self._log.exception("reporter failed")
                self.problem = reasons.REPORTER_FAILED(type=type(error).__name__, text=str(error))
                wait = LONGEST_PAUSE
            if wait and self._wake.wait(wait):
                self._wake.clear()

    def step(self) -> float:
        """Sends one batch, if there is one. Seconds to wait."""
        self._tidy()
        if self._asked_for is not None:
            (stored, told), self._asked_for = self._asked_for, None
            if told == self._spool.delivered():  # else a batch was faster, or has gone back already
                self._go_back(stored)
        # The mark moves in this thread only: it is the one of these records.
        records, after = self._spool.head(self._limit, BATCH_BYTES), self._spool.delivered()
        if not records:
            self.problem = None
            return self.IDLE
        batch = RecordBatch(
            self._server,
            self._spool.id,
            tuple(records),
            sent_at=datetime.now(UTC),
            after=after,
            first=self._spool.first,
        )
        began = time.monotonic()
        try:
            receipt = self._client.deliver(batch)
        except TooSlow as error:
            return self._send_less(error, records)
        except Unanswered as error:
            return self._wait(reasons.RECORDS_NOT_TAKEN(detail=str(error)), error.after)
        except NotAllowed as error:
            return self._wait(reasons.TOKEN_REFUSED(detail=str(error)), LONGEST_PAUSE)
        except Rejected as error:
            return self._rejected(error, [record.number for record in records])
        self._pause.reset()
        self._tries = 0
        self._limit = larger(self._limit, time.monotonic() - began)
        self._too_slow.difference_update([record.id for record in records])
        self.problem = None
        if after is not None and receipt.stored_up_to < after:
            again = self._go_back(receipt.stored_up_to)
            return 0.0 if again else self._wait(reasons.RECORDS_GONE(), None)
        return self._taken(receipt, records[-1].number)

    def _tidy(self) -> None:
        if time.monotonic() >= self._tidy_at:
            self._tidy_at = time.monotonic() + self.TIDY
            if self._spool.forget_old():
                self._tidy_at = 0.0  # there may be more: with the next step

    def _go_back(self, stored_up_to: int) -> int:
        """Its database was put back from a copy, or lost its last commits: how much of that is sent again."""
        again = self._spool.send_again(stored_up_to)
        if again:
            self._log.warning("records lost by the MA: sent again", stored=stored_up_to, records=again)
        return again

    def _taken(self, receipt: RecordReceipt, sent: int) -> float:
        for refusal in receipt.refused:
            self._log.error("record refused", number=refusal.number, reason=refusal.reason)
            self._spool.put_aside(refusal.number, refusal.reason)
        if receipt.stored_up_to > self._spool.last_number():
            # The MA knows higher numbers of this spool than it ever gave: the file was put back from a copy.
            # What it holds would be taken for known, so it goes on under a new identity; the records' ids
            # keep them single.
            self._log.error("spool older than the records that the MA has", stored=receipt.stored_up_to)
            self._spool.renew_id()
            return 0.0
        self._spool.taken(receipt.stored_up_to)
        if receipt.stored_up_to < sent:
            return self._wait(reasons.STORED_IN_PART(), None)
        return 0.0

    def _rejected(self, error: Rejected, numbers: list[int]) -> float:
        """A batch that will not do is halved until one record is left, and that one is put aside in the
        end."""
        self._log.error("records rejected", records=len(numbers), error=str(error))
        if len(numbers) > 1:
            self._limit = max(1, len(numbers) // 2)
            return 0.0
        self._tries += 1
        if self._tries < _TRIES_OF_ONE and not error.too_large:
            return self._wait(reasons.RECORD_NOT_TAKEN(number=numbers[0], detail=str(error)), None)
        self._tries = 0
        self._spool.put_aside(numbers[0], str(error))
        return 0.0

    def _send_less(self, error: TooSlow, records: Sequence[Record]) -> float:
        """Halves a batch. One record that is still too slow goes behind the others, where a much smaller one
        waits: else the link is the cause, and the order stays."""
        if len(records) > 1:
            self._limit = max(1, len(records) // 2)
            self._pause.reset()
            return self._wait(reasons.BATCH_NOT_TAKEN(n=len(records), detail=str(error)), error.after)
        record = records[0]
        self._tries += 1
        known = record.id in self._too_slow
        if (
            error.link
            and (known or self._tries >= _TRIES_OF_ONE)
            and (number := self._spool.put_last(record.number))
        ):
            self._tries = 0
            self._too_slow.add(record.id)
            self._log.error(
                "record moved behind the others", number=record.number, now=number, error=str(error)
            )
            self._pause.reset()
        return self._wait(reasons.RECORD_NOT_TAKEN(number=record.number, detail=str(error)), error.after)

    def _wait(self, problem: Reason, asked: float | None) -> float:
        if problem != self.problem:
            self._log.warning("records not reported", problem=str(problem))
        self.problem = problem
        return self._pause.next(asked)
