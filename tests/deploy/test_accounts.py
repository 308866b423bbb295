"""What each broker account may do, and what it may not, tried on the real broker over STOMP and AMQP."""

import json
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import stomp
from proton import Message
from proton.reactor import Copy
from proton.utils import BlockingConnection, LinkDetached

from tests.deploy.management import Management, StompClient
from tests.services import Account, ArtemisService

ADDRESS, QUEUE = "accounts.orders", "accounts-one"


@pytest.fixture(scope="module")
def ops(artemis: ArtemisService) -> Iterator[Management]:
    """The operations account, with one address and subscription made by it."""
    with Management(artemis, artemis.ops) as management:
        assert management.call("broker", "createAddress", ADDRESS, "MULTICAST")[0]
        wish = {"name": QUEUE, "address": ADDRESS, "routing-type": "MULTICAST", "durable": True}
        assert management.call("broker", "createQueue", json.dumps(wish), True)[0]
        yield management
        management.call("broker", "destroyQueue", QUEUE)


def amqp(broker: ArtemisService, account: Account) -> BlockingConnection:
    return BlockingConnection(broker.amqp_url, user=account.user, password=account.password, timeout=20)


def depth(ops: Management, queue: str) -> int:
    worked, count = ops.attribute(f"queue.{queue}", "messageCount")
    assert worked
    return int(count)


def comes_to(ops: Management, queue: str, count: int) -> bool:
    """A receipt may arrive shortly before the queue counts the message."""
    deadline = time.monotonic() + 10
    while depth(ops, queue) != count and time.monotonic() < deadline:
        time.sleep(0.05)
    return depth(ops, queue) == count


# -- who gets in


def test_a_wrong_password_does_not_get_in(artemis: ArtemisService) -> None:
    with pytest.raises(stomp.exception.ConnectFailedException):
        StompClient(artemis, Account("kma", "wrong"))


@pytest.mark.parametrize("user", ["unused", "ma-cluster", "ACTIVEMQ.CLUSTER.ADMIN.USER"])
def test_no_built_in_account_gets_in(artemis: ArtemisService, user: str) -> None:
    with pytest.raises(stomp.exception.ConnectFailedException):
        StompClient(artemis, Account(user, "CHANGE ME!!"))


# -- publisher


def test_the_publisher_sends(artemis: ArtemisService, ops: Management) -> None:
    before = depth(ops, QUEUE)
    with StompClient(artemis, artemis.publisher) as client:
        assert client.send(ADDRESS, persistent="true")[0] == "receipt"
    assert comes_to(ops, QUEUE, before + 1)


def test_the_publisher_does_not_consume(artemis: ArtemisService, ops: Management) -> None:
    with StompClient(artemis, artemis.publisher) as client:
        kind, _ = client.subscribe(f"{ADDRESS}::{QUEUE}")
        assert kind == "error"
    with (
        closing(amqp(artemis, artemis.publisher)) as connection,
        pytest.raises(LinkDetached, match="CONSUME"),
    ):
        connection.create_receiver(f"{ADDRESS}::{QUEUE}")


def test_the_publisher_does_not_send_to_the_dead_letters(artemis: ArtemisService, ops: Management) -> None:
    with StompClient(artemis, artemis.publisher) as client:
        assert client.send("MA.DLA")[0] == "error"


def test_the_publisher_is_told_of_a_mistyped_address(artemis: ArtemisService, ops: Management) -> None:
    with StompClient(artemis, artemis.publisher) as client:
        assert client.send("accounts.ordesr")[0] == "error"


# -- KMA


def test_the_kma_consumes_and_sends(artemis: ArtemisService, ops: Management) -> None:
    with closing(amqp(artemis, artemis.kma)) as connection:
        connection.create_sender(ADDRESS).send(Message("one", durable=True))
        receiver = connection.create_receiver(f"{ADDRESS}::{QUEUE}")
        receiver.receive(timeout=20)
        receiver.accept()


def test_a_mistyped_address_is_refused_for_the_kma(artemis: ArtemisService, ops: Management) -> None:
    with (
        closing(amqp(artemis, artemis.kma)) as connection,
        pytest.raises(LinkDetached, match="amqp:not-found"),
    ):
        connection.create_sender("accounts.ordesr")


def test_the_kma_neither_reads_nor_writes_the_dead_letters(artemis: ArtemisService, ops: Management) -> None:
    with closing(amqp(artemis, artemis.kma)) as connection:
        with pytest.raises(LinkDetached, match="CONSUME"):
            connection.create_receiver("MA.DLA::DLQ.feed")
        with pytest.raises(LinkDetached, match="SEND"):
            connection.create_sender("MA.DLA")


def test_neither_the_kma_nor_the_publisher_manages(artemis: ArtemisService, ops: Management) -> None:
    question = {"_AMQ_ResourceName": "broker", "_AMQ_Attribute": "version", "destination-type": "ANYCAST"}
    answers = {}
    for account in (artemis.kma, artemis.publisher, artemis.ops):
        with StompClient(artemis, account) as client:
            answers[account.user] = client.send("activemq.management", "[]", **question)[0]
    assert answers == {"kma": "error", "publisher": "error", "ma-ops": "receipt"}


# -- MA operations


def test_operations_provision(artemis: ArtemisService, ops: Management) -> None:
    policy = {"deadLetterAddress": "MA.DLA", "maxDeliveryAttempts": 3, "redeliveryDelay": 100}
    assert ops.call("broker", "addAddressSettings", ADDRESS, json.dumps(policy))[0]
    worked, found = ops.call("broker", "getAddressSettingsAsJSON", ADDRESS)
    assert worked and policy.items() <= json.loads(found).items()
    change = {
        "name": QUEUE,
        "address": ADDRESS,
        "routing-type": "MULTICAST",
        "durable": True,
        "exclusive": False,
    }
    assert ops.call("broker", "updateQueue", json.dumps(change))[0]


def test_operations_remove_a_queue(ops: Management) -> None:
    wish = {"name": "accounts-two", "address": ADDRESS, "routing-type": "MULTICAST", "durable": True}
    assert ops.call("broker", "createQueue", json.dumps(wish), True)[0]
    assert ops.call("broker", "destroyQueue", "accounts-two")[0]
    assert not ops.attribute("queue.accounts-two", "messageCount")[0]


def test_operations_move_messages_between_queues(artemis: ArtemisService, ops: Management) -> None:
    letters = {"name": "DLQ.accounts", "address": "MA.DLA", "routing-type": "MULTICAST", "durable": True}
    assert ops.call("broker", "createQueue", json.dumps(letters), True)[0]
    with closing(amqp(artemis, artemis.ops)) as connection:
        connection.create_sender("MA.DLA::DLQ.accounts").send(Message("letter", durable=True))
    before = depth(ops, QUEUE)
    assert comes_to(ops, "DLQ.accounts", 1)
    assert ops.call("queue.DLQ.accounts", "moveMessages", 100, "", QUEUE, False, 1) == (True, 1)
    assert comes_to(ops, "DLQ.accounts", 0) and comes_to(ops, QUEUE, before + 1)
    assert ops.call("broker", "destroyQueue", "DLQ.accounts")[0]


def test_operations_read_what_the_pages_show(ops: Management) -> None:
    for resource, name in (
        ("broker", "version"),
        ("broker", "addressMemoryUsage"),
        ("broker", "diskStoreUsage"),
    ):
        assert ops.attribute(resource, name)[0], name
    for name in ("numberOfMessages", "numberOfPages", "addressSize"):
        assert ops.attribute("address.MA.DLA", name)[0], name


def test_operations_browse_without_consuming(artemis: ArtemisService, ops: Management) -> None:
    with closing(amqp(artemis, artemis.ops)) as connection:
        before = depth(ops, QUEUE)
        connection.create_sender(ADDRESS).send(Message("seen", durable=True))
        assert comes_to(ops, QUEUE, before + 1)
        connection.create_receiver(f"{ADDRESS}::{QUEUE}", options=Copy()).receive(timeout=20)
    assert depth(ops, QUEUE) == before + 1


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("addUser", ("intruder", "x", "ma-ops", True)),
        ("removeUser", ("kma",)),
        ("resetUser", ("kma", "x", "ma-ops", True)),
        ("addSecuritySettings", ("#", *["ma-ops"] * 10)),
        ("deleteAddress", (ADDRESS,)),
        ("createDivert", ("{}",)),
        ("forceFailover", ()),
    ],
)
def test_operations_do_not_change_accounts_rights_or_the_broker(
    ops: Management, operation: str, arguments: tuple[object, ...]
) -> None:
    worked, reason = ops.call("broker", operation, *arguments)
    assert not worked
    assert f"does not have permission='EDIT' on address mops.broker.{operation}" in reason


# -- the log


def test_a_dead_letter_s_properties_are_not_in_the_broker_s_log(
    artemis: ArtemisService, ops: Management
) -> None:
    with closing(amqp(artemis, artemis.kma)) as connection:
        before = depth(ops, "DLQ.feed")
        secret = Message("one", durable=True, properties={"card": "4111-in-the-log"})
        connection.create_sender(ADDRESS).send(secret)
        receiver = connection.create_receiver(f"{ADDRESS}::{QUEUE}")
        while receiver.receive(timeout=20).properties is None:
            receiver.accept()
        receiver.reject()
    assert comes_to(ops, "DLQ.feed", before + 1)
    log = artemis.log.read_text()
    assert "Server is now active" in log
    assert "4111-in-the-log" not in log
