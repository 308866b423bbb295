"""Broker connections over TLS: who is believed, who is let in, and what is said where not."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher
from broker.port import AccessRefused, Account, BrokerError, BrokerUnavailable, Outgoing, Settle
from broker.stomp.client import StompManagement, StompPublisher
from contract.encryption import SYSTEM, TlsFiles
from deploy.services.ports import free_ports
from tests.broker.houses import Owner, RealHouse, text_message
from tests.services import ArtemisService
from tests.tls import Authority

Connect = Callable[[Account], None]
LARGE = "x" * 3_000_000


@pytest.fixture
def real(tls_artemis: ArtemisService) -> Iterator[RealHouse]:
    house = RealHouse(tls_artemis)
    yield house
    house.close()


@pytest.fixture
def authority(tls_artemis: ArtemisService) -> Authority:
    assert tls_artemis.authority is not None
    return tls_artemis.authority


def over_amqp(account: Account) -> None:
    with closing(AmqpPublisher(account)) as publisher:
        publisher.publish([Outgoing("nowhere", text_message("x"))])


def over_stomp(account: Account) -> None:
    with closing(StompManagement(account, f"MA.reply.tls-{uuid4()}")) as management:
        management.attribute("broker", "Version")


@pytest.fixture(params=["amqp", "stomp"])
def ways(request: pytest.FixtureRequest, real: RealHouse) -> tuple[Connect, Account]:
    return (over_amqp, real.publishing) if request.param == "amqp" else (over_stomp, real.stomp_ops)


def test_messages_small_and_large_come_whole_and_are_settled(real: RealHouse) -> None:
    setting = real.setting()
    texts = [*(f"{number}" for number in range(500)), LARGE]
    consumer, owner = real.consume(setting, window=50)
    real.publish(setting.address, *texts)
    got = []
    for _ in texts:
        one = owner.got()
        got.append(one.text)
        consumer.settle([(one.tag, Settle.ACCEPT)])
    assert sorted(got) == sorted(texts)
    consumer.stop()
    assert real.figures(setting).messages == 0


def test_a_large_message_dies_and_is_read_from_its_queue(real: RealHouse) -> None:
    setting = real.setting()
    (letter,) = real.die(setting, LARGE)
    assert letter.body.value == LARGE


def test_text_goes_over_stomp(real: RealHouse) -> None:
    setting = real.setting()
    publisher = StompPublisher(real.stomp_publishing)
    publisher.publish([Outgoing(setting.address, text_message(LARGE)) for _ in range(3)])
    publisher.close()
    assert real.figures(setting).messages == 3


def test_a_file_that_is_opened_after_a_session_ended_is_read_whole(real: RealHouse, tmp_path: Path) -> None:
    """Its descriptor is that of the session: nobody reads from it any more."""
    file = tmp_path / "file"
    file.write_bytes(b"0123456789" * 20)
    for _ in range(150):
        over_stomp(real.stomp_ops)
        for _ in range(20):
            assert file.read_bytes() == b"0123456789" * 20


def test_a_certificate_says_who_asks_instead_of_a_password(real: RealHouse, authority: Authority) -> None:
    setting = real.setting()
    files = {user: client(authority, user) for user in ("kma", "publisher", "ma-ops")}
    with closing(AmqpPublisher(Account(real.service.amqp_url, "", "", files["publisher"]))) as publisher:
        publisher.publish([Outgoing(setting.address, text_message("by certificate"))])
    owner = Owner()
    kma = Account(real.service.amqp_url, "", "", files["kma"])
    consumer = AmqpConsumer(kma, setting.address, setting.key, owner, 10)
    consumer.start()
    one = owner.got()
    assert one.text == "by certificate"
    consumer.settle([(one.tag, Settle.ACCEPT)])
    consumer.stop()
    over_stomp(Account(real.service.stomp_address, "", "", files["ma-ops"]))

    with pytest.raises(AccessRefused):
        over_stomp(Account(real.service.stomp_address, "", "", files["kma"]))
    stranger = client(authority, "stranger")
    with pytest.raises(BrokerError) as refused:
        over_amqp(Account(real.service.amqp_url, "", "", stranger))
    assert isinstance(refused.value, AccessRefused), refused.value


def client(authority: Authority, user: str) -> TlsFiles:
    certificate, key = authority.sign(f"client-{user}", subject=user)
    return TlsFiles(str(authority.certificate), str(certificate), str(key))


def test_a_broker_of_an_unknown_authority_is_not_believed(
    ways: tuple[Connect, Account], tmp_path: Path
) -> None:
    connect, account = ways
    other = Authority.create(tmp_path / "other")
    for files in (SYSTEM, TlsFiles(str(other.certificate))):
        with pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:\d+ is of an unknown authority"):
            connect(dataclasses.replace(account, tls=files))


def test_a_certificate_of_another_host_is_not_believed(ways: tuple[Connect, Account]) -> None:
    connect, account = ways
    with pytest.raises(BrokerUnavailable, match=r"localhost:\d+ is for another host: use a name"):
        connect(dataclasses.replace(account, url=account.url.replace("127.0.0.1", "localhost")))


def test_a_port_that_speaks_no_tls_is_told(ways: tuple[Connect, Account], artemis: ArtemisService) -> None:
    connect, account = ways
    plain = artemis.ports.amqp if connect is over_amqp else artemis.ports.stomp
    scheme = account.url.partition("://")[0]
    with pytest.raises(BrokerUnavailable, match="does not speak TLS|TLS with"):
        connect(dataclasses.replace(account, url=f"{scheme}://127.0.0.1:{plain}"))


def test_in_clear_nothing_comes_of_it(ways: tuple[Connect, Account]) -> None:
    connect, account = ways
    with pytest.raises(BrokerUnavailable):
        connect(dataclasses.replace(account, url=account.url.replace("s://", "://")))


def test_a_password_goes_to_no_other_machine_in_clear(ways: tuple[Connect, Account]) -> None:
    """Nobody listens there: it is refused before anything is tried."""
    connect, account = ways
    away = account.url.replace("s://", "://").replace("127.0.0.1", "192.0.2.1")
    with pytest.raises(AccessRefused, match="another machine"):
        connect(dataclasses.replace(account, url=away, in_clear=False))


def test_of_a_list_the_live_one_is_found_and_asked_first_from_then_on(
    ways: tuple[Connect, Account],
) -> None:
    connect, account = ways
    scheme, _, place = account.url.partition("://")
    dead = [f"{scheme}://127.0.0.1:{port}" for port in free_ports(2)]
    several = dataclasses.replace(account, url=",".join((dead[0], f"{scheme}://{place}", dead[1])))
    if connect is over_amqp:
        with pytest.raises(BrokerError, match="nowhere"):
            connect(several)
    else:
        connect(several)
    with pytest.raises(BrokerUnavailable) as away:
        connect(dataclasses.replace(account, url=",".join(dead)))
    assert all(each.partition("://")[2] in str(away.value) for each in dead)
