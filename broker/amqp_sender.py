"""Sending encoded messages over a link: what the publisher and the consumer's transactions share."""

from typing import Any

from proton import Delivery, Disposition, Sender

from broker.amqp_connection import refusal
from broker.errors import AccessRefused, BrokerError, BrokerUnavailable

# States of a delivery (AMQP 1.0 part 4, section 4.5): what was sent or taken within a transaction.
TRANSACTIONAL = 0x34
ACCEPTED = 0x24


def transfer(sender: Sender, encoded: bytes, tag: int, transaction: Any = None) -> Delivery:
    """Hands one message to the engine; the link must have credit. Its outcome comes as a DELIVERY event."""
    delivery = sender.delivery(str(tag))
    sender.stream(encoded)
    sender.advance()
    if transaction is not None:
        delivery.local.data = [transaction]
        delivery.update(TRANSACTIONAL)
    return delivery


def problem_of(delivery: Delivery) -> BrokerError | None:
    """Why the broker did not take the message, None when it did. Call it when the delivery is settled."""
    state = delivery.remote_state
    if state == Delivery.ACCEPTED:
        return None
    if state == TRANSACTIONAL:
        return (
            None if _accepted_within(delivery.remote) else BrokerUnavailable("not taken into the transaction")
        )
    if state == Delivery.REJECTED:
        error = refusal(delivery.remote.condition, "the broker rejected the message")
        return AccessRefused(str(error)) if "permission=" in str(error) else error
    return BrokerUnavailable(f"the broker did not take the message: state {int(state)}")


def _accepted_within(remote: Disposition) -> bool:
    data: Any = remote.data
    if not data or len(data) < 2 or data[1] is None:
        return True  # no provisional outcome: it is decided by the commit
    return data[1].descriptor in (ACCEPTED, "amqp:accepted:list")
