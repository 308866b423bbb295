"""The page of the pre-flight: what it names, what it recommends, how old its counts are, and which refusals
leave the form."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import LaunchSetting
from agents.provisioning import queue_counts
from agents.provisioning.topology import REMOVING
from broker.port import BrokerUnavailable
from console.audit.models import AuditEntry
from dlq.models import DeadLetter, ReplayJob
from failures.models import Fingerprint
from tests.web.factories import World, make_letter
from tests.web.pages import Elements, broker_answers, broker_figures, looked_at, signed_in

KEY = "mail-send"
BACK = f"/dead-letters/{KEY}/give-back/"


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Nothing waits, and all that lies there is made by the test."""
    broker_answers(monkeypatch, broker_figures(waiting=0, delayed=0, in_delivery=0, dead=7))
    DeadLetter.objects.filter(queue=f"DLQ.{KEY}").delete()
    return signed_in(world, "operator")


def letters(world: World, count: int, **values: Any) -> None:
    for _ in range(count):
        make_letter(world, KEY, "x", **values)


def group(fingerprint: str) -> Fingerprint:
    now = timezone.now()
    counted: dict[str, Any] = {"count": 1, "first_at": now, "last_at": now, "latest": "0" * 32}
    return Fingerprint.objects.create(
        fingerprint=fingerprint, exception_type="ConnectionError", place="orders.py:_express", recent_at=now,
        received_at=now, **counted,
    )  # fmt: skip


def links(page: Elements) -> list[str]:
    return [str(each.get("href")) for tag, each in page.found if tag == "a"]


def test_an_error_group_is_named_by_its_error_and_linked(world: World, client: Client) -> None:
    letters(world, 2, fingerprint="v1:abc")
    asked = f"{BACK}?group=1&fingerprint=v1:abc"
    assert "Fingerprint: v1:abc" in looked_at(client, asked).text, "one that was never counted has no name"
    group("v1:abc")
    page = looked_at(client, asked)
    assert "Error group: ConnectionError in orders.py:_express" in page.text and "v1:abc" not in page.text
    assert any(url.endswith("?of=v1%3Aabc") for url in links(page)), links(page)


def test_who_may_not_see_error_groups_reads_the_name_without_a_link(world: World, client: Client) -> None:
    letters(world, 1, fingerprint="v1:abc")
    group("v1:abc")
    user = world.people["operator"]
    granted: list[Any] = [user.user_permissions, *(each.permissions for each in user.groups.all())]
    for permissions in granted:
        permissions.remove(*permissions.filter(codename="view_fingerprint"))
    page = looked_at(client, f"{BACK}?group=1&fingerprint=v1:abc")
    assert "ConnectionError in orders.py:_express" in page.text
    assert not any("?of=" in url for url in links(page))


def test_the_ladder_is_in_sight_and_recommended_where_it_is_advised(world: World, client: Client) -> None:
    letters(world, 24, fingerprint="v1:a")
    html = client.get(f"{BACK}?all=1").content.decode()
    assert "Ladder: 1, 5, 25, 125, … messages" in html and "(recommended)" not in html
    assert html.index('name="ladder"') < html.index("<details><summary>Rate and schedule")
    letters(world, 1, fingerprint="v1:a")
    assert "125, … messages (recommended)" in client.get(f"{BACK}?all=1").content.decode()


def box(page: Elements, name: str, value: str = "") -> dict[str, Any]:
    [found] = [
        each for tag, each in page.found
        if tag == "input" and each.get("name") == name and value in (each.get("value") or "")
    ]  # fmt: skip
    return dict(found)


def hidden_notes(page: Elements) -> list[str]:
    return [tag for tag, each in page.found if each.get("data-only-without") == "ladder" and "hidden" in each]


def test_a_group_begins_with_the_ladder_that_is_recommended(world: World, client: Client) -> None:
    letters(world, 25, fingerprint="v1:a")
    asked = f"{BACK}?group=1&fingerprint=v1:a"
    page = looked_at(client, asked)
    assert "checked" in box(page, "ladder") and hidden_notes(page) == ["fieldset", "div"]
    assert "checked" not in box(looked_at(client, f"{BACK}?all=1"), "ladder"), "a group alone is one error"
    sent = {"group": "1", "query": "fingerprint=v1%3Aa"}
    again = client.post(BACK, sent)
    text = again.content.decode()
    assert "acknowledge the warnings below first" in text and "ladder_advised" in text
    assert 'data-only-without="ladder" hidden' not in text, "who takes it away is warned"
    assert client.post(BACK, sent | {"ladder": "on"}).status_code == 302
    assert ReplayJob.objects.get(setting_key=KEY).ladder


def test_fewer_than_a_ladder_is_for_begin_without_one(world: World, client: Client) -> None:
    letters(world, 24, fingerprint="v1:a")
    page = looked_at(client, f"{BACK}?group=1&fingerprint=v1:a")
    assert "checked" not in box(page, "ladder") and not hidden_notes(page)


def test_another_mistake_does_not_bring_back_the_warning_of_the_ladder(world: World, client: Client) -> None:
    letters(world, 25, fingerprint="v1:a")
    sent = {"group": "1", "query": "fingerprint=v1%3Aa", "ladder": "on", "window_from": "22:00"}
    text = client.post(BACK, sent).content.decode()
    assert "Set both ends of the time window" in text and "acknowledge the warnings below first" not in text
    assert 'data-only-without="ladder" hidden' in text


def test_it_says_that_each_warning_has_to_be_ticked(world: World, client: Client) -> None:
    letters(world, 25, fingerprint="v1:a", agent_version="2.4.1")
    page = looked_at(client, f"{BACK}?group=1&fingerprint=v1:a")
    assert "The job starts only when the box under each warning is ticked." in page.text
    assert "Replay anyway" in page.text and hidden_notes(page) == ["div"]


@pytest.mark.parametrize(("ordered", "warned"), [(False, False), (True, True)])
def test_only_a_setting_that_keeps_an_order_is_warned_of_it(
    world: World, client: Client, ordered: bool, warned: bool
) -> None:
    """One message at a time on one server, as the form offers it, is no order that anybody asked for."""
    setting = world.settings[KEY]
    setting.spread, setting.concurrency, setting.ordered = "ANY", 1, ordered
    setting.save()
    letters(world, 1)
    page = looked_at(client, f"{BACK}?all=1")
    assert ("ordered" in [each.get("value") for _tag, each in page.found]) is warned


def test_a_count_of_the_broker_has_its_age(world: World, client: Client) -> None:
    letters(world, 1)
    page = looked_at(client, f"{BACK}?all=1")
    assert "Broker count: 7 (" in page.text and "last known" not in page.text
    assert "not responding" not in page.text


def test_while_the_broker_is_away_it_says_so_and_how_old_the_count_is(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters(world, 1)
    looked_at(client, f"{BACK}?all=1")

    def away(*_arguments: Any) -> Any:
        raise BrokerUnavailable("no connection")

    broker_answers(monkeypatch, away)
    monkeypatch.setattr(queue_counts, "figures_of_all", away)
    monkeypatch.setattr(queue_counts, "FRESH", timedelta(0))
    page = looked_at(client, f"{BACK}?all=1")
    assert "The broker is not responding." in page.text
    assert "Broker count: 7 (" in page.text and "This is the last known count." in page.text
    queue_counts.forget()
    broker_answers(monkeypatch, away)
    page = looked_at(client, f"{BACK}?all=1")
    assert "Count from the index." in page.text and "Broker count" not in page.text


def test_the_minutes_of_a_hold_follow_the_choice_of_the_order(world: World, client: Client) -> None:
    letters(world, 1)
    html = client.get(f"{BACK}?all=1").content.decode()
    assert 'data-only-with="in_order" data-value="ahead"' in html
    assert "Maximum hold time of the subscription" in html, (
        "without a script its label says what it belongs to"
    )
    wrong = {"all": "1", "in_order": "ahead", "hold_minutes": "0"}
    assert 'data-only-with="in_order"' not in client.post(BACK, wrong).content.decode(), "what is wrong shows"


def test_too_many_in_order_leave_the_form_as_it_was_filled_in(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlq.replay.requests.MOST_IN_ORDER", 1)
    letters(world, 2)
    sent = {"all": "1", "in_order": "behind", "reason": "carrier is back", "per_second": "3"}
    answer = client.post(BACK, sent)
    html = answer.content.decode()
    assert answer.status_code == 200 and not ReplayJob.objects.filter(setting_key=KEY).exists()
    assert "Publishing order is available for at most 1 messages" in html
    assert "carrier is back" in html and 'value="3' in html and '<option value="behind" selected' in html
    assert not AuditEntry.objects.filter(setting_key=KEY, result="refused").exists(), "it was no attempt"


def test_a_target_that_is_refused_leaves_the_form_as_it_was_filled_in(world: World, client: Client) -> None:
    """It became one that could get nothing after the page was shown."""
    letters(world, 1)
    chief, target = signed_in(world, "chief"), world.settings["orders-export"]
    LaunchSetting.objects.filter(pk=target.pk).update(wanted_hash=REMOVING)
    answer = chief.post(
        f"/dead-letters/{KEY}/redirect/", {"all": "1", "target": target.key, "reason": "wrong agent"}
    )
    html = answer.content.decode()
    assert answer.status_code == 200 and "the setting is being removed" in html and "wrong agent" in html
    assert 'value="orders-export" selected' in html and not ReplayJob.objects.filter(setting_key=KEY).exists()
    assert AuditEntry.objects.get(setting_key=KEY, result="refused").action == "dead_letters.redirect"
