"""What needs attention: one row per setting, server or component, its alerts, and counts that agree."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agents.models import BreakerTrip, FoundPolicy, LaunchSetting
from alerts.models import Alert, Severity
from alerts.sources import every_kind, kind_of
from alerts.sources.subscriptions import drifting_policies
from ma_site.pages.attention import COMPONENTS
from ma_site.pages.need import MOST_REASONS, SERVER, Alerted, Need, by_subject, with_alerts
from tests.web.factories import World
from tests.web.pages import Elements, broker_answers, broker_figures, looked_at, signed_in


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    broker_answers(monkeypatch, broker_figures(dead=0, waiting=0, delayed=0))
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 0)
    return signed_in(world, "operator")


def needs_on(client: Client, address: str = "/") -> list[tuple[str, list[str]]]:
    return [
        (row.worst.who, [str(need.why) for need in row.reasons])
        for row in client.get(address).context["needs"]
    ]


def make_alert(kind: str, subject: str, **values: object) -> Alert:
    fields = {"severity": Severity.WARNING, "state": "open", "opened_at": timezone.now(), **values}
    return Alert.objects.create(kind=kind, subject=subject, **fields)


def need(
    who: str, tone: str = "warn", why: str = "", acts: Sequence[tuple[str, str]] = (), *kinds: str
) -> Need:
    return Need(tone, "warn", who, why, f"/{who}/", acts, says_kinds=frozenset(kinds))


def test_a_subject_is_one_row_with_its_worst_reason_first_and_the_worst_row_is_first() -> None:
    rows = by_subject(
        [need("a", "warn", "old"), need("b", "info"), need("c", "bad", "off"), need("a", "bad", "tripped")]
    )

    assert [(row.worst.who, [each.why for each in row.reasons]) for row in rows] == [
        ("c", ["off"]),
        ("a", ["tripped", "old"]),
        ("b", [""]),
    ]


def test_a_server_and_a_setting_of_one_name_are_two_rows() -> None:
    server = Need("bad", "silent", "a", "silent", "/servers/a/", (), SERVER)

    assert len(by_subject([need("a"), server])) == 2


def test_a_row_offers_a_button_once_and_says_how_many_reasons_it_leaves_out() -> None:
    acts = [("Open", "/a/"), ("Enable…", "/a/enable/")]
    [row] = by_subject([need("a", "warn", str(number), acts) for number in range(MOST_REASONS + 3)])

    assert [len(each.acts) for each in row.reasons] == [2] + [0] * (MOST_REASONS - 1)
    assert row.more == 3


def test_an_alert_that_says_what_stands_there_gives_it_its_link_and_its_tone() -> None:
    alert = Alerted("hot", need("a", "bad", "too hot", [("Open", "/a/")]), ("Alert", "/alerts/7/"))

    [said] = with_alerts([need("a", "warn", "hot", [("Open", "/a/")], "hot")], [alert])
    assert (said.why, said.tone, list(said.acts)) == (
        "hot",
        "bad",
        [("Open", "/a/"), ("Alert", "/alerts/7/")],
    )
    for other in (need("a", "warn", "hot"), need("b", "warn", "hot", [], "hot")):
        assert [each.why for each in with_alerts([other], [alert])] == ["hot", "too hot"]


def test_every_alert_of_a_component_is_known_by_its_kind() -> None:
    assert set(COMPONENTS) <= {kind.name for kind in every_kind()}


def test_an_open_alert_is_a_reason_of_its_server_with_a_link_to_it(client: Client, world: World) -> None:
    assert world.alert
    found = dict(needs_on(client))
    assert len(found["srv-4"]) == 1, "what the alert says stands there already"
    assert f"/alerts/{world.alert.pk}/" in looked_at(client, "/").links()

    facts = {"server": "srv-4", "bytes": 9, "rows": 1}
    make_alert("spool_filling", "srv-4", server=world.servers["srv-4"], facts=facts, value=91)
    reasons = dict(needs_on(client))["srv-4"]
    assert len(reasons) == 2 and reasons[1].startswith("Spool filling up: ")


def test_an_alert_without_a_need_is_a_row_and_one_that_is_snoozed_is_none(
    client: Client, world: World
) -> None:
    setting = world.settings["mail-send"]
    alert = make_alert(
        "waits_for_person", "mail-send", setting=setting, facts={"setting": "mail-send", "attempt": 3}
    )
    [reason] = dict(needs_on(client))["mail-send"]
    assert reason.startswith("Waiting for an operator: ")
    page = looked_at(client, "/")
    assert {f"/alerts/{alert.pk}/", "/settings/mail-send/waiting/"} <= set(page.links())

    Alert.objects.filter(pk=alert.pk).update(state="snoozed")
    assert "mail-send" not in dict(needs_on(client))


def test_a_trip_and_its_alert_are_one_reason(client: Client, world: World) -> None:
    assert world.launches
    trip = world.launches.trip
    facts = {"setting": trip.setting.key, "trip": trip.pk, "type": "IndexError"}
    make_alert("trip", str(trip.pk), severity=Severity.BAD, setting=trip.setting, facts=facts, value=1)

    [reason] = dict(needs_on(client))[trip.setting.key]
    assert reason.startswith("disabled by the breaker")


def test_what_concerns_several_settings_is_a_row_by_its_cause(client: Client) -> None:
    told = {"fingerprint": "v1:1", "type": "KeyError", "place": "a.py:1", "settings": ["a", "b"]}
    facts = {**told, "others": 0, "count": 40, "before": 2}
    make_alert("fingerprint_growing", "v1:1", severity=Severity.BAD, facts=facts, value=20)

    assert dict(needs_on(client))["KeyError"][0].startswith("Failures increasing: ")


def test_the_list_and_the_badge_name_the_same_number(client: Client, world: World) -> None:
    for number in range(3):
        make_alert(
            "policy_drift", f"address-{number}", facts={"address": f"address-{number}", "differing": ["x"]}
        )
    text = looked_at(client, "/").text

    assert "Alerts 4" in text and "open alerts: 4" in text
    rows = client.get("/").context["needs"]
    linked = {
        url for row in rows for each in row.reasons for _text, url in each.acts if url.startswith("/alerts/")
    }
    assert len(linked) == 4


def test_who_may_not_see_alerts_sees_none_of_them(client: Client, world: World) -> None:
    operator = world.people["operator"]
    group = operator.groups.get()
    group.permissions.remove(*group.permissions.filter(codename="view_alert"))

    page = looked_at(client, "/")
    assert "open alerts" not in page.text
    assert not [url for url in page.links() if url.startswith("/alerts/")]
    assert "srv-4" in dict(needs_on(client)), "the server itself is silent"


def test_many_alerts_are_one_question(client: Client) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get("/")
        return len(queries)

    asked()
    few = asked()
    for number in range(30):
        make_alert("policy_drift", f"a-{number}", facts={"address": f"a-{number}", "differing": ["x"]})
    assert asked() == few
    html = client.get("/").content.decode()
    assert "?needs=all" in html and len(needs_on(client)) == 16 < len(needs_on(client, "/?needs=all"))


def test_what_differs_on_the_broker_leads_to_its_destination(client: Client, world: World) -> None:
    destination = world.settings["mail-send"].subscribed
    since = timezone.now() - timedelta(minutes=9)
    for address in (destination.name, "MA.DLA"):
        FoundPolicy.objects.create(address=address, differing=["maxSizeBytes"], differs_since=since)
    found = {each.subject: each for each in drifting_policies(timezone.now(), frozenset())}

    assert found[destination.name].pools == {world.settings["mail-send"].pool_id}
    facts = [found[address].facts for address in (destination.name, "MA.DLA")]
    kind = kind_of("policy_drift")
    assert kind is not None
    expected = [reverse("admin:destination", args=[destination.pk]), "/health/"]
    assert [kind.url(each) for each in facts] == expected


def test_a_setting_is_counted_as_tripped_as_disabled_by_somebody_or_as_never_enabled(
    client: Client, world: World
) -> None:
    text = looked_at(client, "/").text
    for words in ("1 setting disabled by the breaker", "1 disabled manually", "1 never enabled"):
        assert words in text
    listed = {
        kind: Elements(client.get(f"/settings/?state={kind}").content.decode()).links()
        for kind in ("tripped", "manual", "never")
    }
    assert "/settings/returns/" in listed["tripped"] and "/settings/stock-sync/" not in listed["tripped"]
    assert "/settings/stock-sync/" in listed["manual"]
    assert "/settings/prices-import/" in listed["never"]

    LaunchSetting.objects.filter(key="prices-import").update(enablings=1)
    assert "2 disabled manually" in looked_at(client, "/").text
    BreakerTrip.objects.update(ended_at=timezone.now() - timedelta(minutes=1))
    text = looked_at(client, "/").text
    assert "0 settings disabled by the breaker" in text and "3 disabled manually" in text
