"""What the end of a handling means: the table of the specification (contract/outcomes) turned into records,
settlements and counts. Nothing is stored or settled here: a `Batch` says what must be, in which order.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from broker.port import Settle
from contract.messages import DesiredRun
from contract.outcomes import RULES, Disposition, Outcome, Settlement, attempt_number, is_exhausted, is_last
from contract.records import Content, MessageIdentity, RecordRun, derived_id
from kma.delivery.breaker import Counting
from kma.delivery.duplicates import Guard
from kma.delivery.effects import Batch, LazyAccepts
from kma.delivery.exhausted import Exhausted
from kma.delivery.in_flight import Work
from kma.delivery.message_identity import KnownAttempts, delivery_count
from kma.delivery.ordered import Ordered
from kma.delivery.reports import INTERRUPTION, Ending, after_failure, after_success, protocol
from kma.handling.failure import Failure
from kma.handling.handler import Handled
from kma.spool.batch_tables import HandledKeys
from kma.spool.journal import Totals
from kma.spool.ledger import Carried, Progress, run_key
from kma.spool.records import New

SEND_REFUSED = "send refused"


class Settling:
    """The counts of one run and what follows from each ending. One thread."""

    def __init__(
        self,
        run: RecordRun,
        desired: DesiredRun,
        totals: Totals,
        carried: Carried,
        known: KnownAttempts,
        keys: HandledKeys | None = None,
    ) -> None:
        self.run = run
        self._key = run_key(run.activation, run.epoch)
        self._known = known
        self.desired = desired
        self.counting = Counting(run, desired, carried, totals.handled)
        self.handled, self.failed, self.temporary = totals.handled, totals.failed, totals.temporary
        self.batch = Batch()
        self.lazy = LazyAccepts(desired)
        self.exhausted = Exhausted(self, known)
        self.guard = Guard(self, keys, self._key)
        self.ordered = Ordered(desired)
        self.change(desired)

    def change(self, desired: DesiredRun) -> None:
        """Other limits or known attempts, from the next message on."""
        self.desired = self.counting.desired = desired
        self._known.told(desired.known_attempts)
        self.lazy.change(desired)
        self.ordered.change(desired)

    def totals(self, restarts: int) -> Totals:
        counting = self.counting
        return Totals(
            self.handled, self.failed, self.temporary, restarts, counting.successes, counting.failures
        )

    def progress(self, restarts: int) -> Progress:
        counting = self.counting
        return Progress(
            self._key, self.run.setting, self.totals(restarts), counting.carried(), counting.reason
        )

    def take_batch(self) -> Batch:
        batch, self.batch = self.batch, Batch()
        return batch

    # -- before ----------------------------------------------------------------------------------------------

    def receive(self, tag: int, encoded: bytes, life: int, record: bytes) -> Work | None:
        """The message as work, or None when it has no attempt left: then it goes where the setting says."""
        made = delivery_count(encoded)
        attempt = attempt_number(made, self._known.of(encoded))
        work = Work(tag, encoded, made, attempt, record, life, self.desired.masked_properties)
        if self.guard.repeats_one(work):
            self.repeated(work)
            return None
        return self._unless_exhausted(work)

    def again(self, record: bytes) -> Work | None:
        """What was kept in order, for its next attempt, or None as above. Attempts of another holder may have
        become known since it was received."""
        if (given_up := self.ordered.take_given_up()) is not None:
            self._give_up(given_up[0].again(record, given_up[0].attempt), given_up[1])
            return None
        work = self.ordered.take()
        attempt = 1 + max(work.attempt, self._known.of(work.encoded))
        return self._unless_exhausted(work.again(record, attempt))

    def _unless_exhausted(self, work: Work) -> Work | None:
        if self.ordered.stays or not is_exhausted(work.attempt, self.desired.max_attempts):
            return work
        self.exhausted.log(work, "no attempt left: not handled any more")
        if self.exhausted.fate(work) is Disposition.DEAD:
            self.reject(work)
        else:
            self.exhausted.unhandled(work)
        return None

    def _give_up(self, work: Work, failure: Failure) -> None:
        """To the dead letters, whatever the setting says of the last attempt. Its letter is explained by the
        failure that the person saw."""
        noted = Handled(Outcome.NOTED, failure)
        self.note(work, noted, 0, at=datetime.now(UTC), fate=Disposition.DEAD, last=True)
        self.exhausted.log(work, "given up by a person: rejected")
        self.reject(work)

    # -- after -----------------------------------------------------------------------------------------------

    def succeeded(self, work: Work, at: datetime, *, accepted: bool = False) -> None:
        """`accepted`: a transaction has accepted it already."""
        self.handled += 1
        self.counting.succeeded()
        self.guard.handled(work)
        if work.needs_record:
            self._add(work, after_success(self.run, self.message(work), at))
        self.forget(work.encoded)
        if not accepted:
            if work.needs_record:
                self._settle(work.tag, Settle.ACCEPT)
            else:
                self.lazy.add(work.tag)
                self.flush_due()
        self.free(work)

    def repeated(self, work: Work) -> None:
        """What was handled well before is not handled again: its records are those of a message that was."""
        if work.needs_record:
            self._add(work, after_success(self.run, self.message(work), datetime.now(UTC)))
        self.forget(work.encoded)
        self._settle(work.tag, Settle.ACCEPT)

    def flush_due(self) -> None:
        """Acceptances that have waited long enough go with the next batch: in most modes at once."""
        if self.lazy.due:
            self.batch.settlements += self.lazy.take()

    def free(self, work: Work) -> None:
        """Its handling is over: the slot is free once what follows from it is stored."""
        self.guard.over(work)
        if work.slot >= 0:
            self.batch.slots.append(work.slot)
            work.slot = -1

    def failed_with(
        self,
        work: Work,
        handled: Handled,
        *,
        pid: int,
        seconds: float,
        at: datetime,
        gone: bool,
        still_handled: bool = False,
    ) -> None:
        """`gone`: the delivery went with its connection; the exception happened all the same.
        `still_handled`: it was rolled back before its handling is over."""
        rule = RULES[handled.outcome]
        last = self._is_last(work, rule.settlement)
        fate = (
            self.exhausted.fate(work)
            if last and rule.settlement is not Settlement.ACCEPT and not gone
            else None
        )
        ending = self._ending(work, handled, pid=pid, seconds=seconds, at=at, disposition=fate)
        if handled.outcome is Outcome.TEMPORARY:
            self.temporary += 1
        else:
            self.failed += 1
        message = self.message(work)
        self._add(work, after_failure(self.run, message, ending))
        record = UUID(bytes=work.record)
        assert ending.failure is not None
        interruption = self.counting.failed(
            handled.outcome, ending.failure.exception_type, record, at, message
        )
        if interruption is not None:
            self.batch.records.append(New(self._key, interruption, derived_id(record, INTERRUPTION)))
        if not still_handled:
            self.free(work)
        if rule.settlement is Settlement.ACCEPT:
            self.forget(work.encoded)  # a commit has accepted it before
        elif fate not in (None, Disposition.DEAD):
            self.exhausted.begin(work, fate, ending.failure.exception_type, at)
        elif not gone:
            self._settle_failed(work, rule.settlement, ending.failure)

    def note(
        self,
        work: Work,
        handled: Handled,
        number: int,
        *,
        at: datetime,
        pid: int = 0,
        seconds: float = 0.0,
        fate: Disposition | None = None,
        last: bool = False,
    ) -> None:
        """A protocol that counts for nothing: what failed here has its own, or nothing failed. `number` of
        the record among those of this handling. `last`: the message is dead with it."""
        ending = self._ending(work, handled, pid=pid, seconds=seconds, at=at, disposition=fate)
        content = replace(protocol(self.run, self.message(work), ending), counted=False, last_attempt=last)
        self.batch.records.append(New(self._key, content, derived_id(UUID(bytes=work.record), number)))

    def add(self, record: UUID, content: Content) -> None:
        self.batch.records.append(New(self._key, content, record))

    def _ending(
        self,
        work: Work,
        handled: Handled,
        *,
        pid: int,
        seconds: float,
        at: datetime,
        disposition: Disposition | None,
    ) -> Ending:
        return Ending(
            outcome=handled.outcome,
            failure=handled.failure or Failure(handled.outcome.value, ""),
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

    def _is_last(self, work: Work, settlement: Settlement) -> bool:
        if self.ordered.stays:
            return False
        return settlement is Settlement.AFTER_LAST or is_last(work.attempt, self.desired.max_attempts)

    def _settle_failed(self, work: Work, settlement: Settlement, failure: Failure) -> None:
        """The broker counts and delays; where it knows of fewer attempts than we do, the last one is ours to
        end. It may forget, of paged messages when it restarts: what was made is remembered beside the
        protocol."""
        last = self._is_last(work, settlement)
        behind = work.count + 1 < work.attempt
        if last and (behind or settlement is Settlement.AFTER_LAST):
            self.reject(work)
            return
        if self.ordered.on and not last:
            self.ordered.keep(work, failure)
            self.batch.after.append(self.ordered.stored)
        else:
            self._settle(work.tag, Settle.FAIL)
        if last:
            self.forget(work.encoded)
        elif not work.identified.key.weak:
            case = self._known.made(work.encoded, work.attempt)
            self.batch.attempts.append((self.desired.setting, case, work.attempt))

    def reject(self, work: Work) -> None:
        """Dead at once."""
        self._settle(work.tag, Settle.REJECT)
        self.forget(work.encoded)

    def _settle(self, tag: int, settle: Settle) -> None:
        self.batch.settlements.append((tag, settle))

    def forget(self, encoded: bytes) -> None:
        case = self._known.ended(encoded)
        if case is not None:
            self.batch.forget.append((self.desired.setting, case))

    def message(self, work: Work) -> MessageIdentity:
        return work.identified.record(
            queue=self.desired.queue,
            destination=self.desired.destination,
            count=work.count,
            attempt=work.attempt,
        )

    def _add(self, work: Work, contents: Iterable[Content]) -> None:
        record = UUID(bytes=work.record)
        for number, content in enumerate(contents):
            self.batch.records.append(New(self._key, content, derived_id(record, number)))
