"""Loaded by a container under test before anything else: it holds runs around the moment in which the broker
hears that a handling has returned. `TEST_HOLDS` is a folder: `QUEUE.before` or `QUEUE.after` asks for it,
`QUEUE.held` says that it is done, `go` lets all of them go on.
"""

import os
import time
from pathlib import Path
from typing import Any

from broker.amqp.consumer import AmqpConsumer, _Link
from broker.amqp.transactions import Transactions
from broker.port import Settle

FOLDER = Path(os.environ["TEST_HOLDS"])

settle, discharge, ended = AmqpConsumer.settle, Transactions._discharge, _Link._transaction_ended


def hold(consumer: AmqpConsumer, moment: str) -> None:
    queue = consumer.source.partition("::")[2]
    if (FOLDER / f"{queue}.{moment}").exists():
        (FOLDER / f"{queue}.held").touch()
        while not (FOLDER / "go").exists():
            time.sleep(0.01)


def held_settle(self: AmqpConsumer, settlements: Any) -> None:
    accepts = any(how is Settle.ACCEPT for _, how in settlements)
    if accepts:
        hold(self, "before")
    settle(self, settlements)
    if accepts:
        hold(self, "after")


def held_discharge(self: Transactions, work: Any) -> None:
    """Everything is sent within the transaction, nothing is said of its end."""
    hold(self._ended.__self__._consumer, "before")  # type: ignore[attr-defined]
    discharge(self, work)


def held_ended(self: _Link, *outcome: Any) -> None:
    """The broker has confirmed."""
    hold(self._consumer, "after")
    ended(self, *outcome)


AmqpConsumer.settle = held_settle  # type: ignore[method-assign]
Transactions._discharge = held_discharge  # type: ignore[method-assign]
_Link._transaction_ended = held_ended  # type: ignore[assignment,method-assign]
