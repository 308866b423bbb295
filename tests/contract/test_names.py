"""Which properties belong to a message itself, and what the queues of a setting are called."""

import pytest

from contract.names import ahead_queue, belongs_to_identity, dead_letter_queue, hold_queue, subscription_of


@pytest.mark.parametrize(
    ("name", "belongs"),
    [
        ("customer", True), ("ma_letter", True), ("", True), ("Destination", True), ("my_AMQ_", True),
        ("destination", False), ("receipt", False), ("_AMQ_", False), ("_AMQ_ORIG_QUEUE", False),
        ("JMSXDeliveryCount", False), ("JMSXGroupID", False), ("JMSCorrelationID", True),
    ],
)  # fmt: skip
def test_what_the_way_adds_does_not_belong_to_the_message(name: str, belongs: bool) -> None:
    assert belongs_to_identity(name) is belongs


def test_a_setting_has_a_queue_for_its_dead_letters_and_one_for_what_is_held_back() -> None:
    assert (dead_letter_queue("orders"), hold_queue("orders")) == ("DLQ.orders", "MA.hold.orders")
    assert (subscription_of(ahead_queue("orders")), subscription_of("orders")) == ("orders", "orders")
