"""The breaker of one run: what counts, what the counts rest on, and when the run gives up.

Nothing is stored here. What `failed` answers goes into the transaction of the protocol that it was told of,
together with `carried`: so a kill never parts a trip from its cause, nor the counts from the protocols that
made them.
"""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from contract.breaker import Counts, count, may_repeat, trips
from contract.messages import MAX_EVIDENCE, DesiredRun
from contract.outcomes import RULES, Breaker, Outcome
from contract.records import BreakerCounts, Interruption, MessageIdentity, RecordRun
from kma.spool.journal import Totals
from kma.spool.ledger import CarriedCounts

NOBODY = MessageIdentity()  # the message of a standalone agent


class RunBreaker:
    """One thread. `handled`: of this run, also before a restart. `reason`: why it has tripped, empty
    before."""

    def __init__(self, run: RecordRun, desired: DesiredRun, carried: CarriedCounts, handled: int = 0) -> None:
        self._run = run
        self.desired = desired
        self.counts = carried.counts
        self.successes = carried.successes
        self.failures = carried.failures
        self.evidence = carried.evidence
        self.proved = handled > 0
        self.reason = ""

    @property
    def on_trial(self) -> bool:
        """One message at a time, and the first failure that counts trips: nothing has gone well in this run
        yet."""
        return self.desired.trial_first and not self.proved and not self.reason

    def succeeded(self) -> None:
        self.proved = True
        self.successes += 1
        if self.counts.any:
            self.counts, self.evidence = Counts(), ()

    def failed(
        self,
        outcome: Outcome,
        exception_type: str,
        record: UUID,
        at: datetime,
        message: MessageIdentity = NOBODY,
    ) -> Interruption | None:
        """`record`: the id of the failure's protocol. The interruption if the breaker trips with it, once per
        run; handlers at hand go on counting after that."""
        if RULES[outcome].breaker is not Breaker.COUNT:
            return None
        self.successes = 0
        self.failures += 1
        before = self.counts
        self.counts = count(
            before,
            outcome,
            exception_type,
            message_key=message.key if self.desired.count_message_once else "",
            repeats=may_repeat(weak=message.weak, attempt=message.attempt),
        )
        if self.counts == before:
            return None
        self.evidence = (*self.evidence, record)[-MAX_EVIDENCE:]
        reason = None if self.reason else trips(self.counts, self.desired.max_failures, trial=self.on_trial)
        if reason is None:
            return None
        self.reason = reason.value
        told = replace(reported_counts(self.counts), marks=())
        return Interruption(self._run, told, at, self.reason, self.desired.max_failures, self.evidence)

    def carried(self) -> CarriedCounts:
        return CarriedCounts(
            successes=self.successes,
            failures=self.failures,
            activation=str(self._run.activation),
            epoch=self._run.epoch,
            counts=self.counts,
            evidence=self.evidence,
            interrupted=bool(self.reason),
        )


def first_carried(stored: CarriedCounts, desired: DesiredRun) -> CarriedCounts:
    """What a run begins with, of what the setting's last run left on this server.

    The same run, after a restart: all of it. Another epoch after a trip: a person resumed it, so it counts
    from 0. Else what the MA tells, which knows who ran last and where; else this server's own within one
    activation: who enables the setting sets the counts to 0. Successes since the last counted failure are the
    setting's, whatever ran.
    """
    within = stored.activation == str(desired.activation)
    if within and stored.epoch == desired.epoch:
        return stored
    fresh = replace(stored, activation=str(desired.activation), epoch=desired.epoch, interrupted=False)
    told = desired.carried_counts
    if within and stored.interrupted:
        told = BreakerCounts()
    elif told is None and within:
        return fresh
    elif told is None:
        told = BreakerCounts()
    elif replace(told, marks=stored.counts.marks) == reported_counts(stored.counts):
        return fresh  # it was this server that ran last: it knows the evidence too
    return replace(fresh, counts=Counts(told.same_type, told.same, told.any, told.marks), evidence=())


def after_kill(stored: CarriedCounts, totals: Totals) -> CarriedCounts:
    """What the killed run left. `stored` is as of its last record; successes since then stand only in the
    journal's `totals`, and one of them has set the counts to 0. `since` says whether both speak of the same
    last failure: killed between the transaction of a failure and its note in the journal, the journal is the
    older of the two.
    """
    if totals.since != stored.failures or totals.successes <= stored.successes:
        return stored
    return replace(stored, successes=totals.successes, counts=Counts(), evidence=())


def reported_counts(counts: Counts) -> BreakerCounts:
    return BreakerCounts(counts.same_type, counts.same, counts.any, counts.marks)


def final_counts(stored: CarriedCounts, run: RecordRun | DesiredRun) -> BreakerCounts | None:
    """What this run has counted last; None when the setting has run under another activation or epoch here
    since."""
    if (stored.activation, stored.epoch) != (str(run.activation), run.epoch):
        return None
    return reported_counts(stored.counts)
