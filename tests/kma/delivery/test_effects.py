"""What follows from endings, as values: adding them loses nothing, and a transaction is posted only while its
message waits for it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from broker.amqp.codec import decode
from broker.port import Outgoing, Settle
from contract import reasons
from contract.acknowledgements import Action, EndState
from contract.messages import Answer, Mode
from contract.outcomes import AfterLast, Disposition, Outcome
from contract.records import RecordRun
from kma.acknowledgement.open_deliveries import OpenDeliveries
from kma.children.worker_slot import HandlingEnd
from kma.delivery.effects import Effects, RunFacts, Transaction
from kma.delivery.exhausted import Exhausted
from kma.delivery.in_flight import InFlight
from kma.delivery.message_identity import KnownAttempts
from kma.delivery.settlement import DeliverySettler
from kma.handling.failure import failure
from kma.handling.handler import RETURNED, HandlingResult
from kma.logs import logger
from kma.sdk.job import AgentQuestion, Question, Reply
from kma.spool.journal import Totals
from kma.spool.ledger import CarriedCounts, run_key
from kma.spool.records import New
from tests.kma.fakes import message, wanted

DESIRED = wanted(mode=Mode.CLIENT, acknowledgement_secret="5e" * 32, rolled_back_destination="demo.events")
RUN = RecordRun(DESIRED.setting, DESIRED.activation, DESIRED.epoch, "srv-1", DESIRED.agent)
GOOD = message({"do": "ok"}, identity="ID:1")
LOST = reasons.CONNECTION_LOST()
FAILED = HandlingResult(Outcome.RAISED, failure("KeyError", "sku"))


@dataclass
class Acts:
    """Keeps what was done at once."""

    transactions: list[Transaction] = field(default_factory=list)
    departed: list[str] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    passed_on: list[AgentQuestion] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)

    def transact(self, transaction: Transaction) -> None:
        self.transactions.append(transaction)

    def depart(self, acknowledgement: str, messages: Sequence[Outgoing]) -> None:
        self.departed.append(acknowledgement)

    def reply(self, asked: AgentQuestion, reply: Reply) -> None:
        self.replies.append(reply)

    def pass_on(self, asked: AgentQuestion) -> None:
        self.passed_on.append(asked)

    def accepted(self, slot: int) -> None:
        self.slots.append(slot)

    def failed(self, slot: int) -> None:
        self.failures.append(slot)


def settling(**changed: Any) -> DeliverySettler:
    return DeliverySettler(RUN, replace(DESIRED, **changed), Totals(), CarriedCounts(), KnownAttempts({}))


def deliveries(rules: DeliverySettler) -> tuple[OpenDeliveries, Acts]:
    acts = Acts()
    return OpenDeliveries(rules, acts, logger()), acts


def waiting(rules: DeliverySettler, opened: OpenDeliveries, tag: int = 1) -> InFlight:
    """A delivery whose handling returned unanswered."""
    work, instead = rules.receive(tag, GOOD, 0, uuid4().bytes)
    assert instead is None
    opened.admit(work)
    work.slot = tag
    effects = opened.ended(HandlingEnd(work, RETURNED))
    assert [type(new.content).__name__ for new in effects.records] == ["AcknowledgementOpened"]
    assert effects.slots == [tag]
    return work


def test_adding_effects_leaves_none_out_and_keeps_their_order() -> None:
    question = AgentQuestion(1, 0, 1, Question("id", Action.COMMIT, 1.0))
    new = New("run", None, UUID(int=1))  # type: ignore[arg-type]  # is only passed on
    sent = Outgoing("demo.orders", decode(GOOD))
    values: dict[str, list[Any]] = {
        "records": [new],
        "attempts": [("orders", "ID:1", 1)],
        "forget": [("orders", "ID:1")],
        "committing": ["id"],
        "settlements": [(1, Settle.FAIL)],
        "transactions": [Transaction(1)],
        "events": [sent],
        "replies": [(question, Reply("committed"))],
        "slots": [7],
    }
    assert values.keys() == {each.name for each in fields(Effects)}
    effects = Effects()
    assert not effects
    for name, value in values.items():
        assert Effects(**{name: list(value)}), f"{name} alone is something to do"
        stored = name in ("records", "attempts", "forget", "committing")
        assert Effects(**{name: list(value)}).must_be_stored is stored
        effects += Effects(**{name: list(value)})
    effects += Effects(slots=[8])
    assert {each.name: getattr(effects, each.name) for each in fields(Effects)} == {**values, "slots": [7, 8]}
    effects.lose_connection()
    assert not effects.settlements and not effects.transactions, "the tags are gone with it"
    assert effects.records and effects.replies and effects.slots


def test_a_message_that_left_with_its_connection_wants_no_transaction() -> None:
    desired = replace(DESIRED, after_last=AfterLast.DISCARD)
    exhausted = Exhausted(RunFacts(RUN, run_key(RUN.activation, RUN.epoch), desired), KnownAttempts({}))
    work = InFlight(5, GOOD, 2, 3, uuid4().bytes, 0, ())

    def begun() -> Transaction:
        now = datetime.now(UTC)
        (transaction,) = exhausted.begin(work, Disposition.DISCARDED, "KeyError", now).transactions
        return transaction

    first = begun()
    assert exhausted.wants(first)
    exhausted.lost()
    assert not exhausted.wants(first) and not exhausted.busy
    second = begun()
    assert exhausted.wants(second) and not exhausted.wants(first), "its tag is another delivery's now"


def test_a_delivery_that_is_lost_before_its_commit_was_posted_wants_it_no_more() -> None:
    rules = settling()
    opened, acts = deliveries(rules)
    work = waiting(rules, opened)
    effects = opened.answered(Answer(work.acknowledgement, Action.COMMIT))
    assert effects.committing == [work.acknowledgement] and not acts.transactions, (
        "the disk has its mark first"
    )
    (transaction,) = effects.transactions
    assert opened.wants(transaction)
    opened.lost(LOST)
    assert not opened.wants(transaction) and not opened.busy
    again = waiting(rules, opened)
    (other,) = opened.answered(Answer(again.acknowledgement, Action.COMMIT)).transactions
    assert opened.wants(other) and not opened.wants(transaction), "its tag is another delivery's now"


def test_nobody_hears_of_a_rollback_before_it_is_stored() -> None:
    rules = settling()
    opened, acts = deliveries(rules)
    work, _ = rules.receive(1, GOOD, 0, uuid4().bytes)
    opened.admit(work)
    work.slot = 3
    asked = AgentQuestion(1, 3, 1, Question(work.acknowledgement, Action.ROLLBACK, 1.0))
    effects = opened.asked(asked)
    assert acts == Acts(), "nothing is done at once"
    assert effects.settlements == [(1, Settle.FAIL)] and effects.slots == [], "its handling goes on"
    assert [new.content.outcome for new in effects.records] == ["rolled_back"]  # type: ignore[union-attr]
    assert [event.destination for event in effects.events] == ["demo.events"]
    reply = Reply(EndState.ROLLED_BACK.value, effects.replies[0][1].reason, taken=True)
    assert effects.replies == [(asked, reply)]
    over = opened.ended(HandlingEnd(work, RETURNED))
    assert over.slots == [3] and not over.must_be_stored


@pytest.mark.parametrize("problem", [None, "the address takes nothing"])
def test_the_slot_of_a_handling_says_what_the_broker_made_of_it_before_anything_follows(
    problem: str | None,
) -> None:
    rules = settling()
    opened, acts = deliveries(rules)
    work, _ = rules.receive(1, GOOD, 0, uuid4().bytes)
    opened.admit(work)
    work.slot = 3
    opened.asked(AgentQuestion(1, 3, 1, Question(work.acknowledgement, Action.COMMIT, 1.0)))
    assert opened.ended(HandlingEnd(work, RETURNED)) == Effects(), "the broker's word first"
    effects = opened.confirmed(1, problem)
    assert (acts.slots, acts.failures) == (([], [3]) if problem else ([3], []))
    assert effects.slots == [3] and bool(effects.records) is bool(problem)


@pytest.mark.parametrize("count", [0, 2])
def test_a_failure_is_stored_with_its_settlement_and_what_is_known_of_its_attempts(count: int) -> None:
    rules = settling(mode=Mode.AUTO)
    work, instead = rules.receive(1, message({"do": "raise"}, count=count, identity="ID:2"), 0, uuid4().bytes)
    assert instead is None
    work.slot = 4
    effects = rules.failed_with(work, FAILED, pid=1, seconds=0.1, at=datetime.now(UTC), gone=False)
    last = count == 2
    assert effects.settlements == [(1, Settle.FAIL)] and effects.slots == [4]
    assert effects.attempts == ([] if last else [("orders", "ID:2", 1)])
    assert rules.failed == 1 and [new.content.last_attempt for new in effects.records] == [last]  # type: ignore[union-attr]
