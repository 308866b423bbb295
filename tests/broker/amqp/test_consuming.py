"""What a consumer promises while all goes well."""

from broker.port import Settle
from tests.broker.houses import House, Owner, eventually, settle_all


def test_an_accepted_message_is_gone(house: House) -> None:
    setting = house.setting()
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "one")
    got = owner.got()
    assert (got.text, got.count) == ("one", 0)
    consumer.settle([(got.tag, Settle.ACCEPT)])
    eventually(lambda: house.figures(setting).messages == 0)
    assert house.dead(setting) == []


def test_messages_come_in_the_order_of_the_queue(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, *(str(number) for number in range(50)))
    _, owner = house.consume(setting, window=100)
    assert [owner.got().text for _ in range(50)] == [str(number) for number in range(50)]


def test_no_more_are_outstanding_than_granted(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, *"abcdef")
    consumer, owner = house.consume(setting, window=2)
    first, second = owner.got(), owner.got()
    owner.nothing()
    consumer.settle([(first.tag, Settle.ACCEPT)])
    assert owner.got().text == "c"
    owner.nothing()
    consumer.grant(4)
    assert {owner.got().text, owner.got().text} == {"d", "e"}
    consumer.settle([(second.tag, Settle.ACCEPT)])


def test_one_at_a_time_the_next_comes_when_the_one_before_is_settled(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, *"abcdef")
    consumer, owner = house.consume(setting, window=1)
    for text in "abcdef":
        got = owner.got(timeout=2)  # the link itself looks up every 5 s: that would be too late
        assert got.text == text
        consumer.settle([(got.tag, Settle.ACCEPT)])


def test_nothing_comes_without_a_grant(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, "one")
    consumer, owner = house.consume(setting, window=0)
    owner.nothing()
    consumer.grant(1)
    assert owner.got().text == "one"


def test_a_smaller_window_is_reached_by_settling(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, *"abcdef")
    consumer, owner = house.consume(setting, window=3)
    got = [owner.got() for _ in range(3)]
    consumer.grant(1)
    settle_all(consumer, got[:2], Settle.ACCEPT)
    owner.nothing()
    settle_all(consumer, got[2:], Settle.ACCEPT)
    assert owner.got().text == "d"
    owner.nothing()


def test_a_stopped_consumer_gives_back_what_is_unsettled_with_its_count(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, "a", "b", "c")
    consumer, owner = house.consume(setting)
    got = [owner.got() for _ in range(3)]
    consumer.settle([(got[0].tag, Settle.ACCEPT)])
    consumer.stop()
    _, other = house.consume(setting)
    again = [other.got(), other.got()]
    assert [(each.text, each.count) for each in again] == [("b", 0), ("c", 0)]
    other.nothing()


def test_what_was_settled_before_a_stop_is_settled(house: House) -> None:
    setting = house.setting()
    texts = [str(number) for number in range(200)]
    house.publish(setting.address, *texts)
    consumer, owner = house.consume(setting, window=500)
    settle_all(consumer, [owner.got() for _ in texts], Settle.ACCEPT)
    consumer.stop()
    eventually(lambda: house.figures(setting).consumers == 0)
    # The broker counts down a moment after it has let the consumer go; what came back would stay.
    eventually(lambda: house.figures(setting).messages == 0)


def test_tags_are_never_used_twice_and_stale_ones_do_nothing(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, "one")
    consumer, owner = house.consume(setting)
    got = owner.got()
    consumer.settle([(got.tag, Settle.FAIL)])
    again = owner.got()
    assert again.tag != got.tag
    consumer.settle([(got.tag, Settle.ACCEPT), (999_999, Settle.REJECT)])
    owner.nothing()
    assert house.figures(setting).messages == 1


def test_every_subscription_of_an_address_gets_its_own_copy(house: House) -> None:
    one = house.setting()
    other = house.setting(address=one.address)
    consumer, owner = house.consume(one)
    house.publish(one.address, "x")
    consumer.settle([(owner.got().tag, Settle.ACCEPT)])
    _, second = house.consume(other)
    assert second.got().text == "x"


def test_an_exclusive_queue_feeds_one_consumer_until_it_goes(house: House) -> None:
    setting = house.setting(exclusive=True)
    first, first_owner = house.consume(setting)
    _, second_owner = house.consume(setting)
    house.publish(setting.address, "a", "b")
    got = [first_owner.got(), first_owner.got()]
    second_owner.nothing()
    first.settle([(got[0].tag, Settle.ACCEPT)])
    first.stop()
    assert second_owner.got().text == "b"
    house.publish(setting.address, "c")
    assert second_owner.got().text == "c"


def test_a_consumer_of_an_unknown_queue_says_so_and_that_it_stays_so(house: House) -> None:
    setting = house.setting()
    owner = Owner()
    consumer = house.consumer(setting.address, "nobody-made-this", owner, 1)
    consumer.start()
    try:
        assert owner.loss()[1] is True
    finally:
        consumer.stop()
