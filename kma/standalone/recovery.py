"""What the journal of a standalone agent's run says after a kill, beyond its unfinished start: whether the
run is over.

A message that was at hand comes again from its broker. A standalone agent would simply be started again, so a
run that has ended is closed before anybody can do that.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from contract.records import BreakerCounts, RecordRun, RunState
from kma.delivery.breaker import final_counts
from kma.delivery.ending_records import closing
from kma.spool.journal import FINISHED, STARTED, Journal, Totals
from kma.spool.ledger import Ledger, StoredRun
from kma.spool.records import New, Spool
from kma.standalone.attempt import SLOT
from kma.standalone.lease import Lease

DIED_TEXT = "The KMA ended while the agent ran."


def is_standalone(about: dict[str, Any]) -> bool:
    return bool(about.get("standalone"))


def lapsed(journal: Journal) -> bool:
    """Its process ended because of the lease, before the KMA was killed: neither failed nor succeeded."""
    lease = Lease(journal.file)
    try:
        return lease.lapsed
    finally:
        lease.close()


def totals_of(journal: Journal, stored: StoredRun) -> Totals:
    """With a success that its process noted in the slot and the run did not come to count. There is one at
    most."""
    told = journal.totals()
    if journal.state(SLOT) != FINISHED or told.handled or stored.totals.handled:
        return told
    return replace(told, handled=1, successes=told.successes + 1)


def close_ended(
    journal: Journal, about: dict[str, Any], run: RecordRun, key: str, spool: Spool, ledger: Ledger
) -> None:
    """The closing record of a run that returned, or that failed and is not started again (`once`). Done again
    after a kill in here it has no effect: a run is closed once. One that tripped is closed by the keeper."""
    stored = ledger.run(key)
    assert stored is not None
    state = _ended(journal, once=bool(about.get("once")))
    if state is None or stored.interrupted or stored.closed:
        return
    # What returned sets the counts to 0, also where nobody came to count it.
    returned = state is RunState.FINISHED
    counts = BreakerCounts() if returned else final_counts(ledger.carried(run.setting), run)
    record = closing(
        run,
        stored.totals,
        records=stored.records,
        state=state,
        at=datetime.now(UTC),
        counts=counts,
    )
    spool.close_run(New(key, record, uuid4()))


def _ended(journal: Journal, *, once: bool) -> RunState | None:
    slot = journal.state(SLOT)
    if slot == FINISHED:
        return RunState.FINISHED
    if slot == STARTED and once and not lapsed(journal):
        return RunState.FAILED
    return None
