"""`settle_with_sends` of several deliveries that may share one transaction: each as if it had one of its
own."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from broker.amqp.connection import AmqpConnection
from broker.amqp.transactions import Transactions, Work
from broker.port import BrokerUnavailable, Consumer, Settle
from contract.typed import Typed
from tests.broker.amqp.test_transactions import result
from tests.broker.houses import Got, House, Owner, RealHouse, Setting, eventually

TEXTS = ("a", "b", "c", "d", "e", "f")


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many deliveries each transaction of the real adapter had when it was to be discharged."""
    sizes: list[int] = []
    discharge = Transactions._discharge

    def noting(self: Transactions, work: Work) -> None:
        sizes.append(len(work.parts))
        discharge(self, work)

    monkeypatch.setattr(Transactions, "_discharge", noting)
    return sizes


def begin(house: House, setting: Setting) -> tuple[Consumer, Owner, list[Got]]:
    house.publish(setting.address, *TEXTS)
    consumer, owner = house.consume(setting)
    return consumer, owner, [owner.got() for _ in TEXTS]


def sent(house: House, target: Setting) -> list[str]:
    return sorted(str(message.body.value) for message in house.look(target.address, target.key))


def test_what_waits_shares_a_transaction_and_what_may_not_does_not(
    real: RealHouse, shared: list[int]
) -> None:
    setting, target = real.setting(), real.setting()
    consumer, owner, got = begin(real, setting)
    for each in got:
        consumer.settle_with_sends(each.tag, [result(target.address, each.text)], may_share=each.text != "d")
    assert {owner.answer() for _ in got} == {(each.tag, None) for each in got}
    assert sent(real, target) == list(TEXTS)
    assert sum(shared) == 6 and len(shared) <= 5 and 1 in shared[1:-1], "a to c together, d alone"
    eventually(lambda: real.figures(setting).messages == 0)


def test_what_is_refused_does_not_touch_the_others(house: House, shared: list[int]) -> None:
    setting, target = house.setting(), house.setting()
    consumer, owner, got = begin(house, setting)
    for each in got:
        to = "nobody.made.this" if each.text in "cf" else target.address
        consumer.settle_with_sends(each.tag, [result(target.address, each.text), result(to)], may_share=True)
    answers = dict(owner.answer() for _ in got)
    assert [each.text for each in got if answers[each.tag] is not None] == ["c", "f"]
    assert sent(house, target) == sorted([*"abde", *["result"] * 4])
    consumer.settle([(each.tag, Settle.FAIL) for each in got if each.text in "cf"])
    assert {(again.text, again.count) for again in (owner.got(), owner.got())} == {("c", 1), ("f", 1)}


def test_a_shared_commit_that_fails_is_made_again_for_each_alone(house: House, shared: list[int]) -> None:
    setting, target = house.setting(attempts=5), house.setting()
    duplicate = result(target.address, _AMQ_DUPL_ID=Typed("string", f"once-{setting.key}"))
    house.publisher.publish([duplicate])
    consumer, owner, got = begin(house, setting)
    for each in got:
        more = [duplicate] if each.text == "c" else []
        consumer.settle_with_sends(each.tag, [result(target.address, each.text), *more], may_share=True)
    answers = dict(owner.answer() for _ in got)
    bad = [each for each in got if answers[each.tag] is not None]
    assert [each.text for each in bad] == ["c"] and "Duplicate" in str(answers[bad[0].tag])
    assert sent(house, target) == sorted([*"abdef", "result"])
    consumer.settle([(bad[0].tag, Settle.FAIL)])
    again = owner.got()
    assert again.text == "c" and again.count in (1, 2), "the shared commit cost an attempt too"
    consumer.settle([(again.tag, Settle.ACCEPT)])
    eventually(lambda: house.figures(setting).messages == 0)


def kill_at(monkeypatch: pytest.MonkeyPatch, moment: str, kill: Callable[[], None]) -> list[int]:
    """Kills the broker around the commit of the first shared transaction; answers how many took part."""
    discharge, step, end = Transactions._discharge, AmqpConnection.step, Transactions._end
    killed: list[int] = []
    discharged: list[int] = []

    def discharging(self: Transactions, work: Work) -> None:
        if moment == "before" and len(work.parts) > 1 and not killed:
            killed.append(len(work.parts))
            kill()
        discharge(self, work)
        if len(work.parts) > 1:
            discharged.append(len(work.parts))

    def stepping(self: AmqpConnection, timeout: float) -> Any:
        if moment == "between" and discharged and not killed:
            step(self, 0.0)  # out with it
            killed.append(discharged[0])
            kill()
        return step(self, timeout)

    def ending(self: Transactions, work: Work, problem: Any, taken: bool) -> None:
        if moment == "after" and len(work.parts) > 1 and not killed:
            killed.append(len(work.parts))
            kill()
            raise BrokerUnavailable("killed")  # the confirmation is not heard
        end(self, work, problem, taken)

    monkeypatch.setattr(Transactions, "_discharge", discharging)
    monkeypatch.setattr(AmqpConnection, "step", stepping)
    monkeypatch.setattr(Transactions, "_end", ending)
    return killed


@pytest.mark.kill
@pytest.mark.parametrize("moment", ["before", "between", "after"])
def test_a_broker_that_is_killed_around_a_shared_commit_does_all_of_it_or_nothing(
    real: RealHouse, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    setting, target = real.setting(attempts=9), real.setting()
    consumer, owner, got = begin(real, setting)
    killed = kill_at(monkeypatch, moment, real.kill)
    for each in got:
        consumer.settle_with_sends(each.tag, [result(target.address, each.text)], may_share=True)
    first: set[str] = set()
    while (event := owner.events.get(timeout=30))[0] != "lost":
        tag, problem = cast(tuple[int, Exception | None], event[1])
        assert problem is None, "what is in doubt is no failure"
        first.update(each.text for each in got if each.tag == tag)
    (together,) = killed
    real.restart()
    owner.wait("opened")
    done = set(sent(real, target))
    assert first <= done
    assert len(done - first) in {"before": (0,), "after": (together,), "between": (0, together)}[moment]
    again = [owner.got() for _ in range(len(TEXTS) - len(done))]
    for each in again:
        assert each.text not in done
        consumer.settle_with_sends(each.tag, [result(target.address, each.text)], may_share=True)
    assert {owner.answer() for _ in again} == {(each.tag, None) for each in again}
    assert sent(real, target) == list(TEXTS)
    eventually(lambda: real.figures(setting).messages == 0)
