"""What a person sees of messages before they are handled, and who may ask for something to be done with
them."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from agents.models import Pool
from broker.management import waiting_messages
from console.audit.models import AuditEntry
from console.operations.operation import perform
from console.operations.refusals import NotAllowed, Refused
from contract.typed import Typed
from dlq.dead_letters.masks import Masks
from dlq.models.message_action import WaitingAction
from dlq.subscriptions.operations import MESSAGES, CancelAction, GiveUpBlocked
from dlq.subscriptions.queries import Heads, MessagePage, ask_broker, bodies_of, message_page
from tests.web import reports
from tests.web.teams import teammate
from tests.web.waiting import WaitingHouse, failed

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
MASKS = Masks({"orders": frozenset({"card"})})


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingHouse]:
    house = WaitingHouse(reports.setting())
    house.answers(monkeypatch)
    yield house
    house.close()


def seen(house: WaitingHouse, part: str, masks: Masks = MASKS, start: int = 0) -> MessagePage:
    told = ask_broker(house.management, house.setting, part, start)
    bodies = bodies_of(told, house.setting, Heads(house.management, house.browser, masks))
    return message_page(told, house.setting, masks, bodies)


@pytest.fixture
def operator() -> User:
    return reports.person("operator", "dlq.handle_waiting")


def test_counts_are_the_brokers_and_each_part_tells_its_own_messages(house: WaitingHouse) -> None:
    house.delay("d1", "d2")
    house.publish("w1", "w2", "w3")
    house.deliver(1, "srv-2")
    found = seen(house, "in_delivery")
    assert (found.counts.waiting, found.counts.delayed, found.counts.in_delivery, found.counts.held) == (
        2,
        2,
        1,
        0,
    )
    (line,) = found.lines
    assert line.held is not None
    assert (line.message.message_id, line.held.server, line.held.exact) == ("w1", "srv-2", True)
    assert [line.message.message_id for line in seen(house, "waiting").lines] == ["w2", "w3"]
    assert [line.message.message_id for line in seen(house, "delayed").lines] == ["d1", "d2"]
    assert (seen(house, "held").lines, found.cut, found.more) == ([], False, False)


def test_a_delayed_message_says_when_it_is_due_and_which_attempt_that_is(house: WaitingHouse) -> None:
    house.delay("m")
    at = timezone.now() - timedelta(minutes=5)
    failed(house.setting, "m", 1, at - timedelta(hours=1))
    failed(house.setting, "m", 2, at)
    (line,) = seen(house, "delayed").lines
    assert line.attempt is not None
    assert (line.attempt.number, line.attempt.of, line.attempt.due) == (3, 5, at + timedelta(hours=2))


def test_attempts_of_before_a_release_are_of_another_life(house: WaitingHouse, operator: User) -> None:
    house.delay("m")
    failed(house.setting, "m", 4, timezone.now())
    for kind, part in (("hold", "delayed"), ("release", "held")):
        house.ask(kind, part, by=operator)
        house.work()
    (line,) = seen(house, "waiting").lines
    assert (line.message.message_id, line.attempt) == ("m", None)
    failed(house.setting, "m", 1, timezone.now())
    (line,) = seen(house, "waiting").lines
    assert line.attempt is not None and line.attempt.number == 2


def test_masked_properties_and_bodies_stay_masked(house: WaitingHouse) -> None:
    house.publish(
        "m", body='{"card": "4111", "sum": 7}', card=Typed("string", "4111"), tenant=Typed("string", "acme")
    )
    (line,) = seen(house, "waiting").lines
    values = {each["name"]: each["value"] for each in line.properties}
    assert values["tenant"] == "acme" and "4111" not in str(values)
    assert line.body is not None and "4111" not in line.body and '"sum"' in line.body
    (line,) = seen(house, "waiting", Masks()).lines
    assert line.body == '{"card": "4111", "sum": 7}'


def test_bodies_are_told_only_of_messages_of_which_it_is_certain(
    house: WaitingHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head of the queue moves during the walk: order tells nothing, ids that two messages share tell
    nothing."""
    for body in ("first", "second"):
        house.publish("same", body=body)
    house.publish("own", body="third")
    messages = [line.message for line in seen(house, "waiting").lines]
    heads = Heads(house.management, house.browser, Masks())
    assert list(heads.of(house.setting, "waiting", messages, 50).values()) == ["first", "second", "third"]
    monkeypatch.setattr("broker.management.waiting_messages.first_waiting", lambda *_: [])
    assert heads.of(house.setting, "waiting", messages, 50) == {messages[2].number: "third"}


def test_bodies_of_large_messages_are_not_fetched(
    house: WaitingHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.publish("m")
    monkeypatch.setattr("dlq.subscriptions.queries.LARGEST_AVERAGE", 1)
    (line,) = seen(house, "waiting").lines
    assert line.body is None


def test_what_the_broker_does_not_tell_of_is_said(
    house: WaitingHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.publish(*(f"w{n}" for n in range(waiting_messages.FIRST + 5)))
    found = seen(house, "waiting", start=150)
    assert (found.reported, found.counts.waiting, found.cut, found.more) == (200, 205, True, False)
    assert [found.lines[0].message.message_id, len(found.lines)] == ["w150", 50]
    assert seen(house, "waiting").more
    monkeypatch.setattr("broker.management.waiting_messages.LISTED", 2)
    house.deliver(3)
    assert (seen(house, "in_delivery").reported, seen(house, "in_delivery").lines) == (None, [])


def test_a_held_message_says_who_held_it_since_when_and_why(house: WaitingHouse, operator: User) -> None:
    house.publish("m", "n")
    action = house.ask("hold", "waiting", house.numbers("waiting")[:1], by=operator, reason="?!")
    house.work()
    found = seen(house, "held")
    (line,) = found.lines
    assert line.hold is not None
    assert (line.hold.by, line.hold.at, line.hold.reason) == ("operator", action.created_at, "?!")
    assert (line.message.message_id, line.body, found.counts.held, found.counts.waiting) == ("m", "m", 1, 1)


# -- who may -------------------------------------------------------------------------------------------------


def test_who_may_not_handle_is_refused_and_stands_in_the_audit(house: WaitingHouse) -> None:
    house.publish("m")
    viewer = reports.person("viewer", "dlq.view_deadletter")
    assert house.setting in MESSAGES.rows_for(viewer)
    with pytest.raises(PermissionDenied):
        MESSAGES.rows_for(reports.person("outsider"))
    with pytest.raises(NotAllowed):
        house.ask("hold", "waiting", by=viewer)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.by_name, entry.result, entry.setting_key) == (
        "messages.hold", "viewer", "refused", "orders",
    )  # fmt: skip
    assert not WaitingAction.objects.exists() and house.count() == 1


def test_a_right_in_a_pool_is_of_the_settings_of_that_pool(house: WaitingHouse, groups: None) -> None:
    house.publish("m")
    mate = teammate(house.setting.pool, name="mate", rights=("handle_waiting",))
    stranger = teammate(Pool.objects.create(name="other"), name="stranger", rights=("handle_waiting",))
    assert GiveUpBlocked.permission.why_not(mate, house.setting) == ""
    assert "demo" in GiveUpBlocked.permission.why_not(stranger, house.setting)
    action = house.ask("hold", "waiting", by=mate)
    with pytest.raises(NotAllowed):
        perform(CancelAction, action, stranger)
    perform(CancelAction, action, mate)
    assert WaitingAction.objects.get().stopping


def test_what_is_impossible_now_is_refused_and_stands_in_the_audit_too(
    house: WaitingHouse, operator: User
) -> None:
    with pytest.raises(Refused) as refused:
        house.ask("hold", "waiting", by=operator)
    assert refused.value.code == "nothing"
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.result, entry.detail["why"]) == (
        "messages.hold",
        "refused",
        refused.value.reason,
    )
