"""What follows from endings, in its order: first the disk, then the broker, then the journal."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any

from broker.port import Settle
from contract import reasons
from contract.reasons import Reason
from kma.children.pool import Pool
from kma.delivery.settlement import Settling
from kma.spool.journal import Journal
from kma.spool.records import Spool

_STORE_PAUSE = 1.0  # seconds before a failed write to the spool is tried again


class Storing:
    """One thread, the run's. `problem`: why the last batch could not be stored; nothing is begun
    meanwhile."""

    def __init__(self, settling: Settling, spool: Spool, journal: Journal, pool: Pool, log: Any) -> None:
        self._settling = settling
        self._spool = spool
        self._journal = journal
        self._pool = pool
        self._log = log
        self._again_at = 0.0
        self.problem: Reason | None = None

    def carry_out(self, settle: Callable[[Sequence[tuple[int, Settle]]], None]) -> int:
        """Stores the batch, settles, frees the slots; answers how many. This process may be killed

        before the append: nothing is settled, the message comes back; after a failure its slot is still
        STARTED and becomes the protocol `kma died` of this attempt, under the record id that the lost
        protocol would have had, and the breaker has not counted it; after the append: the same, but that
        record id is on disk already, so there is no second protocol; the counts that follow from it are there
        too, and an interruption with the mark that the run must not be taken up again; after the settlement
        was posted: the broker has it or gives the message back, with or without the attempt.
        """
        batch = self._settling.batch
        if (batch.must_be_stored or self._settling.guard.pending) and not self._stored():
            return 0
        self._settling.take_batch()
        if batch.settlements:
            settle(batch.settlements)
        for call in batch.after:
            call()
        self.write_totals()
        for slot in batch.slots:
            self._pool.release(slot)
        return len(batch.slots)

    def _stored(self) -> bool:
        batch, now = self._settling.batch, time.monotonic()
        if now < self._again_at:
            return False
        try:
            self._spool.append(
                batch.records,
                attempts=batch.attempts,
                forget=batch.forget,
                progress=self._settling.progress(self._pool.restarts),
                committing=batch.committing,
                handled=self._settling.guard.to_store(),
            )
        except sqlite3.Error as error:
            # Disk full or broken: nothing of the batch is settled, and nothing more is begun.
            self.problem = reasons.SPOOL_NOT_WRITTEN(detail=str(error))
            self._again_at = now + _STORE_PAUSE
            self._log.error("spool cannot be written", error=str(error))
            return False
        self.problem = None
        self._settling.guard.stored()
        return True

    def write_totals(self) -> None:
        self._journal.write_totals(self._settling.totals(self._pool.restarts))
