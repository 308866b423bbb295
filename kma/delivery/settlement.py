"""What the end of a handling means: the table of the specification (contract/outcomes) turned into records,
settlements and counts. Nothing is stored or settled here: `Effects` say what must be, in which order.

A count changes here at once, its record and the progress that tells it are stored together: whoever gets
effects keeps them with those that are pending before anything of them is stored.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from broker.port import Outgoing, Settle
from contract.messages import DesiredRun
from contract.outcomes import RULES, Disposition, Outcome, Settlement, attempt_number, is_exhausted, is_last
from contract.records import REFUSED, Content, MessageIdentity, RecordRun, derived_id
from kma.delivery.breaker import RunBreaker
from kma.delivery.duplicates import DuplicateGuard
from kma.delivery.effects import BatchedAccepts, Effects, RunFacts
from kma.delivery.ending_records import INTERRUPTION, FailureContext, after_failure, after_success, protocol
from kma.delivery.exhausted import EXHAUSTED, NOT_TAKEN, UNHANDLED, Exhausted
from kma.delivery.in_flight import InFlight, OrderedRetry
from kma.delivery.message_identity import KnownAttempts, delivery_count
from kma.delivery.trace import Trace, TracedHandling, context_of, outgoing, traced
from kma.handling.failure import FailureDetails, failure
from kma.handling.handler import HandlingResult
from kma.spool.file import HandledKeys
from kma.spool.journal import Totals
from kma.spool.ledger import CarriedCounts, Progress, run_key
from kma.spool.records import New

SEND_REFUSED = "send refused"


class DeliverySettler:
    """The counts of one run and what follows from each ending. One thread."""

    def __init__(
        self,
        run: RecordRun,
        desired: DesiredRun,
        totals: Totals,
        carried: CarriedCounts,
        known: KnownAttempts,
        keys: HandledKeys | None = None,
    ) -> None:
        self.facts = RunFacts(run, run_key(run.activation, run.epoch), desired)
        self._known = known
        self.counting = RunBreaker(run, desired, carried, totals.handled)
        self.handled, self.failed, self.temporary = totals.handled, totals.failed, totals.temporary
        self.accepts = BatchedAccepts(desired)
        self.exhausted = Exhausted(self.facts, known)
        self.guard = DuplicateGuard(self.facts, keys)
        self.ordered = OrderedRetry(desired)
        self.trace: Trace | None = None  # who is told of each handling
        self.change(desired)

    @property
    def run(self) -> RecordRun:
        return self.facts.run

    @property
    def desired(self) -> DesiredRun:
        return self.facts.desired

    def change(self, desired: DesiredRun) -> None:
        """Other limits or known attempts, from the next message on."""
        self.facts.desired = self.counting.desired = desired
        self._known.told(desired.known_attempts)
        self.accepts.change(desired)
        self.ordered.change(desired)

    def totals(self, restarts: int) -> Totals:
        counting = self.counting
        return Totals(
            self.handled, self.failed, self.temporary, restarts, counting.successes, counting.failures
        )

    def progress(self, restarts: int) -> Progress:
        counting = self.counting
        return Progress(
            self.facts.key, self.run.setting, self.totals(restarts), counting.carried(), counting.reason
        )

    def traced(self, work: InFlight, handled: HandlingResult, began: float) -> TracedHandling:
        """A handling that began then (seconds since 1970) and is over."""
        return traced(self.facts, work, handled, began, time.time())

    def outgoing(self, work: InFlight, sends: Iterable[tuple[str, bytes]]) -> list[Outgoing]:
        """What the agent sent while it handled this message."""
        return outgoing(sends, work, context_of(self.run.setting, work) if self.trace is not None else None)

    def stored(self) -> None:
        """Everything that was said before is on the disk."""
        self.guard.stored()
        self.ordered.stored()

    # -- before ----------------------------------------------------------------------------------------------

    def receive(
        self, tag: int, encoded: bytes, connection_number: int, record: bytes
    ) -> tuple[InFlight, Effects | None]:
        """The message as work, and what follows where it is not to be handled: it is a repeat, or has no
        attempt left and goes where the setting says."""
        made = delivery_count(encoded)
        attempt = attempt_number(made, self._known.of(encoded))
        work = InFlight(
            tag, encoded, made, attempt, record, connection_number, self.desired.masked_properties
        )
        instead = self.repeated(work)
        return work, self._exhausted(work) if instead is None else instead

    def again(self, record: bytes) -> tuple[InFlight, Effects | None]:
        """What was kept in order, for its next attempt, and what follows where there is none. Attempts of
        another holder may have become known since it was received."""
        if (given_up := self.ordered.take_given_up()) is not None:
            work = given_up[0].again(record, given_up[0].attempt)
            return work, self._give_up(work, given_up[1])
        kept = self.ordered.take()
        work = kept.again(record, 1 + max(kept.attempt, self._known.of(kept.encoded)))
        return work, self._exhausted(work)

    def repeated(self, work: InFlight) -> Effects | None:
        """What follows where the message is a repeat; None where it is none. What was handled well before is
        not handled again: its records are those of a message that was."""
        if not self.guard.repeats_one(work):
            return None
        effects = Effects(settlements=[(work.tag, Settle.ACCEPT)], forget=self._forgotten(work))
        if work.needs_record:
            effects.records = self._records(
                work, after_success(self.run, self.message(work), datetime.now(UTC))
            )
        return effects

    def _exhausted(self, work: InFlight) -> Effects | None:
        if self.ordered.stays or not is_exhausted(work.attempt, self.desired.max_attempts):
            return None
        self.exhausted.log(work, "no attempt left: not processed again")
        disposition = self.exhausted.disposition(work)
        if disposition is Disposition.DEAD:
            return self._reject(work)
        # It came once more after its last attempt: whoever had it then could not end it.
        now = datetime.now(UTC)
        noted = HandlingResult(Outcome.NOTED, failure(EXHAUSTED, UNHANDLED))
        effects = self.note(work, noted, 0, at=now, disposition=disposition)
        effects += self.exhausted.begin(work, disposition, EXHAUSTED, now)
        return effects

    def _give_up(self, work: InFlight, failure: FailureDetails) -> Effects:
        """To the dead letters, whatever the setting says of the last attempt. Its letter is explained by the
        failure that the person saw."""
        noted = HandlingResult(Outcome.NOTED, failure)
        effects = self.note(work, noted, 0, at=datetime.now(UTC), disposition=Disposition.DEAD, last=True)
        effects += self._reject(work)
        self.exhausted.log(work, "moved to the DLQ by an operator: rejected")
        return effects

    # -- after -----------------------------------------------------------------------------------------------

    def succeeded(self, work: InFlight, at: datetime, *, accepted: bool = False) -> Effects:
        """`accepted`: a transaction has accepted it already."""
        self.handled += 1
        self.counting.succeeded()
        self.guard.handled(work)
        effects = Effects(forget=self._forgotten(work), slots=self._freed(work))
        recorded = work.needs_record
        if recorded:
            effects.records = self._records(work, after_success(self.run, self.message(work), at))
        if not accepted:
            if recorded:
                effects.settlements.append((work.tag, Settle.ACCEPT))
            else:
                self.accepts.add(work.tag)
                if self.accepts.due:
                    effects.settlements += self.accepts.take()
        return effects

    def due_accepts(self) -> Effects:
        """Acceptances that have waited long enough: in most modes all of them, at once."""
        return Effects(settlements=self.accepts.take()) if self.accepts.due else Effects()

    def free(self, work: InFlight) -> Effects:
        """Its handling is over: the slot is free once what follows from it is stored."""
        return Effects(slots=self._freed(work))

    def confirmed(self, tag: int, problem: str | None) -> Effects | None:
        """A transaction has ended; None: it was not that of a message without an attempt left."""
        leaving = self.exhausted.ended(tag)
        if leaving is None:
            return None
        work = leaving.work
        if problem is None:
            discarded = leaving.disposition is Disposition.DISCARDED
            self.exhausted.log(work, "message discarded" if discarded else "message set aside")
            return Effects(forget=self._forgotten(work))
        noted = HandlingResult(Outcome.NOTED, failure(NOT_TAKEN, self.exhausted.refusal(problem)))
        effects = self.note(work, noted, REFUSED, at=datetime.now(UTC), disposition=Disposition.DEAD)
        effects += self._reject(work)
        self.exhausted.log(work, "disposition refused: rejected", problem=problem)
        return effects

    def failed_with(
        self,
        work: InFlight,
        handled: HandlingResult,
        *,
        pid: int,
        seconds: float,
        at: datetime,
        gone: bool,
        still_handled: bool = False,
    ) -> Effects:
        """`gone`: the delivery went with its connection; the exception happened all the same.
        `still_handled`: it was rolled back before its handling is over."""
        rule = RULES[handled.outcome]
        last = self._is_last(work, rule.settlement)
        disposition = (
            self.exhausted.disposition(work)
            if last and rule.settlement is not Settlement.ACCEPT and not gone
            else None
        )
        ending = self._ending(work, handled, pid=pid, seconds=seconds, at=at, disposition=disposition)
        if handled.outcome is Outcome.TEMPORARY:
            self.temporary += 1
        else:
            self.failed += 1
        message = self.message(work)
        effects = Effects(records=self._records(work, after_failure(self.run, message, ending)))
        record = UUID(bytes=work.record)
        assert ending.failure is not None
        interruption = self.counting.failed(
            handled.outcome, ending.failure.exception_type, record, at, message
        )
        if interruption is not None:
            effects.records.append(self.record(derived_id(record, INTERRUPTION), interruption))
        if not still_handled:
            effects.slots = self._freed(work)
        if rule.settlement is Settlement.ACCEPT:
            effects.forget = self._forgotten(work)  # a commit has accepted it before
        elif disposition is not None and disposition is not Disposition.DEAD:
            effects += self.exhausted.begin(work, disposition, ending.failure.exception_type, at)
        elif not gone:
            effects += self._settle_failed(work, rule.settlement, ending.failure)
        return effects

    def note(
        self,
        work: InFlight,
        handled: HandlingResult,
        number: int,
        *,
        at: datetime,
        pid: int = 0,
        seconds: float = 0.0,
        disposition: Disposition | None = None,
        last: bool = False,
    ) -> Effects:
        """A protocol that counts for nothing: what failed here has its own, or nothing failed. `number` of
        the record among those of this handling. `last`: the message is dead with it."""
        ending = self._ending(work, handled, pid=pid, seconds=seconds, at=at, disposition=disposition)
        content = replace(protocol(self.run, self.message(work), ending), counted=False, last_attempt=last)
        return Effects(records=[self.record(derived_id(UUID(bytes=work.record), number), content)])

    def record(self, record: UUID, content: Content) -> New:
        return New(self.facts.key, content, record)

    def _ending(
        self,
        work: InFlight,
        handled: HandlingResult,
        *,
        pid: int,
        seconds: float,
        at: datetime,
        disposition: Disposition | None,
    ) -> FailureContext:
        return FailureContext(
            outcome=handled.outcome,
            failure=handled.failure or FailureDetails(handled.outcome.value, ""),
            attempt=work.attempt,
            max_attempts=self.desired.max_attempts,
            successes_before=self.counting.successes,
            process_id=pid,
            seconds=seconds,
            at=at,
            traceparent=work.identified.traceparent,
            disposition=disposition.value if disposition else "",
            stays=self.ordered.stays,
        )

    def _is_last(self, work: InFlight, settlement: Settlement) -> bool:
        if self.ordered.stays:
            return False
        return settlement is Settlement.AFTER_LAST or is_last(work.attempt, self.desired.max_attempts)

    def _settle_failed(self, work: InFlight, settlement: Settlement, failure: FailureDetails) -> Effects:
        """The broker counts and delays; where it knows of fewer attempts than we do, the last one is ours to
        end. It may forget, of paged messages when it restarts: what was made is remembered beside the
        protocol."""
        last = self._is_last(work, settlement)
        behind = work.count + 1 < work.attempt
        if last and (behind or settlement is Settlement.AFTER_LAST):
            return self._reject(work)
        effects = Effects()
        if self.ordered.on and not last:
            self.ordered.keep(work, failure)
        else:
            effects.settlements.append((work.tag, Settle.FAIL))
        if last:
            effects.forget = self._forgotten(work)
        elif not work.identified.key.weak:
            case = self._known.made(work.encoded, work.attempt)
            effects.attempts.append((self.desired.setting, case, work.attempt))
        return effects

    def _reject(self, work: InFlight) -> Effects:
        """Dead at once."""
        return Effects(settlements=[(work.tag, Settle.REJECT)], forget=self._forgotten(work))

    def _forgotten(self, work: InFlight) -> list[tuple[str, str]]:
        """Its attempts need not be known any more."""
        case = self._known.ended(work.encoded)
        return [] if case is None else [(self.desired.setting, case)]

    def _freed(self, work: InFlight) -> list[int]:
        self.guard.over(work)
        slot, work.slot = work.slot, -1
        return [slot] if slot >= 0 else []

    def message(self, work: InFlight) -> MessageIdentity:
        return work.identified.record(
            queue=self.desired.queue,
            destination=self.desired.destination,
            count=work.count,
            attempt=work.attempt,
        )

    def _records(self, work: InFlight, contents: Iterable[Content]) -> list[New]:
        record = UUID(bytes=work.record)
        return [self.record(derived_id(record, number), content) for number, content in enumerate(contents)]
