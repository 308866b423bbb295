"""What the broker has for a destination beside what is wanted: shown, written to it, taken over from it."""

import json
import os
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.destinations import policies
from agents.destinations.policies import watch_policies
from agents.models import Destination, LaunchSetting, Pool, StateChange
from agents.provisioning.provision import provision_due
from alerts import text as alerts_text
from alerts.evaluation import evaluate_kind
from alerts.models import Alert
from alerts.sources import kind_of
from broker.management.topology import apply
from broker.memory.broker import MemoryBroker
from broker.port import Account, BrokerError, BrokerTimeout
from console import broker as broker_service
from console.audit.models import AuditEntry
from console.processes import lock
from tests.services import ArtemisService
from tests.web.pages import looked_at
from tests.web.rows import NOW, api_client, make_setting


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryBroker:
    """The site speaks to a broker in memory."""
    broker = MemoryBroker()
    monkeypatch.setattr(broker_service, "_connection", broker.management())
    monkeypatch.setattr(broker_service, "_process", os.getpid())
    return broker


def made(pool: Pool, key: str = "orders", **policy: Any) -> Destination:
    """On the broker, as wanted."""
    destination, _new = Destination.objects.get_or_create(
        name=f"shop.{key}", defaults={"delay_ms": 100, **policy}
    )
    make_setting(pool, key, address=destination.name, provision_state="pending", provisioned_hash="")
    provision_due(NOW)
    assert LaunchSetting.objects.get(key=key).provision_state == "ready"
    return destination


@pytest.fixture
def destination(memory: MemoryBroker, pool: Pool) -> Destination:
    return made(pool, "orders", max_attempts=4)


def meddle(destination: Destination, **settings: Any) -> None:
    """Somebody at the broker's console."""
    found = policies.read_policy(destination)
    broker_service.management().call(
        "broker", "addAddressSettings", destination.name, json.dumps(found | settings)
    )


def signed_in(who: User) -> Client:
    client = Client()
    client.force_login(who)
    return client


def url(destination: Destination, action: str) -> str:
    return f"/destinations/{destination.pk}/{action}/"


def page_of(client: Client, destination: Destination) -> str:
    text = looked_at(client, f"/destinations/{destination.pk}/").text
    return text.replace("\N{NO-BREAK SPACE}", " ")


def seen(client: Client, destination: Destination, action: str) -> dict[str, str]:
    """What the page that asks sends with its button."""
    found = re.search(r'name="seen" value="(\w*)"', client.get(url(destination, action)).content.decode())
    assert found, "the page asks"
    return {"seen": found[1]}


def said(client: Client, destination: Destination, action: str, confirmed: dict[str, str]) -> str:
    answer = client.post(url(destination, action), confirmed, follow=True)
    assert answer.redirect_chain[-1][0].endswith(f"/destinations/{destination.pk}/")
    return " ".join(str(each) for each in answer.context["messages"])


def stories() -> list[tuple[str, str, str]]:
    rows = StateChange.objects.filter(what="policy").order_by("pk")
    return [(row.setting.key if row.setting else "", row.new, str(row.reason)) for row in rows]


def entries() -> list[tuple[str, str, dict[str, Any]]]:
    rows = AuditEntry.objects.order_by("pk")
    return [
        (row.action, row.result, {name: value for name, value in row.detail.items() if name != "why"})
        for row in rows
    ]


def test_what_the_broker_has_stands_beside_what_is_wanted(destination: Destination, viewer: User) -> None:
    text = page_of(signed_in(viewer), destination)

    assert "The policy on the broker is in sync." in text and "differs" not in text
    assert "maximum attempts maxDeliveryAttempts 4 4" in text
    assert "delay, ms redeliveryDelay 100 ms 100 ms" in text
    assert "maximum delay, ms maxRedeliveryDelay 1 s 1 s" in text
    assert "expiry, ms expiryDelay never never" in text
    assert "dead-letter address deadLetterAddress MA.DLA MA.DLA" in text


def test_each_value_that_differs_is_marked(destination: Destination, operator: User, viewer: User) -> None:
    meddle(destination, maxDeliveryAttempts=-1, redeliveryDelay=7000, deadLetterAddress="trash")

    text = page_of(signed_in(operator), destination)
    assert "3 values differ" in text and text.count(" differs") == 3
    assert "maxDeliveryAttempts 4 unlimited differs" in text and "redeliveryDelay 100 ms 7 s differs" in text
    assert "deadLetterAddress MA.DLA trash differs" in text
    assert (
        "You don't have permission to do this. Ask an administrator for the permission “Can "
        "change destination”."
    ) in page_of(signed_in(viewer), destination)


def test_the_wanted_is_shown_while_the_broker_cannot_be_asked(
    destination: Destination, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> Any:
        raise BrokerTimeout("no answer within 1.5 s")

    monkeypatch.setattr(policies, "management", away)
    client = signed_in(operator)
    text = page_of(client, destination)
    assert "Cannot read the values from the broker: no answer within 1.5 s" in text
    assert "redeliveryDelay 100 ms —" in text and "differs" not in text
    for action in ("apply", "adopt"):
        assert "Cannot read the policy from the broker:" in looked_at(client, url(destination, action)).text
        assert "Cannot read the policy from the broker:" in said(client, destination, action, {"seen": "x"})
    assert stories() == []


def test_one_that_nothing_receives_from_has_nothing_to_compare(memory: MemoryBroker, operator: User) -> None:
    lone, client = Destination.objects.create(name="shop.lone"), signed_in(operator)

    assert 'id="on-the-broker"' not in client.get(f"/agents/destination/{lone.pk}/change/").content.decode()
    assert (
        "No setting receives messages from this destination, so it does not exist on the broker."
    ) in said(client, lone, "apply", {"seen": ""})
    assert (
        "No setting receives messages from this destination, so it does not exist on the broker."
    ) in looked_at(client, url(lone, "adopt")).text


def test_only_who_may_change_a_destination_may_do_either(
    destination: Destination, operator: User, viewer: User, outsider: User
) -> None:
    meddle(destination, redeliveryDelay=7000)
    for action in ("apply", "adopt"):
        confirmed = seen(signed_in(operator), destination, action)
        for who in (viewer, outsider):
            assert signed_in(who).get(url(destination, action)).status_code == 403
            assert signed_in(who).post(url(destination, action), confirmed).status_code == 403
    assert {each[:2] for each in entries()} == {
        (f"destination.{verb}", "refused") for verb in ("apply", "adopt")
    }
    assert len(entries()) == 4
    assert policies.read_policy(destination)["redeliveryDelay"] == 7000
    assert Destination.objects.get(pk=destination.pk).delay_ms == 100 and stories() == []


def test_apply_writes_what_is_wanted_and_says_so_in_every_history(
    destination: Destination, operator: User, pool: Pool
) -> None:
    made(pool, "mails")
    other = make_setting(pool, "archive", address=destination.name)
    meddle(destination, redeliveryDelay=7000, deadLetterAddress="trash")
    client = signed_in(operator)
    asked = looked_at(client, url(destination, "apply")).text
    assert (
        "For messages already waiting, the policy takes effect at their next failure. A "
        "message that is already delayed keeps its current delay."
    ) in asked and "trash differs" in asked

    assert "Written to the broker: shop.orders" in said(
        client, destination, "apply", seen(client, destination, "apply")
    )
    found = policies.read_policy(destination)
    assert (found["redeliveryDelay"], found["deadLetterAddress"]) == (100, "MA.DLA")
    changes = "deadLetterAddress: trash → MA.DLA; redeliveryDelay: 7000 → 100"
    assert sorted(stories()) == sorted(
        (key, new, changes) for key in ("orders", other.key) for new in ("applying", "applied")
    )
    assert set(StateChange.objects.filter(what="policy").values_list("by", flat=True)) == {operator.pk}
    assert entries() == [("destination.apply", "done", {"begun": True})]
    text = page_of(client, destination)
    assert (
        text.count("Redelivery policy written to the broker") == 1
        and "The policy on the broker is in sync." in text
    )
    assert "Redelivery policy written to the broker" in looked_at(client, "/settings/archive/").text


def test_adopt_makes_what_the_broker_has_the_wish(destination: Destination, operator: User) -> None:
    meddle(
        destination, redeliveryDelay=7000, maxRedeliveryDelay=-1, redeliveryMultiplier=3,
        maxDeliveryAttempts=-1,
        redeliveryCollisionAvoidanceFactor=0.25, expiryDelay=60_000, expiryAddress="trash",
    )  # fmt: skip
    client = signed_in(operator)

    assert "Broker policy adopted" in said(client, destination, "adopt", seen(client, destination, "adopt"))
    destination.refresh_from_db()
    stored = (
        destination.max_attempts, destination.delay_ms, destination.multiplier, destination.max_delay_ms,
        destination.collision_avoidance, destination.expiry_ms,
    )  # fmt: skip
    assert stored == (-1, 7000, 3.0, None, 0.25, 60_000)
    [(key, new, changes)] = stories()
    assert (key, new) == ("orders", "adopted")
    assert entries() == [("destination.adopt", "done", {})]
    assert "redeliveryDelay: 100 → 7000" in changes and "expiryAddress" not in changes
    assert LaunchSetting.objects.get(key="orders").provision_state == "pending"
    # What is the MA's is written by the worker, as after any change.
    provision_due(NOW)
    assert LaunchSetting.objects.get(key="orders").provision_state == "ready"
    assert policies.read_policy(destination)["expiryAddress"] == "MA.DLA"
    assert "The policy on the broker is in sync." in page_of(client, destination)


def test_what_only_the_ma_decides_is_not_adopted(destination: Destination, operator: User) -> None:
    meddle(destination, deadLetterAddress="trash")
    client = signed_in(operator)

    assert (
        "The differing values are always set by the MA, so they cannot be adopted from the broker."
    ) in page_of(client, destination)
    assert (
        "The remaining differences are in values that only the MA sets. Write them to the broker."
    ) in said(client, destination, "adopt", seen(client, destination, "adopt"))
    assert stories() == []


def test_what_is_not_possible_here_is_not_adopted(destination: Destination, operator: User) -> None:
    meddle(destination, redeliveryMultiplier=0.5, redeliveryDelay=9)
    client = signed_in(operator)

    told = said(client, destination, "adopt", seen(client, destination, "adopt"))
    assert "The broker's policy cannot be adopted:" in told and "multiplier:" in told
    assert Destination.objects.get(pk=destination.pk).delay_ms == 100 and stories() == []


@pytest.mark.parametrize("action", ["apply", "adopt"])
def test_what_somebody_did_not_see_is_not_done(destination: Destination, operator: User, action: str) -> None:
    client = signed_in(operator)
    meddle(destination, redeliveryDelay=7000)
    confirmed = seen(client, destination, action)
    meddle(destination, redeliveryDelay=8000)
    assert "Nothing was done: the values have changed since you opened the page." in said(
        client, destination, action, confirmed
    )

    confirmed = seen(client, destination, action)
    Destination.objects.filter(pk=destination.pk).update(delay_ms=200)
    assert "Nothing was done: the values have changed since you opened the page." in said(
        client, destination, action, confirmed
    )
    assert policies.read_policy(destination)["redeliveryDelay"] == 8000
    assert Destination.objects.get(pk=destination.pk).delay_ms == 200 and stories() == []


def test_nothing_is_done_where_nothing_differs(destination: Destination, operator: User) -> None:
    client = signed_in(operator)
    for action in ("apply", "adopt"):
        assert "policy on the broker is already in sync." in said(
            client, destination, action, seen(client, destination, action)
        )
    assert stories() == []


def test_a_broker_that_refuses_is_told_with_its_words(
    destination: Destination, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    meddle(destination, redeliveryDelay=7000)
    client = signed_in(operator)
    confirmed = seen(client, destination, "apply")

    def refused(*_of: Any) -> Any:
        raise BrokerError("not for you")

    monkeypatch.setattr(policies, "apply", refused)
    assert "The broker rejected the policy: not for you." in said(client, destination, "apply", confirmed)
    assert [new for _key, new, _reason in stories()] == ["applying", "apply_failed"]
    assert [each[:2] for each in entries()] == [
        ("destination.apply", "done"),
        ("destination.apply", "refused"),
    ]


@pytest.mark.both_databases
def test_an_apply_that_is_killed_leaves_its_note_and_can_be_done_again(
    destination: Destination, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    meddle(destination, redeliveryDelay=7000)
    client, really = signed_in(operator), apply

    def killed(management: Any, steps: Any) -> Any:
        really(management, steps)
        raise SystemExit

    monkeypatch.setattr(policies, "apply", killed)
    with pytest.raises(SystemExit):
        client.post(url(destination, "apply"), seen(client, destination, "apply"))
    assert [new for _key, new, _reason in stories()] == ["applying"]
    assert entries() == [("destination.apply", "done", {"begun": True})]
    monkeypatch.setattr(policies, "apply", really)
    assert "policy on the broker is already in sync." in said(
        client, destination, "apply", seen(client, destination, "apply")
    )


@pytest.mark.both_databases
@pytest.mark.parametrize("action", ["apply", "adopt"])
def test_nobody_writes_or_adopts_while_a_worker_provisions(
    destination: Destination, operator: User, action: str
) -> None:
    """Nor while somebody else does the other one."""
    meddle(destination, redeliveryDelay=7000)
    client = signed_in(operator)
    confirmed = seen(client, destination, action)
    with lock("provision", policies.HELD_FOR):
        assert "is being provisioned" in said(client, destination, action, confirmed)
    assert policies.read_policy(destination)["redeliveryDelay"] == 7000
    assert Destination.objects.get(pk=destination.pk).delay_ms == 100


@pytest.fixture
def house_broker(artemis: ArtemisService, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.MA_BROKER_STOMP = Account(artemis.stomp_address, artemis.ops.user, artemis.ops.password)
    monkeypatch.setattr(broker_service, "_connection", None)
    yield
    broker_service.management().close()


def test_on_the_real_broker_both_ways(house_broker: None, pool: Pool, operator: User) -> None:
    """With the account of the MA's operations and the answers of the pinned release."""
    destination = made(pool, f"k{os.getpid()}", expiry_ms=90_000, collision_avoidance=0.5, multiplier=1.5)
    client = signed_in(operator)
    assert "The policy on the broker is in sync." in page_of(client, destination)
    meddle(destination, redeliveryDelay=7000, maxRedeliveryDelay=-1, expiryDelay=-1)
    assert "3 values differ" in page_of(client, destination)

    assert "Broker policy adopted" in said(client, destination, "adopt", seen(client, destination, "adopt"))
    destination.refresh_from_db()
    assert (destination.delay_ms, destination.max_delay_ms, destination.expiry_ms) == (7000, None, None)
    provision_due(NOW)
    meddle(destination, maxDeliveryAttempts=2, deadLetterAddress="trash")
    assert "Written to" in said(client, destination, "apply", seen(client, destination, "apply"))
    assert "The policy on the broker is in sync." in page_of(client, destination)

    # It tells nothing of what was never set: what it goes by then is in ADOPTED.
    assert "redeliveryMultiplier" not in policies.read_policy(Destination(name="never.made.by.anybody"))


def test_what_was_changed_on_the_broker_is_told_by_rest_health_and_an_alert_until_it_is_written_again(
    destination: Destination, operator: User, viewer: User
) -> None:
    """Doctor and the page of the destination knew; everybody else said that all is as wanted."""
    start = timezone.now()
    watch_policies(start)
    assert "not in sync" not in looked_at(signed_in(viewer), "/health/").text
    answer = api_client(viewer).get(f"/api/v1/destinations/{destination.name}/").json()
    assert answer.get("on_broker", {}).get("differs_since", "nothing is told") is None
    lines = {line["name"]: line for line in answer["on_broker"]["settings"]}
    assert (lines["maxDeliveryAttempts"]["wanted"], lines["maxDeliveryAttempts"]["found"]) == (4, 4)

    meddle(destination, maxDeliveryAttempts=9, redeliveryDelay=7)
    watch_policies(start + timedelta(seconds=60))
    answer = api_client(viewer).get("/api/v1/destinations/").json()["results"][0]
    differing = {line["name"]: line["found"] for line in answer["on_broker"]["settings"] if line["differs"]}
    assert differing == {"maxDeliveryAttempts": 9, "redeliveryDelay": 7}
    assert f"not in sync: {destination.name}" in looked_at(signed_in(viewer), "/health/").text

    kind = kind_of("policy_drift")
    assert kind is not None
    evaluate_kind(kind, start + timedelta(seconds=70))
    assert not Alert.objects.filter(state="open").exists()
    watch_policies(start + timedelta(seconds=170))
    evaluate_kind(kind, start + timedelta(seconds=185))
    alert = Alert.objects.get(state="open")
    assert alerts_text.says(alert) == (
        f"On the broker, the settings of address {destination.name} differ from the desired settings: "
        "maxDeliveryAttempts, redeliveryDelay."
    )
    assert alerts_text.about(alert) == f"/destinations/{destination.pk}/"

    signed_in(operator).post(url(destination, "apply"), seen(signed_in(operator), destination, "apply"))
    evaluate_kind(kind, timezone.now() + timedelta(seconds=1))
    assert Alert.objects.get().state == "closed"
    assert "not in sync" not in looked_at(signed_in(viewer), "/health/").text


def test_while_the_broker_does_not_answer_nobody_says_that_a_policy_is_right_again(
    destination: Destination, memory: MemoryBroker
) -> None:
    kind = kind_of("policy_drift")
    assert kind is not None
    meddle(destination, maxDeliveryAttempts=9)
    for second in (0, 60, 120):
        watch_policies(NOW + timedelta(seconds=second))
    evaluate_kind(kind, NOW + timedelta(seconds=130))
    memory.crash()
    watch_policies(NOW + timedelta(seconds=600))
    evaluate_kind(kind, NOW + timedelta(seconds=610))
    assert Alert.objects.get().state == "open"


def test_over_rest_the_policy_is_written_or_adopted_as_it_was_seen(
    destination: Destination, operator: User, viewer: User
) -> None:
    client, list_url = api_client(operator), f"/api/v1/destinations/{destination.name}/"
    policy = f"/api/v1/destination-policies/{destination.name}/"
    assert client.get(list_url).json()["on_broker"] is None
    meddle(destination, maxDeliveryAttempts=9)
    watch_policies(NOW)
    seen_then = {"seen": client.get(list_url).json()["on_broker"]["mark"]}
    assert api_client(viewer).post(f"{policy}apply/", seen_then).status_code == 403
    assert client.post(f"{policy}apply/").status_code == 400
    meddle(destination, maxDeliveryAttempts=8)
    for act in ("apply", "adopt"):
        stale = client.post(f"{policy}{act}/", seen_then)
        assert stale.status_code == 409 and stale.json()["what_to_do"]
    watch_policies(NOW)
    seen_now = {"seen": client.get(list_url).json()["on_broker"]["mark"]}
    adopted = client.post(f"{policy}adopt/", seen_now)
    assert (adopted.status_code, adopted.json()["max_attempts"]) == (200, 8)
    provision_due(NOW)
    meddle(destination, maxDeliveryAttempts=7)
    watch_policies(NOW)
    seen_now = {"seen": client.get(list_url).json()["on_broker"]["mark"]}
    written = client.post(f"{policy}apply/", seen_now).json()["on_broker"]
    assert written["differs_since"] is None and policies.read_policy(destination)["maxDeliveryAttempts"] == 8
    assert api_client(operator).post("/api/v1/destination-policies/none/apply/", seen_now).status_code == 404
