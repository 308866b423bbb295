"""Pages of alerts, their buttons and REST: who sees what, who may do what, on the server."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Pool
from alerts import operations
from alerts.models import Alert, AlertRule, AlertTransition
from alerts.rules import Thresholds
from alerts.sources import every_kind
from tests.web.alerts import Heat, heat
from tests.web.pages import Elements
from tests.web.rows import api_client
from tests.web.test_notices import target_of

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>\u202etxt"
HOUR = timedelta(hours=1)


@pytest.fixture
def quick(pool: Pool) -> Iterator[Heat]:
    with heat(pool, Thresholds(80.0, 60.0)) as oven:
        yield oven


@pytest.fixture
def alert(quick: Heat) -> Alert:
    quick.values = {HOSTILE: 90}
    quick.look(timezone.now() - HOUR / 2)
    return Alert.objects.get()


def client_of(person: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(person)
    return client


def seen(client: Client, path: str) -> Elements:
    answer = client.get(path)
    assert answer.status_code == 200, answer.status_code
    return Elements(answer.content.decode())


def test_the_list_shows_what_is_open_since_when_how_much_and_what_to_do(alert: Alert, viewer: User) -> None:
    page = seen(client_of(viewer), "/alerts/")
    for part in (
        "critical",
        "Heat",
        "90 degrees hot",
        "30 min ago",
        "90°",
        "Open a window.",
        "No closed alerts yet.",
    ):
        assert part in page.text
    assert page.inline_scripts == 0
    assert "/servers/" in page.links() and f"/alerts/{alert.pk}/" in page.links()


def test_an_empty_list_says_what_will_come(viewer: User) -> None:
    assert "No open alerts." in seen(client_of(viewer), "/alerts/").text


def test_the_badge_counts_what_is_open_and_not_snoozed_for_who_may_see_it(
    alert: Alert, viewer: User, operator: User, outsider: User
) -> None:
    assert "Alerts 1" in seen(client_of(viewer), "/trips/").text
    assert "Alerts" not in seen(client_of(outsider), "/").text
    operations.snooze(alert, timezone.now() + HOUR, operator, "", timezone.now())
    assert "Alerts 1" not in seen(client_of(viewer), "/trips/").text
    Alert.objects.all().delete()
    Alert.objects.bulk_create(
        Alert(kind="heat", subject=str(number), severity=2, state="open", opened_at=timezone.now())
        for number in range(150)
    )
    with CaptureQueriesContext(connection) as asked:
        assert "Alerts 99+" in seen(client_of(viewer), "/trips/").text
    (counting,) = [query["sql"] for query in asked if "alerts_alert" in query["sql"]]
    assert "LIMIT 100" in counting


def test_one_alert_shows_everything_that_happened_and_who_was_told(
    alert: Alert, quick: Heat, pool: Pool, viewer: User, operator: User
) -> None:
    target_of(pool, "https://hooks.example.org/secret-path")
    quick.look(timezone.now() + 2 * HOUR)
    operations.snooze(
        Alert.objects.get(), timezone.now() + HOUR, operator, f"we know {HOSTILE}", timezone.now()
    )
    page = seen(client_of(viewer), f"/alerts/{alert.pk}/")
    for part in ("Opened", "Still open", "Snoozed", "operator", "we know", "Open a window.", "demo"):
        assert part in page.text
    assert "https://hooks.example.org/…" in page.text and "secret-path" not in page.text
    assert page.inline_scripts == 0 and "Can snooze and close alerts" in page.text


def test_closed_ones_are_a_history_in_pages_by_key(quick: Heat, viewer: User) -> None:
    at = timezone.now()
    Alert.objects.bulk_create(
        Alert(
            kind="heat", subject=f"oven-{number}", facts={"name": f"oven-{number}"}, severity=2,
            state="closed",
            opened_at=at - timedelta(hours=number + 2), closed_at=at - timedelta(hours=number),
        )
        for number in range(120)
    )  # fmt: skip
    client, found, path = client_of(viewer), [], "/alerts/"
    for _ in range(3):
        answer = client.get(path)
        found += [row.alert.subject for row in answer.context["rows"]]
        path = f"/alerts/?{answer.context['listed'].older}"
    assert found == [f"oven-{number}" for number in range(120)]


def test_the_lists_are_narrowed_by_kind_and_pool(alert: Alert, quick: Heat, viewer: User) -> None:
    Pool.objects.create(name="other")
    client = client_of(viewer)
    for query, count in (
        ("kind=heat", 1),
        ("kind=trip", 0),
        ("pool=demo", 1),
        ("pool=other", 0),
        ("pool=nobody", 0),
    ):
        answer = client.get(f"/alerts/?{query}")
        assert len(answer.context["open"]) == count, query
    quick.pools = frozenset()
    quick.values = {"everywhere": 90}
    quick.look(timezone.now())
    assert "everywhere" in seen(client, "/alerts/?pool=other").text


def test_an_operator_snoozes_and_closes_with_a_reason(alert: Alert, operator: User) -> None:
    client = client_of(operator)
    assert client.get(f"/alerts/{alert.pk}/snooze/").status_code == 200
    assert Alert.objects.get().state == "open"

    client.post(f"/alerts/{alert.pk}/snooze/", {"until_0": "4h", "reason": "lunch"})
    alert.refresh_from_db()
    assert alert.state == "snoozed" and alert.snoozed_until is not None
    assert timedelta(hours=3, minutes=59) < alert.snoozed_until - timezone.now() <= timedelta(hours=4)
    assert "operator" in seen(client, "/alerts/").text

    client.post(f"/alerts/{alert.pk}/close/", {"reason": "mended"})
    alert.refresh_from_db()
    assert (alert.state, alert.by_hand) == ("closed", True)
    rows = AlertTransition.objects.order_by("pk").values_list("step", "by__username", "reason")
    assert list(rows) == [
        ("opened", None, ""),
        ("snoozed", "operator", "lunch"),
        ("closed", "operator", "mended"),
    ]
    again = client.post(f"/alerts/{alert.pk}/close/", {"reason": "twice"}, follow=True)
    assert "The alert is already closed." in again.content.decode()


def test_a_snooze_until_a_date_needs_one_and_takes_none_of_the_past(alert: Alert, operator: User) -> None:
    client, path = client_of(operator), f"/alerts/{alert.pk}/snooze/"
    assert "Enter the end time." in client.post(path, {"until_0": "at"}).content.decode()
    past = client.post(path, {"until_0": "at", "until_1": "2020-01-01T10:00"}, follow=True)
    assert "in the past" in past.content.decode()
    assert Alert.objects.get().state == "open"
    when = timezone.now() + timedelta(days=3)
    client.post(path, {"until_0": "at", "until_1": when.strftime("%Y-%m-%dT%H:%M")})
    assert Alert.objects.get().snoozed_until == when.replace(second=0, microsecond=0)


@pytest.mark.parametrize(("name", "looks"), [("viewer", 200), ("outsider", 403)])
def test_others_change_nothing(
    alert: Alert, name: str, looks: int, viewer: User, outsider: User, operator: User
) -> None:
    person = {"viewer": viewer, "outsider": outsider}[name]
    client, rest = client_of(person), api_client(person)
    assert [client.get(path).status_code for path in ("/alerts/", f"/alerts/{alert.pk}/")] == [looks, looks]
    for act, data in (("snooze", {"until_0": "1h"}), ("close", {})):
        assert client.get(f"/alerts/{alert.pk}/{act}/").status_code == 403
        assert client.post(f"/alerts/{alert.pk}/{act}/", data).status_code == 403
        assert (
            rest.post(f"/api/v1/alerts/{alert.pk}/{act}/", {"until": "2100-01-01T00:00Z"}).status_code == 403
        )
    assert rest.get("/api/v1/alerts/").status_code == looks
    strict = client_of(operator, enforce_csrf_checks=True)
    assert strict.post(f"/alerts/{alert.pk}/close/", {}).status_code == 403
    assert Alert.objects.get().state == "open"


def test_who_is_not_signed_in_is_asked_to(alert: Alert, client: Client) -> None:
    for path in (
        "/alerts/",
        f"/alerts/{alert.pk}/",
        f"/alerts/{alert.pk}/snooze/",
        f"/alerts/{alert.pk}/close/",
    ):
        assert client.get(path)["Location"].startswith("/login/")
    assert api_client().get("/api/v1/alerts/").status_code == 401


def test_the_pages_are_russian(alert: Alert, operator: User) -> None:
    client = client_of(operator, headers={"accept-language": "ru"})
    for path in (
        "/alerts/",
        f"/alerts/{alert.pk}/",
        f"/alerts/{alert.pk}/snooze/",
        f"/alerts/{alert.pk}/close/",
    ):
        text = seen(client, path).text
        assert "Оповещения" in text
        for word in ("Alert", "Snooze", "Close", "Since", "reminder"):
            assert word not in text, (path, word)


def test_over_rest_alerts_are_listed_narrowed_and_told_whole(alert: Alert, viewer: User) -> None:
    client = api_client(viewer)
    (row,) = client.get("/api/v1/alerts/?open=true&kind=heat&pool=demo").json()["results"]
    assert (row["id"], row["severity"], row["state"], row["pools"], row["value"], row["what_to_do"]) == (
        alert.pk, "bad", "open", ["demo"], 90.0, "Open a window.",
    )  # fmt: skip
    assert client.get("/api/v1/alerts/?open=false").json()["results"] == []
    assert client.get("/api/v1/alerts/?colour=red").status_code == 400
    assert client.get("/api/v1/alerts/?kind=cold").status_code == 400
    whole = client.get(f"/api/v1/alerts/{alert.pk}/").json()
    assert [step["step"] for step in whole["transitions"]] == ["opened"]
    assert client.get("/api/v1/alerts/999999/").status_code == 404


def test_over_rest_an_alert_is_snoozed_and_closed(alert: Alert, operator: User) -> None:
    client, path = api_client(operator), f"/api/v1/alerts/{alert.pk}"
    until = (timezone.now() + HOUR).isoformat()
    assert client.post(f"{path}/snooze/", {"reason": "no end"}).status_code == 400
    assert client.post(f"{path}/snooze/", {"until": "2020-01-01T00:00:00Z"}).status_code == 409
    snoozed = client.post(f"{path}/snooze/", {"until": until, "reason": "known"}).json()
    assert (snoozed["state"], snoozed["transitions"][0]["by"]) == ("snoozed", "operator")
    assert client.post(f"{path}/close/", {"colour": "red"}).status_code == 400
    closed = client.post(f"{path}/close/", {"reason": "mended"}).json()
    assert (closed["state"], closed["transitions"][0]["reason"]) == ("closed", "mended")
    refused = client.post(f"{path}/close/", {})
    assert (refused.status_code, refused.json()["error"]) == (409, "alert_is_closed")


def test_the_list_of_rules_shows_the_built_in_ones_too(pool: Pool, operator: User, viewer: User) -> None:
    path = "/alerts/alertrule/"
    page = seen(client_of(operator), path)
    assert "Built-in rules" in page.text
    for kind in every_kind():
        assert str(kind.label) in page.text
    assert "Spool filling up 80 30 s 60 1 min percent of the limit" in page.text
    assert "/alerts/alertrule/add/?kind=spool_filling" in page.links()
    chosen = client_of(operator).get("/alerts/alertrule/add/?kind=spool_filling").content.decode()
    assert '<option value="spool_filling" selected>' in chosen

    AlertRule.objects.create(kind="spool_filling", pool=pool, upper=70)
    rule = AlertRule.objects.create(kind="spool_filling", upper=50)
    links = seen(client_of(operator), path).links()
    assert f"/alerts/alertrule/{rule.pk}/change/" in links
    assert "/alerts/alertrule/add/?kind=spool_filling" not in links
    assert not [url for url in seen(client_of(viewer), path).links() if "add/" in url]


def test_bounds_are_changed_in_the_admin_and_crossed_ones_are_refused(pool: Pool, operator: User) -> None:
    client, path = client_of(operator), "/alerts/alertrule/add/"
    assert "Server not responding" in client.get(path).content.decode()
    fields = {"kind": "spool_filling", "pool": pool.pk, "watched": "on"}
    assert (
        "Rule not saved: the closing threshold is above the opening threshold. Lower the closing threshold."
    ) in client.post(path, {**fields, "upper": "50", "lower": "70"}).content.decode()
    client.post(path, {**fields, "upper": "50"})
    assert (AlertRule.objects.get().upper, AlertRule.objects.get().pool) == (50.0, pool)
    assert (
        "Rule not saved: a rule for this kind and pool already exists. Edit that rule instead."
        in client.post(path, {**fields, "upper": "60"}).content.decode()
    )
    assert client.get("/alerts/alertrule/").status_code == 200


def test_an_alert_of_a_kind_that_is_gone_is_shown_all_the_same(viewer: User) -> None:
    Alert.objects.create(kind="of old", subject="thing", severity=1, state="open", opened_at=timezone.now())
    assert "thing" in seen(client_of(viewer), "/alerts/").text
    assert api_client(viewer).get("/api/v1/alerts/").json()["results"][0]["says"] == "thing"


@pytest.mark.parametrize("facts", [{}, {"server": None, "dead": "many", "queue": 7}])
def test_facts_that_another_version_wrote_break_no_page(facts: dict[str, Any], viewer: User) -> None:
    at = timezone.now()
    for kind in every_kind():
        Alert.objects.create(
            kind=kind.name, subject=f"of {kind.name}", severity=2, state="open", opened_at=at, facts=facts
        )
    assert "of dead_letters_growing" in seen(client_of(viewer), "/alerts/").text
    for alert in Alert.objects.all():
        seen(client_of(viewer), f"/alerts/{alert.pk}/")
