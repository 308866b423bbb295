"""Deliveries of the mode CLIENT, from the moment that a message gets its acknowledgement id until both its
handling and its delivery are over. A handling that returns without an answer frees its handler; its delivery
stays open here.

What a kill -9 leaves at each step: kma/acknowledgement/reporting.py.

The event of a rollback goes out after its protocol was stored: before that it could be untrue. It is not
waited for: a destination that takes nothing must not keep the message from coming back. Killed in between,
there is none.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from contract import reasons
from contract.acknowledgements import NONCE_BYTES, Action, EndState, make_id, read_id
from contract.messages import Answer, Mode
from contract.outcomes import Outcome
from contract.reasons import Reason
from kma.acknowledgement.open_delivery import Acts, Deadlines, EndedDeliveries, OpenDelivery
from kma.acknowledgement.reporting import WELL, AcknowledgementRecords, FailedHandlings
from kma.children.worker_slot import HandlingEnd
from kma.delivery.effects import Effects, Transaction
from kma.delivery.in_flight import InFlight
from kma.delivery.outbox import SendResult
from kma.delivery.settlement import SEND_REFUSED, DeliverySettler
from kma.handling.failure import failure
from kma.handling.handler import HandlingResult
from kma.sdk.job import AgentQuestion, Reply

MOST_OPEN = 1000  # unsettled deliveries of one run, waiting for answers or not


class OpenDeliveries:
    """One thread, the run's. What is done at once goes through `acts`; the rest is answered as effects: it
    waits until the disk has what must be there before it."""

    def __init__(self, settler: DeliverySettler, acts: Acts, log: Any) -> None:
        self._run = settler.run
        self._records = AcknowledgementRecords(settler)
        self._failed_handlings = FailedHandlings(settler, log)
        self._settler = settler
        self._acts = acts
        # Of a run that was wanted without one: its ids are as hard to guess, only the MA cannot prove them.
        self._secret = settler.desired.acknowledgement_secret or os.urandom(32).hex()
        self._all: dict[str, OpenDelivery] = {}
        self._by_tag: dict[int, OpenDelivery] = {}
        self._busy: set[str] = set()
        self._ended_deliveries = EndedDeliveries()
        self._deadlines = Deadlines()
        self.waiting = 0  # deliveries whose handling returned and that have no answer yet
        self.stopping = False

    @property
    def busy(self) -> bool:
        """Something is on its way to the broker whose end must be known."""
        return bool(self._busy)

    def widened(self, credit: int, *, on_trial: bool) -> int:
        """Deliveries that may be unsettled at a time: those that wait for answers keep no handler busy."""
        return credit if on_trial or not credit else min(credit + self.waiting, MOST_OPEN)

    def seconds_until_due(self) -> float:
        """Seconds until the next delivery has waited long enough."""
        return self._deadlines.seconds_until_due(time.monotonic())

    # -- what happens to it ----------------------------------------------------------------------------------

    def admit(self, work: InFlight) -> None:
        """A message was delivered: in the mode CLIENT it gets its id."""
        if self._settler.desired.mode is Mode.CLIENT:
            run, nonce = self._run, os.urandom(NONCE_BYTES)
            work.acknowledgement = make_id(self._secret, run.server, run.activation, run.epoch, nonce)
            self._all[work.acknowledgement] = OpenDelivery(work.acknowledgement, work)

    def ended(self, ended: HandlingEnd) -> Effects:
        """Its handling is over."""
        delivery = self._all.get(ended.work.acknowledgement)
        if delivery is None:
            return self._failed_handlings.in_vain(ended)
        delivery.ended = ended
        handled = ended.handled
        if delivery.state is EndState.COMMITTED:
            return self._after_commit(delivery, ended)
        if delivery.state is not None:
            return self._after_rollback(delivery, ended)
        if delivery.committing:
            return Effects()  # the broker's word first
        if handled.outcome is Outcome.RELEASED or (handled.outcome is Outcome.RETURNED and self.stopping):
            self._drop(delivery, EndState.LOST, reasons.RELEASED())
            return self._settler.free(ended.work)
        if handled.outcome is Outcome.RETURNED:
            return self._depart(delivery, handled) if handled.sends else self._open(delivery)
        return self._fail(delivery, handled, reasons.HANDLING_FAILED())

    def asked(self, asked: AgentQuestion) -> Effects:
        """By an agent of this run, of its own delivery or of any."""
        question = asked.question
        try:
            parts = read_id(question.acknowledgement)
        except ValueError as error:
            self._acts.reply(asked, Reply("", str(error)))
            return Effects()
        run = self._run
        if (parts.server, parts.activation, parts.epoch) != (run.server, run.activation, run.epoch):
            self._acts.pass_on(asked)
            return Effects()
        delivery = self._all.get(question.acknowledgement)
        if delivery is None or delivery.state is not None:
            state, reason = self._end_of(question.acknowledgement, delivery)
            self._acts.reply(
                asked, Reply(state.value, str(reason or f"The delivery is {state.value} already."))
            )
        elif delivery.action not in (None, question.action):
            self._acts.reply(
                asked, Reply("", f"The delivery was already answered with {delivery.action.value}.")
            )
        else:
            delivery.waiting.append(asked)
            if delivery.action is None:
                own = asked.slot == delivery.work.slot
                delivery.taker = asked if own else None
                return self._act(delivery, question.action, question.sends if own else ())
        return Effects()

    def answered(self, answer: Answer) -> Effects:
        """The MA passes an answer on, again and again until it has AcknowledgementEnded."""
        delivery = self._all.get(answer.acknowledgement)
        if delivery is None:
            state, reason = self._end_of(answer.acknowledgement, None)
            return self._records.note(answer.acknowledgement, state, reason)
        delivery.from_ma = True
        if delivery.state is not None:
            return self._records.note_end(delivery)
        return self._act(delivery, answer.action) if delivery.action is None else Effects()

    def confirmed(self, tag: int, problem: str | None) -> Effects:
        """Its transaction has ended."""
        delivery = self._by_tag.pop(tag, None)
        if delivery is None:
            return Effects()
        delivery.committing = False
        self._busy.discard(delivery.id)
        ended = delivery.ended
        if problem is None:
            self._acts.accepted(delivery.work.slot)
            effects = self._end(delivery, EndState.COMMITTED, None)
            if ended is not None:
                effects += self._after_commit(delivery, ended)
            self._tell(delivery)
            return effects
        self._acts.failed(delivery.work.slot)
        reason = reasons.NOT_COMMITTED(detail=problem)
        if ended is not None and ended.handled.outcome not in WELL:
            return self._fail(delivery, ended.handled, reason)
        handled = HandlingResult(Outcome.RAISED, failure(SEND_REFUSED, problem))
        return self._roll_back(delivery, EndState.ROLLED_BACK, handled, reason)

    def sent(self, sent: SendResult) -> Effects:
        """What its handling sent has left, or has not."""
        delivery = self._all.get(sent.acknowledgement)
        if delivery is None or not delivery.departing:
            return Effects()
        assert delivery.ended is not None
        delivery.departing = False
        self._busy.discard(delivery.id)
        delivery.ended = replace(delivery.ended, handled=replace(delivery.ended.handled, sends=()))
        if sent.problem:
            self._acts.failed(delivery.work.slot)
            outcome = Outcome.TEMPORARY if sent.temporary else Outcome.RAISED
            delivery.ended = replace(
                delivery.ended, handled=HandlingResult(outcome, failure(SEND_REFUSED, sent.problem))
            )
        if delivery.state is EndState.COMMITTED:
            return self._after_commit(delivery, delivery.ended)
        if sent.problem:
            return self._fail(delivery, delivery.ended.handled, reasons.SENDS_NOT_TAKEN(detail=sent.problem))
        if delivery.action is not None:
            return self._act(delivery, delivery.action)
        return self._open(delivery)

    def expire(self) -> Effects:
        effects = Effects()
        for acknowledgement in self._deadlines.over(time.monotonic()):
            delivery = self._all.get(acknowledgement)
            if delivery is not None and delivery.opened and delivery.action is None:
                reason = reasons.NO_ANSWER(seconds=delivery.seconds)
                handled = HandlingResult(Outcome.UNANSWERED, failure("acknowledgement_timeout", str(reason)))
                effects += self._roll_back(delivery, EndState.EXPIRED, handled, reason)
        return effects

    def lost(self, reason: Reason) -> Effects:
        """The connection is gone, or about to be: the broker gives every unsettled message again."""
        effects = Effects()
        for delivery in list(self._all.values()):
            if delivery.state is not None:
                continue  # its handling is under way, or what it sent
            effects += self._end(
                delivery, EndState.LOST, reasons.IN_DOUBT() if delivery.committing else reason
            )
            self._tell(delivery)
            if delivery.ended is not None:
                effects += self._failed_handlings.in_vain(delivery.ended)
            self._drop(delivery, EndState.LOST, delivery.reason)
        return effects

    def wants(self, transaction: Transaction) -> bool:
        """Whether its delivery still waits for it: not where it is lost since `answered` or `asked`."""
        delivery = self._by_tag.get(transaction.tag)
        return delivery is not None and delivery.committing and delivery.transaction is transaction

    # -- answers ---------------------------------------------------------------------------------------------

    def _act(
        self, delivery: OpenDelivery, action: Action, sends: Sequence[tuple[str, bytes]] = ()
    ) -> Effects:
        delivery.action = action
        if delivery.departing:
            return Effects()  # first what its handling sent
        if action is Action.COMMIT:
            return self._commit(delivery, sends)
        reason = reasons.ANSWERED_ROLLBACK()
        handled = HandlingResult(Outcome.ROLLED_BACK, failure("rollback", str(reason)))
        return self._roll_back(delivery, EndState.ROLLED_BACK, handled, reason)

    def _commit(self, delivery: OpenDelivery, sends: Sequence[tuple[str, bytes]]) -> Effects:
        """A delivery that waits is marked on the disk first: killed after that, its end says that it may be
        committed. One whose handling is under way needs no mark: its slot says so much."""
        outgoing = self._settler.outgoing(delivery.work, sends)
        if destination := self._settler.desired.committed_destination:
            outgoing.append(self._records.event(destination, delivery, EndState.COMMITTED, None))
        transaction = Transaction(delivery.work.tag, tuple(outgoing))
        delivery.committing, delivery.transaction = True, transaction
        self._busy.add(delivery.id)
        self._by_tag[transaction.tag] = delivery
        if delivery.opened:
            return Effects(committing=[delivery.id], transactions=[transaction])
        self._acts.transact(transaction)
        return Effects()

    def _roll_back(
        self, delivery: OpenDelivery, state: EndState, handled: HandlingResult, reason: Reason
    ) -> Effects:
        effects = self._end(delivery, state, reason)
        effects += self._failed_handlings.failed(delivery, handled, gone=False)
        if destination := self._settler.desired.rolled_back_destination:
            effects.events.append(self._records.event(destination, delivery, state, reason))
        effects.replies += self._replies(delivery)
        if delivery.ended is not None:
            effects += self._after_rollback(delivery, delivery.ended)
        return effects

    # -- ends ------------------------------------------------------------------------------------------------

    def _open(self, delivery: OpenDelivery) -> Effects:
        work, now = delivery.work, datetime.now(UTC)
        delivery.seconds, effects = self._records.seconds(delivery)
        delivery.opened = True
        self.waiting += 1
        due = None
        if delivery.seconds:
            due = now + timedelta(seconds=delivery.seconds)
            if len(self._deadlines) > 4 * MOST_OPEN:
                self._deadlines.keep(self._all)
            self._deadlines.add(time.monotonic() + delivery.seconds, delivery.id)
        effects += self._records.note_open(delivery, now, due)
        if not self._settler.exhausted.copies:
            work.lighten()
        effects += self._settler.free(work)
        return effects

    def _depart(self, delivery: OpenDelivery, handled: HandlingResult) -> Effects:
        delivery.departing = True
        self._busy.add(delivery.id)
        self._acts.depart(delivery.id, self._settler.outgoing(delivery.work, handled.sends))
        return Effects()

    def _after_commit(self, delivery: OpenDelivery, ended: HandlingEnd) -> Effects:
        """Committed, and its handling is over."""
        handled = ended.handled
        if handled.outcome in WELL and handled.sends:
            return self._depart(delivery, handled)
        if handled.outcome in WELL:
            effects = self._settler.succeeded(delivery.work, datetime.now(UTC), accepted=True)
        else:
            late = replace(handled, outcome=Outcome.RAISED_AFTER_COMMIT)
            effects = self._failed_handlings.failed(delivery, late, gone=True)
        self._drop(delivery, EndState.COMMITTED, None)
        return effects

    def _after_rollback(self, delivery: OpenDelivery, ended: HandlingEnd) -> Effects:
        """Rolled back, and its handling is over. What that raised is told too, and counts for nothing
        more."""
        effects = self._settler.free(delivery.work)
        if ended.handled.outcome not in WELL:
            effects += self._failed_handlings.raised_later(delivery, ended)
        assert delivery.state is not None
        self._drop(delivery, delivery.state, delivery.reason)
        return effects

    def _fail(self, delivery: OpenDelivery, handled: HandlingResult, reason: Reason) -> Effects:
        """Its handling failed, and nobody had committed it."""
        effects = self._end(delivery, EndState.ROLLED_BACK, reason)
        effects += self._failed_handlings.failed(delivery, handled, gone=False)
        effects.replies += self._replies(delivery)
        self._drop(delivery, EndState.ROLLED_BACK, reason)
        return effects

    def _end(self, delivery: OpenDelivery, state: EndState, reason: Reason | None) -> Effects:
        delivery.state, delivery.reason = state, reason
        told = delivery.opened or delivery.from_ma
        return self._records.note_end(delivery) if told else Effects()

    def _drop(self, delivery: OpenDelivery, state: EndState, reason: Reason | None) -> None:
        del self._all[delivery.id]
        self._by_tag.pop(delivery.work.tag, None)
        self._busy.discard(delivery.id)
        delivery.committing = False
        self.waiting -= delivery.opened
        self._ended_deliveries.add(delivery, state, reason)

    # -- who is told -----------------------------------------------------------------------------------------

    def _end_of(self, acknowledgement: str, delivery: OpenDelivery | None) -> tuple[EndState, Reason | None]:
        if delivery is not None and delivery.state is not None:
            return delivery.state, delivery.reason
        return self._ended_deliveries.of(acknowledgement) or (EndState.LOST, reasons.NOT_OPEN())

    def _tell(self, delivery: OpenDelivery) -> None:
        for asked, reply in self._replies(delivery):
            self._acts.reply(asked, reply)

    def _replies(self, delivery: OpenDelivery) -> list[tuple[AgentQuestion, Reply]]:
        """To who waits, of an end that is known. Whoever asks later is answered at once."""
        assert delivery.state is not None
        state, reason = delivery.state.value, str(delivery.reason or "")
        waiting, delivery.waiting = delivery.waiting, []
        return [(asked, Reply(state, reason, taken=asked is delivery.taker)) for asked in waiting]
