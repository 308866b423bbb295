"""What follows from endings, in its order: first the disk, then the broker, then agents, then the journal."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any

from broker.port import Consumer, Settle
from contract import reasons
from contract.outcomes import is_last
from contract.reasons import Reason
from kma.children.pool import ChildPool
from kma.children.worker_slot import HandlingEnd
from kma.delivery.effects import Effects, Transaction
from kma.delivery.outbox import Outbox
from kma.delivery.settlement import DeliverySettler
from kma.sdk.job import AgentQuestion
from kma.spool.journal import Journal
from kma.spool.records import Spool

KEYS_TOLD = 20  # of messages in one line of the log
_STORE_PAUSE = 1.0  # seconds before a failed write to the spool is tried again


class PendingEffects:
    """One thread, the run's. `problem`: why they could not be stored; nothing is begun meanwhile."""

    def __init__(self, settler: DeliverySettler, spool: Spool, log: Any) -> None:
        self._settler = settler
        self._spool = spool
        self._log = log
        self._again_at = 0.0
        self.effects = Effects()
        self.problem: Reason | None = None

    def __bool__(self) -> bool:
        return bool(self.effects)

    def add(self, effects: Effects) -> None:
        self.effects += effects

    def store(self, restarts: int, *, always: bool = False) -> Effects | None:
        """What the disk has now and is to be carried out, pending no more. None: the disk did not take it, or
        it is not time to try again; then all of it stays pending. `always`: also where only the progress is
        new."""
        effects = self.effects
        needed = always or effects.must_be_stored or self._settler.guard.pending
        if needed and not self._stored(effects, restarts):
            return None
        self.effects = Effects()
        return effects

    def _stored(self, effects: Effects, restarts: int) -> bool:
        now = time.monotonic()
        if now < self._again_at:
            return False
        try:
            self._spool.append(
                effects.records,
                attempts=effects.attempts,
                forget=effects.forget,
                progress=self._settler.progress(restarts),
                committing=effects.committing,
                handled=self._settler.guard.to_store(),
            )
        except sqlite3.Error as error:
            # Disk full or broken: nothing of it is settled, and nothing more is begun.
            self.problem = reasons.SPOOL_NOT_WRITTEN(detail=str(error))
            self._again_at = now + _STORE_PAUSE
            self._log.error("spool cannot be written", error=str(error))
            return False
        self.problem = None
        self._settler.stored()
        return True


class RunActs:
    """What a run does with its link, towards its agents, and besides its messages' transactions. `consumer`:
    the link, None while there is none."""

    def __init__(
        self, pool: ChildPool, journal: Journal, outbox: Outbox, elsewhere: Callable[[AgentQuestion], None]
    ) -> None:
        self.consumer: Consumer | None = None
        self.reply = pool.reply
        self.accepted, self.failed = journal.commit, journal.fail
        self.depart = outbox.put
        self.send_event = outbox.put_event
        self.pass_on = elsewhere

    def settle(self, settlements: Sequence[tuple[int, Settle]]) -> None:
        if self.consumer is not None:
            self.consumer.settle(settlements)

    def transact(self, transaction: Transaction, *, may_share: bool = False) -> None:
        assert self.consumer is not None
        self.consumer.settle_with_sends(transaction.tag, transaction.sends, may_share=may_share)


class Commits:
    """What a handling has sent and the acceptance of its message, one transaction. Killed before its end:
    nothing was sent, the message comes back. Killed after: its record of a recovery is lost, no message is.
    It may be that of others too, unless the attempts that this may cost exhaust the message.

    One thread, the run's.
    """

    def __init__(self, settler: DeliverySettler, acts: RunActs, log: Any) -> None:
        self._settler = settler
        self._acts = acts
        self._log = log
        self._under_way: dict[int, HandlingEnd] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, ended: HandlingEnd) -> None:
        work = ended.work
        self._under_way[work.tag] = ended
        sends = tuple(self._settler.outgoing(work, ended.handled.sends))
        may_share = not is_last(work.attempt + 1, self._settler.desired.max_attempts)
        self._acts.transact(Transaction(work.tag, sends), may_share=may_share)

    def take(self, tag: int) -> HandlingEnd | None:
        """Whose transaction it was that has ended; None: of none of these."""
        return self._under_way.pop(tag, None)

    def lose_connection(self) -> list[HandlingEnd]:
        """Nobody will hear how these ended: the broker has all of it, or gives the message again."""
        in_doubt, self._under_way = list(self._under_way.values()), {}
        if in_doubt:
            keys = [ended.work.identified.key.text for ended in in_doubt[:KEYS_TOLD]]
            self._log.warning("in doubt: committed or redelivered", number=len(in_doubt), message_keys=keys)
        return in_doubt


class Committer:
    """One thread, the run's."""

    def __init__(
        self, pending: PendingEffects, settler: DeliverySettler, journal: Journal, pool: ChildPool
    ) -> None:
        self._pending = pending
        self._settler = settler
        self._journal = journal
        self._pool = pool

    def carry_out(self, acts: RunActs, wanted: Callable[[Transaction], bool]) -> int:
        """Stores what is pending, then does it; answers how many slots are free by that. A
        transaction that is not `wanted` any more is left out. This process may be killed

        before the append: nothing is settled, the message comes back; after a failure its slot is still
        STARTED, or says that it has failed, and becomes the protocol `kma died` of this attempt, under the
        record id that the lost protocol would have had, and the breaker has not counted it;
        after the append: the same, but that record id is on disk already, so there is no second protocol; the
        counts that follow from it are there too, and an interruption with the mark that the run must not be
        taken up again;
        after the settlements were posted: the broker has them or gives the messages back, with or without the
        attempt;
        before a transaction is posted: nothing was sent and nothing accepted; a message without an attempt
        left comes back and goes where it was to go, a delivery that was to be committed comes back, and its
        end says that it may be committed; after that: the broker has all of the transaction or nothing;
        before an event is sent: there is none, and nobody waits for it;
        before an agent is answered: its process dies with this one, and whoever asked elsewhere asks again;
        before the totals are written: the journal tells one ending less than the spool, which counts;
        before a slot is free: it still says how its handling ended, and a record of it is stored once.
        """
        effects = self._pending.store(self._pool.restarts)
        if effects is None:
            return 0
        if effects.settlements:
            acts.settle(effects.settlements)
        for transaction in filter(wanted, effects.transactions):
            acts.transact(transaction)
        for event in effects.events:
            acts.send_event(event)
        for asked, reply in effects.replies:
            acts.reply(asked, reply)
        self.write_totals()
        for slot in effects.slots:
            self._pool.release(slot)
        return len(effects.slots)

    def write_totals(self) -> None:
        self._journal.write_totals(self._settler.totals(self._pool.restarts))
