"""What only the STOMP side has: transactions of texts, management of the real broker."""

import threading

import pytest

from broker.port import (
    AccessRefused,
    Account,
    AddressUnknown,
    BodyKind,
    BrokerError,
    BrokerTimeout,
    BrokerUnavailable,
    ManagementFailed,
    Message,
    Outgoing,
    Settle,
)
from broker.stomp.client import StompManagement, StompPublisher
from contract.typed import Typed
from tests.broker.houses import RealHouse, eventually, text_message

TEXT = "Привет, 世界 😀\nline: two\\"


def test_a_text_arrives_as_a_jms_text_message_with_its_properties(real: RealHouse) -> None:
    setting = real.setting()
    publisher = StompPublisher(real.stomp_publishing)
    properties = {"kind": Typed("string", TEXT), "odd:name": Typed("string", "x"), "n": Typed("int", 5)}
    message = text_message(
        TEXT,
        properties=properties,
        correlation_id=Typed("string", "c-1"),
        reply_to="reply.here",
        subject="type",
        priority=7,
    )
    publisher.publish(
        [Outgoing(setting.address, message), Outgoing(f"{setting.address}::{setting.key}", message)]
    )
    publisher.close()
    _, owner = real.consume(setting)
    for _ in range(2):
        got = owner.got().message
        assert (got.body, got.annotations["x-opt-jms-msg-type"].value) == (Typed("string", TEXT), 5)
        assert (got.properties["kind"].value, got.properties["odd:name"].value) == (TEXT, "x")
        assert got.properties["n"] == Typed("string", "5")
        assert (got.correlation_id, got.reply_to, got.subject) == (
            Typed("string", "c-1"),
            "reply.here",
            "type",
        )
        assert (got.priority, got.durable) == (7, True)


def test_bytes_and_an_empty_text_arrive(real: RealHouse) -> None:
    setting = real.setting()
    publisher = StompPublisher(real.stomp_publishing)
    body = bytes(range(256))
    publisher.publish(
        [
            Outgoing(setting.address, Message(body=Typed("binary", body), body_kind=BodyKind.DATA)),
            Outgoing(setting.address, text_message("")),
        ]
    )
    publisher.close()
    _, owner = real.consume(setting)
    assert owner.got().message.body == Typed("binary", body)
    assert owner.got().message.body == Typed("string", "")


def test_a_transaction_with_an_unknown_address_sends_nothing(real: RealHouse) -> None:
    setting = real.setting()
    publisher = StompPublisher(real.stomp_publishing)
    for destination in ("nobody.made.this", f"{setting.address}::nobody"):
        many = [Outgoing(setting.address, text_message(str(number))) for number in range(50)]
        with pytest.raises(AddressUnknown):
            publisher.publish([*many, Outgoing(destination, text_message("x")), *many])
    with pytest.raises(AccessRefused):
        publisher.publish(
            [Outgoing(setting.address, text_message("x")), Outgoing("MA.DLA", text_message("x"))]
        )
    publisher.publish([Outgoing(setting.address, text_message("goes on"))])
    publisher.close()
    _, owner = real.consume(setting)
    assert owner.got().text == "goes on"
    assert real.figures(setting).added == 1


def test_thousands_go_in_transactions_of_a_thousand(real: RealHouse) -> None:
    setting = real.setting()
    publisher = StompPublisher(real.stomp_publishing)
    publisher.publish([Outgoing(setting.address, text_message("x")) for _ in range(2500)])
    publisher.close()
    eventually(lambda: real.figures(setting).messages == 2500)


@pytest.mark.parametrize(
    "message",
    [
        text_message("a text with \0"),
        Message(body=Typed("int", 5)),
        Message(body=Typed("list", ()), body_kind=BodyKind.SEQUENCE),
        text_message("x", properties={"p": Typed("string", "\ud83d")}),
        text_message("half \ud83d"),
        text_message("x", properties={"p": Typed("string", "with \0")}),
    ],
)
def test_what_stomp_would_harm_is_refused_before_anything_is_sent(real: RealHouse, message: Message) -> None:
    setting = real.setting()
    publisher = StompPublisher(real.stomp_publishing)
    with pytest.raises(ValueError):
        publisher.publish(
            [Outgoing(setting.address, text_message("first")), Outgoing(setting.address, message)]
        )
    publisher.close()
    assert real.figures(setting).added == 0


def test_a_publisher_that_lost_its_connection_makes_a_new_one(real: RealHouse) -> None:
    setting = real.setting()
    publisher = StompPublisher(real.stomp_publishing)
    publisher.publish([Outgoing(setting.address, text_message("a"))])
    real.kill()
    real.restart()
    publisher.publish([Outgoing(setting.address, text_message("b"))])
    publisher.close()
    eventually(lambda: real.figures(setting).messages == 2)


def test_an_error_of_an_operation_is_told_in_the_brokers_words_and_the_connection_stays(
    real: RealHouse,
) -> None:
    with pytest.raises(ManagementFailed, match="AMQ229017"):
        real.management.call("broker", "destroyQueue", "nobody-made-this")
    with pytest.raises(ManagementFailed):
        real.management.attribute("queue.nobody-made-this", "MessageCount")
    with pytest.raises(ManagementFailed):
        real.management.call("broker", "noSuchOperation", 1)
    assert real.management.attribute("broker", "Version") == "2.56.0"


def test_operations_that_the_account_has_no_right_to_are_refused(real: RealHouse) -> None:
    for operation, arguments in (
        ("addUser", ("x", "y", "z", False)),
        ("removeUser", ("kma",)),
        ("forceFailover", ()),
    ):
        with pytest.raises(ManagementFailed, match="permission"):
            real.management.call("broker", operation, *arguments)


def test_threads_share_one_management_connection(real: RealHouse) -> None:
    wrong: list[object] = []

    def ask(number: int) -> None:
        for _ in range(30):
            name, wanted = (("Version", "2.56.0"), ("Started", True), ("Active", True))[number % 3]
            if real.management.attribute("broker", name) != wanted:
                wrong.append(name)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_two_processes_with_one_reply_address_do_not_take_each_others_replies(real: RealHouse) -> None:
    others = [StompManagement(real.stomp_ops, "MA.reply.shared") for _ in range(3)]
    for _ in range(20):
        assert {other.attribute("broker", "Version") for other in others} == {"2.56.0"}
    for other in others:
        other.close()
    again = StompManagement(real.stomp_ops, "MA.reply.shared")
    for _ in range(10):
        assert again.attribute("broker", "Version") == "2.56.0"
        again.close()


@pytest.mark.parametrize("who", ["kma", "publisher"])
def test_only_the_ops_account_may_manage(real: RealHouse, who: str) -> None:
    account = real.service.accounts[who]
    management = StompManagement(
        Account(real.service.stomp_address, account.user, account.password), "MA.reply.forbidden"
    )
    with pytest.raises(AccessRefused):
        management.attribute("broker", "Version")


def test_a_wrong_password_is_refused_and_never_shown(real: RealHouse) -> None:
    account = Account(real.service.stomp_address, "ma-ops", "not-the-password")
    for ask in (
        lambda: StompManagement(account, "MA.reply.x").attribute("broker", "Version"),
        lambda: StompPublisher(account).publish([Outgoing("x", text_message("x"))]),
    ):
        with pytest.raises(AccessRefused) as caught:
            ask()
        assert "not-the-password" not in f"{caught.value!r} {account!r}"


def test_a_port_where_nobody_answers_is_unavailable(real: RealHouse) -> None:
    for address in ("127.0.0.1:1", real.service.amqp_url.removeprefix("amqp://")):
        with pytest.raises((BrokerUnavailable, BrokerTimeout)):
            StompManagement(Account(address, "x", "y"), "MA.reply.x").attribute("broker", "Version")


def test_an_operation_with_a_long_answer_and_one_with_a_long_question(real: RealHouse) -> None:
    assert "DLQ.feed" in real.management.attribute("broker", "QueueNames")
    setting = real.setting()
    with pytest.raises(BrokerError):
        real.management.call(
            f"queue.{setting.key}", "moveMessages", 1, " OR ".join(["x = 'ж'"] * 5000), "no", False, 1
        )


def test_what_stomp_sent_can_be_settled_like_anything_else(real: RealHouse) -> None:
    setting = real.setting(attempts=2)
    publisher = StompPublisher(real.stomp_publishing)
    publisher.publish([Outgoing(setting.address, text_message("poison"))])
    publisher.close()
    consumer, owner = real.consume(setting)
    for count in range(2):
        got = owner.got()
        assert got.count == count
        consumer.settle([(got.tag, Settle.FAIL)])
    letter = real.until_dead(setting, 1)[0]
    assert letter.properties["_AMQ_ORIG_QUEUE"] == Typed("string", setting.key)
    assert letter.properties["_AMQ_ORIG_MESSAGE_ID"].type == "long"
