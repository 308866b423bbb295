"""Lists of brokers: what they may look like, and who of them is asked."""

import pytest

from broker import dialing
from broker.dialing import Address, first_live, parse
from broker.port import AccessRefused, AddressUnknown, BrokerError, BrokerTimeout, BrokerUnavailable


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "_last", {})


def test_addresses_are_read_with_the_ports_of_their_protocol() -> None:
    assert parse("amqp://a", "amqp") == (Address("a", 5672, False),)
    assert parse("amqps://a, amqps://[::1]:7", "amqp") == (Address("a", 5671, True), Address("::1", 7, True))
    assert parse("a:1,stomp://b:2", "stomp") == (Address("a", 1, False), Address("b", 2, False))
    assert parse("stomps://a", "stomp") == (Address("a", 61614, True),)
    assert [str(each) for each in parse("amqps://a,amqps://[::1]:7", "amqp")] == ["a:5671", "[::1]:7"]


@pytest.mark.parametrize(
    ("text", "protocol", "said"),
    [
        ("", "amqp", "no address"),
        (",", "amqp", "no address"),
        ("a:1", "amqp", "must be"),
        ("stomp://a:1", "amqp", "must be"),
        ("amqp://", "amqp", "must be"),
        ("amqp://a:0", "amqp", "must be"),
        ("amqp://a:x", "amqp", "must be"),
        ("amqp://a:99999", "amqp", "must be"),
        ("amqp://[a", "amqp", "must be"),
        ("amqp://a..b", "amqp", "no name of a host"),
        ("amqps://.a", "amqp", "no name of a host"),
        (f"stomps://{'a' * 64}.b", "stomp", "no name of a host"),
        ("a", "stomp", "must be"),
        ("amqp://u:p@a", "amqp", "account"),
        ("amqp://@a", "amqp", "account"),
        ("amqp://a/queue", "amqp", "nothing behind"),
        ("amqp://a?x=1", "amqp", "nothing behind"),
        ("amqp://a,amqps://b", "amqp", "with TLS and without"),
        ("amqp://a,amqp://a:5672", "amqp", "twice"),
    ],
)
def test_what_is_no_list_of_brokers_is_refused(text: str, protocol: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(text, protocol)


LIST = "amqp://a,amqp://b,amqp://c"


class Brokers:
    """`live` takes whoever asks; the others answer with their error."""

    def __init__(self, live: str, errors: dict[str, BrokerError] | None = None) -> None:
        self.live, self.errors = live, errors or {}
        self.asked: list[str] = []

    def __call__(self, address: Address, seconds: float) -> str:
        self.asked.append(address.host)
        if address.host == self.live:
            return address.host
        raise self.errors.get(address.host, BrokerUnavailable(f"no connection to {address}"))


def test_the_list_is_gone_through_and_the_next_time_begins_where_it_was_found() -> None:
    brokers = Brokers("b")
    assert first_live(LIST, "amqp", 5.0, brokers) == "b"
    assert brokers.asked == ["a", "b"]
    first_live(LIST, "amqp", 5.0, brokers)
    assert brokers.asked == ["a", "b", "b"]

    brokers.live, brokers.asked = "a", []
    assert first_live(LIST, "amqp", 5.0, brokers) == "a"
    assert brokers.asked == ["b", "c", "a"]


def test_where_none_is_live_all_are_told() -> None:
    with pytest.raises(BrokerUnavailable) as told:
        first_live(LIST, "amqp", 5.0, Brokers("none"))
    assert all(f"to {host}:5672" in str(told.value) for host in "abc")


def test_an_account_is_wrong_where_no_live_broker_takes_it() -> None:
    refusing = Brokers("c", {"a": AccessRefused("not here")})
    assert first_live(LIST, "amqp", 5.0, refusing) == "c"
    dialing._last.clear()
    with pytest.raises(AccessRefused, match="not here"):
        first_live(LIST, "amqp", 5.0, Brokers("none", {"b": AccessRefused("not here")}))


@pytest.mark.parametrize("error", [BrokerTimeout("silent"), AddressUnknown("no such queue")])
def test_the_error_of_a_single_broker_stays_what_it_is(error: BrokerError) -> None:
    with pytest.raises(type(error), match=str(error)):
        first_live("amqp://a", "amqp", 5.0, Brokers("none", {"a": error}))


def test_the_time_of_all_is_shared_and_the_last_one_gets_what_is_left() -> None:
    given: list[float] = []

    def attempt(address: Address, seconds: float) -> str:
        given.append(seconds)
        raise BrokerUnavailable("away")

    with pytest.raises(BrokerUnavailable):
        first_live(LIST, "amqp", 9.0, attempt)
    assert given[0] == pytest.approx(3.0, abs=0.1) and given[2] == pytest.approx(9.0, abs=0.1)
    given.clear()
    with pytest.raises(BrokerUnavailable):
        first_live(LIST, "amqp", 0.0, attempt)
    assert given == [1.0, 1.0, 1.0]
