"""After a kill: what was begun and did not end becomes the protocol `kma died`, before anything else
happens; a run of a standalone agent that is over is closed."""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from contract import version_3
from contract.message_key import MessageKey
from contract.outcomes import Outcome
from contract.records import BreakerCounts, Protocol, RecordRun, RunState, derived_id
from contract.wire import load
from kma.acknowledgement.reporting import end_left_open
from kma.delivery.breaker import after_kill, final_counts
from kma.delivery.ending_records import FailureContext, after_failure, closing
from kma.delivery.message_identity import IdentifiedMessage, case, identify
from kma.handling.failure import failure
from kma.logs import logger
from kma.spool.journal import FINISHED, IDENTITY, STARTED, Journal, JournalDamaged, Totals, UnfinishedHandling
from kma.spool.ledger import Ledger, Progress, StoredRun, run_key
from kma.spool.minute import OpenMinute
from kma.spool.records import New, Spool
from kma.standalone.attempt import SLOT
from kma.standalone.lease import Lease

DIED = "kma died"
DIED_TEXT = "The KMA ended while it processed this message."
COMMITTED_TEXT = "The KMA ended while it processed this message, after the COMMIT: the message is accepted."


def recover_all(folder: Path, spool: Spool, ledger: Ledger) -> Counter[str]:
    """Every journal in the folder; answers how many attempts of each setting have failed by it. No run may be
    alive."""
    died = Counter[str]()
    for path in sorted(folder.glob("*.journal")):
        died += recover(path, spool, ledger)
    end_left_open(spool, ledger)
    return died


def recover(path: Path, spool: Spool, ledger: Ledger) -> Counter[str]:
    """One journal, which is gone afterwards. Killed in between and done again, nothing is written twice: the
    protocols have the record ids of their slots, and a failure is added to the totals in the transaction of
    its protocol."""
    log = logger(journal=path.name)
    try:
        journal = Journal.open(path)
    except OSError as error:
        # Of the disk or of this process, not of the file: what it knows is told at a later start.
        log.error("journal cannot be opened; kept for the next start", error=str(error))
        return Counter()
    except JournalDamaged as error:
        # Cut short by a power cut: nothing can be known from it.
        log.error("journal cannot be read", error=str(error))
        path.rename(path.with_suffix(f".damaged-{time.time_ns()}"))
        return Counter()
    try:
        return _recover(journal, path, spool, ledger)
    finally:
        journal.close()


def _recover(journal: Journal, path: Path, spool: Spool, ledger: Ledger) -> Counter[str]:
    about = journal.about()
    run = load(RecordRun, about["run"])
    key = run_key(run.activation, run.epoch)
    stored = ledger.open_run(key, {"run": about["run"]})
    standalone = is_standalone(about)
    starts = [] if standalone and lapsed(journal) else list(journal.unfinished())
    told = totals_of(journal, stored) if standalone else journal.totals()
    carried = after_kill(ledger.carried(run.setting), told)
    records: list[New] = []
    attempts: list[tuple[str, str, int]] = []
    for start in starts:
        identified = _identified(start, tuple(about["masked"]))
        message = identified.record(
            queue=about["queue"],
            destination=about["destination"],
            count=start.delivery_count,
            attempt=start.attempt,
        )
        ending = _ending(start, identified, carried.successes, STANDALONE_DIED if standalone else DIED_TEXT)
        for number, content in enumerate(after_failure(run, message, ending)):
            if start.committed and isinstance(content, Protocol):
                content = replace(content, counted=False)  # the death of a KMA counts for nobody
            records.append(New(key, content, derived_id(start.record, number)))
        if identified.key.text and not identified.key.weak and not start.committed:
            attempts.append((run.setting, case(identified), start.attempt))
    died = not (standalone and lapsed(journal))
    records += open_figures(journal, run, key, spool.knows, died=died)
    fresh = sum(not spool.knows(start.record) for start in starts)
    totals = Totals(
        handled=max(told.handled, stored.totals.handled),
        failed=stored.totals.failed + fresh,
        temporary=stored.totals.temporary,
        restarts=max(told.restarts + 1, stored.totals.restarts),
        successes=carried.successes,
        since=carried.failures,
    )
    progress = Progress(key, run.setting, totals, carried, stored.interrupted)
    spool.append(records, attempts=attempts, progress=progress)
    end_left_open(spool, ledger, key)
    if standalone:
        close_ended(journal, about, run, key, spool, ledger)
    path.unlink()
    if starts:
        logger(activation=str(run.activation), setting=run.setting).error(DIED, messages=len(starts))
    return Counter({run.setting: fresh})


def open_figures(
    journal: Journal, run: RecordRun, key: str, knows: Callable[[UUID], bool], *, died: bool
) -> list[New]:
    """Of the minute that was open, with the ends that nobody counted; nothing where there are none. `knows`:
    whether a record is stored. `died`: what had begun has failed. Killed in here and done again: what was
    counted says so, and figures that are stored are not stored again."""
    minute = OpenMinute.found(journal)
    if minute is None:
        return []
    try:
        if knows(minute.id):
            minute.begin(minute.seen)
        minute.count_left(died=died)
        return [] if minute.empty else [New(key, minute.figures(run, minute.seen), minute.id)]
    finally:
        minute.close()


def _ending(
    start: UnfinishedHandling, identified: IdentifiedMessage, successes: int, text: str
) -> FailureContext:
    return FailureContext(
        outcome=Outcome.RAISED_AFTER_COMMIT if start.committed else Outcome.KMA_DIED,
        failure=failure(DIED, COMMITTED_TEXT if start.committed else text),
        attempt=start.attempt,
        max_attempts=0,
        successes_before=successes,
        process_id=start.pid,
        seconds=0.0,
        at=datetime.fromtimestamp(start.started_at, UTC),
        traceparent=identified.traceparent,
    )


def _identified(start: UnfinishedHandling, masked: tuple[str, ...]) -> IdentifiedMessage:
    if start.content != IDENTITY:
        return identify(start.data, masked)
    values = version_3.message(json.loads(start.data))
    return IdentifiedMessage(**{**values, "key": MessageKey(**values["key"])})


# -- standalone agents: whether the run is over --------------------------------------------------------------
# A message that was at hand comes again from its broker. A standalone agent would simply be started again,
# so a run that has ended is closed before anybody can do that.


STANDALONE_DIED = "The KMA ended while the agent ran."


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
