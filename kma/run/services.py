"""What all runs of one container share, and the record that closes one."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from broker.port import BrokerUnavailable, Consumer, ConsumerEvents, Publisher
from contract.messages import DesiredRun
from contract.records import RecordRun, RunState
from kma.acknowledgement.remote import AnswerRemotely, without_ma
from kma.delivery.breaker import final_counts
from kma.delivery.reports import closing
from kma.spool.ledger import Ledger
from kma.spool.records import New, Spool

Connect = Callable[[DesiredRun, ConsumerEvents], Consumer]


def no_publisher() -> Publisher:
    raise BrokerUnavailable("this container has no broker")


@dataclass(frozen=True, slots=True)
class ContainerServices:
    """What all runs of one container share. `report_now`: a record that must not wait for its turn was
    stored. `publisher` is for what standalone agents send, and message agents beside a transaction;
    `elsewhere` passes answers to deliveries of other runs to the MA."""

    server: str
    spool: Spool
    ledger: Ledger
    journals: Path
    modules: tuple[str, ...]
    connect: Connect
    log_level: str = "INFO"
    report_now: Callable[[], None] = lambda: None
    publisher: Callable[[], Publisher] = no_publisher
    elsewhere: AnswerRemotely = without_ma


def close_run(services: ContainerServices, run: RecordRun, key: str, state: RunState) -> None:
    """The closing record, once. Every other record of the run is in the spool before it."""
    stored = services.ledger.run(key)
    assert stored is not None
    counts = final_counts(services.ledger.carried(run.setting), run)
    record = closing(
        run,
        stored.totals,
        records=stored.records,
        state=state,
        at=datetime.now(UTC),
        counts=counts,
    )
    services.spool.close_run(New(key, record, uuid4()))
