"""Deliveries of the mode CLIENT, from the moment that a message gets its acknowledgement id until both its
handling and its delivery are over. A handling that returns without an answer frees its handler; its delivery
stays open here.

What a kill -9 leaves at each step: kma/acknowledgement/recovery.py.

The event of a rollback goes out after its protocol was stored: before that it could be untrue. It is not
waited for: a destination that takes nothing must not keep the message from coming back. Killed in between,
there is none.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from broker.amqp.codec import decode
from broker.port import Outgoing
from contract import reasons
from contract.acknowledgements import NONCE_BYTES, Action, EndState, make_id, read_id
from contract.messages import Answer, Mode
from contract.outcomes import Outcome
from contract.reasons import Reason
from kma.acknowledgement.open_delivery import Delivery, Dues, Past
from kma.acknowledgement.reporting import WELL, Endings, Words
from kma.children.pool import Asked
from kma.children.worker_slot import Ended
from kma.delivery.in_flight import Work
from kma.delivery.outbox import Departures, Sent
from kma.delivery.settlement import SEND_REFUSED, Settling
from kma.handling.failure import failure
from kma.handling.handler import Handled
from kma.sdk.job import Reply

MOST_OPEN = 1000  # unsettled deliveries of one run, waiting for answers or not


class OpenDeliveries:
    """One thread, the run's. `transact(tag, sends)` begins a transaction, `confirmed` is told its end.
    `reply` answers an agent's question, `elsewhere` passes on one about another run's delivery. `committed`
    is told the slot of one that is accepted while it is handled."""

    def __init__(
        self,
        settling: Settling,
        departures: Departures,
        transact: Callable[[int, Sequence[Outgoing]], None],
        reply: Callable[[Asked, Reply], None],
        elsewhere: Callable[[Asked], None],
        committed: Callable[[int], None],
        log: Any,
    ) -> None:
        self._run = settling.run
        self._words = Words(settling)
        self._endings = Endings(settling, log)
        self._settling = settling
        self._departures = departures
        self._transact = transact
        self._reply = reply
        self._elsewhere = elsewhere
        self._committed = committed
        # Of a run that was wanted without one: its ids are as hard to guess, only the MA cannot prove them.
        self._secret = settling.desired.acknowledgement_secret or os.urandom(32).hex()
        self._all: dict[str, Delivery] = {}
        self._by_tag: dict[int, Delivery] = {}
        self._busy: set[str] = set()
        self._past = Past()
        self._dues = Dues()
        self.waiting = 0  # deliveries whose handling returned and that have no answer yet
        self.stopping = False

    @property
    def busy(self) -> bool:
        """Something is on its way to the broker whose end must be known."""
        return bool(self._busy)

    def widened(self, credit: int, *, on_trial: bool) -> int:
        """Deliveries that may be unsettled at a time: those that wait for answers keep no handler busy."""
        return credit if on_trial or not credit else min(credit + self.waiting, MOST_OPEN)

    def patience(self) -> float:
        """Seconds until the next delivery has waited long enough."""
        return self._dues.patience(time.monotonic())

    # -- what happens to it ----------------------------------------------------------------------------------

    def admit(self, work: Work) -> None:
        """A message was delivered: in the mode CLIENT it gets its id."""
        if self._settling.desired.mode is Mode.CLIENT:
            run, nonce = self._run, os.urandom(NONCE_BYTES)
            work.acknowledgement = make_id(self._secret, run.server, run.activation, run.epoch, nonce)
            self._all[work.acknowledgement] = Delivery(work.acknowledgement, work)

    def ended(self, ended: Ended) -> None:
        """Its handling is over."""
        delivery = self._all.get(ended.work.acknowledgement)
        if delivery is None:
            self._endings.in_vain(ended)
            return
        delivery.ended = ended
        handled = ended.handled
        if delivery.state is EndState.COMMITTED:
            self._after_commit(delivery, ended)
        elif delivery.state is not None:
            self._after_rollback(delivery, ended)
        elif delivery.committing:
            return  # the broker's word first
        elif handled.outcome is Outcome.RELEASED or (handled.outcome is Outcome.RETURNED and self.stopping):
            self._settling.free(ended.work)
            self._drop(delivery, EndState.LOST, reasons.RELEASED())
        elif handled.outcome is Outcome.RETURNED:
            self._depart(delivery, handled) if handled.sends else self._open(delivery)
        else:
            self._fail(delivery, handled, reasons.HANDLING_FAILED())

    def asked(self, asked: Asked) -> None:
        """By an agent of this run, of its own delivery or of any."""
        question = asked.question
        try:
            parts = read_id(question.acknowledgement)
        except ValueError as error:
            self._reply(asked, Reply("", str(error)))
            return
        run = self._run
        if (parts.server, parts.activation, parts.epoch) != (run.server, run.activation, run.epoch):
            self._elsewhere(asked)
            return
        delivery = self._all.get(question.acknowledgement)
        if delivery is None or delivery.state is not None:
            state, reason = self._end_of(question.acknowledgement, delivery)
            self._reply(asked, Reply(state.value, str(reason or f"It is {state.value} already.")))
        elif delivery.action not in (None, question.action):
            self._reply(asked, Reply("", f"It was answered {delivery.action.value} before."))
        else:
            delivery.waiting.append(asked)
            if delivery.action is None:
                own = asked.slot == delivery.work.slot
                delivery.taker = asked if own else None
                self._act(delivery, question.action, question.sends if own else ())

    def answered(self, answer: Answer) -> None:
        """The MA passes an answer on, again and again until it has AcknowledgementEnded."""
        delivery = self._all.get(answer.acknowledgement)
        if delivery is None:
            state, reason = self._end_of(answer.acknowledgement, None)
            self._words.note(answer.acknowledgement, state, reason)
            return
        delivery.from_ma = True
        if delivery.state is not None:
            self._words.note_end(delivery)
        elif delivery.action is None:
            self._act(delivery, answer.action)

    def confirmed(self, tag: int, problem: str | None) -> None:
        """Its transaction has ended."""
        delivery = self._by_tag.pop(tag, None)
        if delivery is None:
            return
        delivery.committing = False
        self._busy.discard(delivery.id)
        ended = delivery.ended
        if problem is None:
            self._end(delivery, EndState.COMMITTED, None)
            if ended is not None:
                self._after_commit(delivery, ended)
            else:
                self._committed(delivery.work.slot)
            self._tell(delivery)
        elif ended is not None and ended.handled.outcome not in WELL:
            self._fail(delivery, ended.handled, reasons.NOT_COMMITTED(detail=problem))
        else:
            handled = Handled(Outcome.RAISED, failure(SEND_REFUSED, problem))
            self._roll_back(delivery, EndState.ROLLED_BACK, handled, reasons.NOT_COMMITTED(detail=problem))

    def sent(self, sent: Sent) -> None:
        """What its handling sent has left, or has not."""
        delivery = self._all.get(sent.acknowledgement)
        if delivery is None or not delivery.departing:
            return
        assert delivery.ended is not None
        delivery.departing = False
        self._busy.discard(delivery.id)
        delivery.ended = replace(delivery.ended, handled=replace(delivery.ended.handled, sends=()))
        if sent.problem:
            outcome = Outcome.TEMPORARY if sent.temporary else Outcome.RAISED
            delivery.ended = replace(
                delivery.ended, handled=Handled(outcome, failure(SEND_REFUSED, sent.problem))
            )
        if delivery.state is EndState.COMMITTED:
            self._after_commit(delivery, delivery.ended)
        elif sent.problem:
            self._fail(delivery, delivery.ended.handled, reasons.SENDS_NOT_TAKEN(detail=sent.problem))
        elif delivery.action is not None:
            self._act(delivery, delivery.action)
        else:
            self._open(delivery)

    def expire(self) -> None:
        for acknowledgement in self._dues.over(time.monotonic()):
            delivery = self._all.get(acknowledgement)
            if delivery is not None and delivery.opened and delivery.action is None:
                reason = reasons.NO_ANSWER(seconds=delivery.seconds)
                handled = Handled(Outcome.UNANSWERED, failure("acknowledgement_timeout", str(reason)))
                self._roll_back(delivery, EndState.EXPIRED, handled, reason)

    def lost(self, reason: Reason) -> None:
        """The connection is gone, or about to be: the broker gives every unsettled message again."""
        for delivery in list(self._all.values()):
            if delivery.state is not None:
                continue  # its handling is under way, or what it sent
            self._end(delivery, EndState.LOST, reasons.IN_DOUBT() if delivery.committing else reason)
            self._tell(delivery)
            if delivery.ended is not None:
                self._endings.in_vain(delivery.ended)
            self._drop(delivery, EndState.LOST, delivery.reason)

    # -- answers ---------------------------------------------------------------------------------------------

    def _act(self, delivery: Delivery, action: Action, sends: Sequence[tuple[str, bytes]] = ()) -> None:
        delivery.action = action
        if delivery.departing:
            return  # first what its handling sent
        if action is Action.COMMIT:
            self._commit(delivery, sends)
        else:
            reason = reasons.ANSWERED_ROLLBACK()
            handled = Handled(Outcome.ROLLED_BACK, failure("rollback", str(reason)))
            self._roll_back(delivery, EndState.ROLLED_BACK, handled, reason)

    def _commit(self, delivery: Delivery, sends: Sequence[tuple[str, bytes]]) -> None:
        tag = delivery.work.tag
        outgoing = [Outgoing(destination, decode(encoded)) for destination, encoded in sends]
        if destination := self._settling.desired.committed_destination:
            outgoing.append(self._words.event(destination, delivery, EndState.COMMITTED, None))
        delivery.committing = True
        self._busy.add(delivery.id)
        self._by_tag[tag] = delivery

        def post() -> None:
            if delivery.committing:
                self._transact(tag, outgoing)

        if delivery.opened:
            self._settling.batch.committing.append(delivery.id)
            self._settling.batch.after.append(post)
        else:
            post()

    def _roll_back(self, delivery: Delivery, state: EndState, handled: Handled, reason: Reason) -> None:
        self._end(delivery, state, reason)
        ended = delivery.ended
        self._endings.failed(delivery, handled, gone=False)
        self._settling.batch.after.append(lambda: self._rolled_back(delivery))
        if ended is not None:
            self._after_rollback(delivery, ended)

    def _rolled_back(self, delivery: Delivery) -> None:
        """Its protocol is stored."""
        assert delivery.state is not None
        if destination := self._settling.desired.rolled_back_destination:
            self._departures.put_event(
                self._words.event(destination, delivery, delivery.state, delivery.reason)
            )
        self._tell(delivery)

    # -- ends ------------------------------------------------------------------------------------------------

    def _open(self, delivery: Delivery) -> None:
        work, now = delivery.work, datetime.now(UTC)
        delivery.seconds = self._words.seconds(delivery)
        delivery.opened = True
        self.waiting += 1
        due = None
        if delivery.seconds:
            due = now + timedelta(seconds=delivery.seconds)
            if len(self._dues) > 4 * MOST_OPEN:
                self._dues.keep(self._all)
            self._dues.add(time.monotonic() + delivery.seconds, delivery.id)
        self._words.note_open(delivery, now, due)
        if not self._settling.exhausted.copies:
            work.lighten()
        self._settling.free(work)

    def _depart(self, delivery: Delivery, handled: Handled) -> None:
        delivery.departing = True
        self._busy.add(delivery.id)
        sends = [Outgoing(destination, decode(encoded)) for destination, encoded in handled.sends]
        self._departures.put(delivery.id, sends)

    def _after_commit(self, delivery: Delivery, ended: Ended) -> None:
        """Committed, and its handling is over."""
        handled = ended.handled
        if handled.outcome in WELL and handled.sends:
            self._depart(delivery, handled)
            return
        if handled.outcome in WELL:
            self._settling.succeeded(delivery.work, datetime.now(UTC), accepted=True)
        else:
            self._endings.failed(delivery, replace(handled, outcome=Outcome.RAISED_AFTER_COMMIT), gone=True)
        self._drop(delivery, EndState.COMMITTED, None)

    def _after_rollback(self, delivery: Delivery, ended: Ended) -> None:
        """Rolled back, and its handling is over. What that raised is told too, and counts for nothing
        more."""
        if ended.handled.outcome not in WELL:
            self._endings.raised_later(delivery, ended)
        self._settling.free(delivery.work)
        assert delivery.state is not None
        self._drop(delivery, delivery.state, delivery.reason)

    def _fail(self, delivery: Delivery, handled: Handled, reason: Reason) -> None:
        """Its handling failed, and nobody had committed it."""
        self._end(delivery, EndState.ROLLED_BACK, reason)
        self._endings.failed(delivery, handled, gone=False)
        self._settling.batch.after.append(lambda: self._tell(delivery))
        self._drop(delivery, EndState.ROLLED_BACK, reason)

    def _end(self, delivery: Delivery, state: EndState, reason: Reason | None) -> None:
        delivery.state, delivery.reason = state, reason
        if delivery.opened or delivery.from_ma:
            self._words.note_end(delivery)

    def _drop(self, delivery: Delivery, state: EndState, reason: Reason | None) -> None:
        del self._all[delivery.id]
        self._by_tag.pop(delivery.work.tag, None)
        self._busy.discard(delivery.id)
        delivery.committing = False
        self.waiting -= delivery.opened
        self._past.add(delivery, state, reason)

    # -- who is told -----------------------------------------------------------------------------------------

    def _end_of(self, acknowledgement: str, delivery: Delivery | None) -> tuple[EndState, Reason | None]:
        if delivery is not None and delivery.state is not None:
            return delivery.state, delivery.reason
        return self._past.of(acknowledgement) or (EndState.LOST, reasons.NOT_OPEN())

    def _tell(self, delivery: Delivery) -> None:
        assert delivery.state is not None
        for asked in delivery.waiting:
            self._reply(
                asked, Reply(delivery.state.value, str(delivery.reason or ""), taken=asked is delivery.taker)
            )
        delivery.waiting.clear()
