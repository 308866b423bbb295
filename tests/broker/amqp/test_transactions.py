"""`settle_with_sends`: all or nothing, and a failure costs exactly one attempt."""

from broker.port import Outgoing, Settle
from contract.typed import Typed
from tests.broker.houses import House, eventually, text_message


def result(destination: str, text: str = "result", **properties: Typed) -> Outgoing:
    return Outgoing(destination, text_message(text, properties=properties))


def test_the_message_is_accepted_and_everything_sent_together(house: House) -> None:
    setting, target = house.setting(), house.setting()
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "order")
    got = owner.got()
    consumer.settle_with_sends(
        got.tag, [result(target.address, "one"), result(f"{target.address}::{target.key}", "two")]
    )
    assert owner.answer() == (got.tag, None)
    eventually(lambda: house.figures(setting).messages == 0)
    assert [message.body.value for message in house.look(target.address, target.key)] == ["one", "two"]


def test_an_unknown_address_sends_nothing_and_leaves_the_message_to_its_owner(house: House) -> None:
    setting, target = house.setting(), house.setting()
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "order")
    got = owner.got()
    consumer.settle_with_sends(got.tag, [result(target.address), result("nobody.made.this")])
    tag, problem = owner.answer()
    assert tag == got.tag
    assert problem is not None and "does not exist" in problem
    assert house.look(target.address, target.key) == []
    consumer.settle([(got.tag, Settle.FAIL)])
    assert owner.got().count == 1


def test_an_unknown_address_does_not_stop_the_transactions_behind_it(house: House) -> None:
    setting, target = house.setting(), house.setting()
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "a", "b", "c")
    got = [owner.got() for _ in range(3)]
    consumer.settle_with_sends(got[0].tag, [result(target.address)])
    consumer.settle_with_sends(got[1].tag, [result("nobody.made.this")])
    consumer.settle_with_sends(got[2].tag, [result(target.address)])
    answers = dict(owner.answer() for _ in range(3))
    assert [answers[each.tag] is None for each in got] == [True, False, True]
    eventually(lambda: house.figures(target).messages == 2)


def test_a_commit_that_fails_costs_one_attempt_and_sends_nothing(house: House) -> None:
    setting, target = house.setting(attempts=2), house.setting()
    duplicate = result(target.address, _AMQ_DUPL_ID=Typed("string", f"once-{setting.key}"))
    house.publisher.publish([duplicate])
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "order")
    for attempt in range(2):
        got = owner.got()
        assert got.count == attempt
        consumer.settle_with_sends(got.tag, [result(target.address, "with it"), duplicate])
        tag, problem = owner.answer()
        assert tag == got.tag
        assert problem is not None and "Duplicate" in problem
        consumer.settle([(got.tag, Settle.FAIL)])
    house.until_dead(setting, 1)
    assert house.figures(setting).messages == 0
    assert len(house.look(target.address, target.key)) == 1


def test_a_message_can_be_accepted_or_rejected_after_a_commit_that_failed(house: House) -> None:
    setting, target = house.setting(), house.setting()
    duplicate = result(target.address, _AMQ_DUPL_ID=Typed("string", f"once-{setting.key}"))
    house.publisher.publish([duplicate])
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "a", "b")
    got = [owner.got(), owner.got()]
    for each, how in zip(got, (Settle.ACCEPT, Settle.REJECT), strict=True):
        consumer.settle_with_sends(each.tag, [duplicate])
        assert owner.answer()[1] is not None
        consumer.settle([(each.tag, how)])
    assert [letter.body.value for letter in house.until_dead(setting, 1)] == ["b"]
    eventually(lambda: house.figures(setting).messages == 0)


def test_what_cannot_be_encoded_is_refused_before_anything_is_sent(house: House) -> None:
    setting, target = house.setting(), house.setting()
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "order")
    got = owner.got()
    consumer.settle_with_sends(
        got.tag, [result(target.address), result(target.address, bad=Typed("ubyte", 256))]
    )
    tag, problem = owner.answer()
    assert tag == got.tag
    assert problem is not None and "ubyte" in problem
    assert house.look(target.address, target.key) == []
    consumer.settle([(got.tag, Settle.ACCEPT)])


def test_many_transactions_at_once_end_one_after_the_other(house: House) -> None:
    setting, target = house.setting(), house.setting()
    texts = [str(number) for number in range(60)]
    house.publish(setting.address, *texts)
    consumer, owner = house.consume(setting, window=100)
    for _ in texts:
        got = owner.got()
        consumer.settle_with_sends(got.tag, [result(target.address, got.text)])
    assert all(owner.answer()[1] is None for _ in texts)
    eventually(lambda: house.figures(target).messages == 60)
    assert house.figures(setting).messages == 0


def test_a_stop_lets_the_transactions_at_hand_end(house: House) -> None:
    setting, target = house.setting(), house.setting()
    texts = [str(number) for number in range(20)]
    house.publish(setting.address, *texts)
    consumer, owner = house.consume(setting, window=100)
    for got in [owner.got() for _ in texts]:
        consumer.settle_with_sends(got.tag, [result(target.address, got.text)])
    consumer.stop()
    assert all(owner.answer()[1] is None for _ in texts)
    eventually(lambda: house.figures(target).messages == 20)
    assert house.figures(setting).messages == 0


def test_large_results_go_with_their_message(house: House) -> None:
    setting, target = house.setting(), house.setting()
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "order")
    got = owner.got()
    consumer.settle_with_sends(
        got.tag, [result(target.address, "x" * 3_000_000), result(target.address, "small")]
    )
    assert owner.answer() == (got.tag, None)
    lengths = [len(message.body.value) for message in house.look(target.address, target.key)]
    assert lengths == [3_000_000, 5]


def test_an_acceptance_alone_is_confirmed_in_any_order_of_the_outstanding(house: House) -> None:
    setting = house.setting()
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "a", "b", "c")
    first, second, third = owner.got(), owner.got(), owner.got()
    consumer.settle_with_sends(second.tag, [])
    assert owner.answer() == (second.tag, None)
    consumer.settle_with_sends(third.tag, [])
    consumer.settle([(first.tag, Settle.FAIL)])
    assert owner.answer() == (third.tag, None)
    again = owner.got()
    assert (again.text, again.count) == ("a", 1)
    consumer.settle_with_sends(again.tag, [])
    assert owner.answer() == (again.tag, None)
    eventually(lambda: house.figures(setting).messages == 0)


def test_a_broker_that_dies_answers_for_no_acceptance_and_gives_the_message_again(house: House) -> None:
    setting = house.setting()
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "a")
    held = owner.got()
    house.kill()
    owner.wait("lost")
    consumer.settle_with_sends(held.tag, [])
    house.restart()
    again = owner.got()
    assert again.text == "a" and again.tag != held.tag
    consumer.settle_with_sends(held.tag, [])
    consumer.settle_with_sends(again.tag, [])
    assert owner.answer() == (again.tag, None), "what was held before has no answer"
