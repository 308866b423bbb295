"""Deliveries that waited for an answer when their run went without a word: they are lost, and the MA is told
so.

What a kill -9 of this process finds and leaves, at each step:

before the handling ended: its slot is STARTED, the next start writes the protocol `kma died`; the message
comes
    back, or was committed from within: then it is accepted, and once that was confirmed the protocol says so.
after it returned, before what it sent is published: nothing was sent, the message comes back, no attempt is
spent.
after that, before AcknowledgementOpened is stored: it comes back, and what it sends then is sent a second
time.
after that, until an answer: the row in the spool's file becomes an AcknowledgementEnded `lost`; it comes
back.
COMMIT, before the row is marked `committing`: the same; the MA's answer finds `lost`.
after the mark, before the broker confirmed, or before AcknowledgementEnded is stored: it is committed with
the event
    and what was sent with it, or comes back without any of that; `lost` with a reason that says so.
ROLLBACK or no answer in time, before its protocol is stored: as without an answer: no attempt is counted.
after that, before the settlement: protocol and AcknowledgementEnded are there, the message comes back; the
attempt is
    counted by the broker or not.
"""

from datetime import UTC, datetime
from uuid import UUID, uuid5

from contract import reasons
from contract.acknowledgements import EndState, IdParts
from contract.reasons import Reason
from contract.records import AcknowledgementEnded, RecordRun
from contract.wire import load
from kma.spool.ledger import Ledger, run_key
from kma.spool.records import New, Spool

_ENDINGS = UUID("6f1d7c1e-52a4-4a0e-9d0c-2b7a3a1f5c11")


def ended_id(acknowledgement: str) -> UUID:
    """Of the one AcknowledgementEnded that a server ever stores of a delivery."""
    return uuid5(_ENDINGS, acknowledgement)


def end_left_open(spool: Spool, ledger: Ledger, run: str = "") -> int:
    """Writes the ends of what an earlier life left open, of one run (its key) or of all; answers how many.
    None of these runs may be alive. Killed in between and done again, nothing is written twice: a row goes
    with its record."""
    left = [row for row in spool.open_acknowledgements() if not run or row.run == run]
    records = []
    for row in left:
        stored = ledger.run(row.run)
        assert stored is not None  # a run with something open has sent no closing record, so its row is kept
        reason = reasons.CONTAINER_ENDED_IN_DOUBT() if row.committing else reasons.CONTAINER_ENDED()
        about = load(RecordRun, stored.about["run"])
        records.append(_ended(row.run, about, row.acknowledgement, reason))
    if records:
        spool.append(records)
    return len(records)


def end_unknown(spool: Spool, ledger: Ledger, acknowledgement: str, parts: IdParts) -> None:
    """An answer for a run that is not alive here: told once, however often the MA passes it on."""
    if spool.knows(ended_id(acknowledgement)):
        return
    key = run_key(parts.activation, parts.epoch)
    stored = ledger.run(key)
    if stored is not None:
        about = load(RecordRun, stored.about["run"])
    else:
        about = RecordRun("", parts.activation, parts.epoch, parts.server, "")
    spool.append([_ended(key, about, acknowledgement, reasons.NOT_OPEN())])


def _ended(key: str, run: RecordRun, acknowledgement: str, reason: Reason) -> New:
    content = AcknowledgementEnded(run, acknowledgement, EndState.LOST, reason, datetime.now(UTC))
    return New(key, content, ended_id(acknowledgement))
