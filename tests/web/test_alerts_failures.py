"""What is watched of failures: new kinds, kinds that returned after their fix, kinds that grow. Never a
storm."""

import json
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import LaunchSetting, Pool
from alerts import text as alerts_text
from alerts.evaluation import evaluate_kind
from alerts.models import Alert, AlertTransition
from alerts.sources import kind_of
from alerts.sources.error_groups import LEAST
from failures.error_groups import known_errors, merges
from failures.error_groups.rollup import fold_all
from failures.models import FailureDelta, Fingerprint, FingerprintHour
from tests.web.rows import NOW, make_setting

pytestmark = pytest.mark.django_db(transaction=True)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
LONG_AGO = NOW - timedelta(days=30)


def failed(fingerprint: str, at: datetime = NOW, count: int = 1, key: str = "orders", **facts: str) -> None:
    """So many of one kind in one batch, as the intake notes them, and counted."""
    FailureDelta.objects.create(
        setting_key=key, activation_uuid=uuid4(), server_name="srv-1", fingerprint=fingerprint,
        hour=at.replace(minute=0, second=0, microsecond=0), received_at=at, first_at=at, last_at=at,
        latest=uuid4(),
        count=count, **{"exception_type": "builtins.KeyError", "place": "orders.py:handle", **facts},
    )  # fmt: skip
    fold_all(at)


@pytest.fixture(autouse=True)
def grown_up(setting: LaunchSetting) -> LaunchSetting:
    """A setting that has worked for a month, and failed in it."""
    LaunchSetting.objects.update(created_at=LONG_AGO)
    failed("of old", LONG_AGO)
    return setting


def look(kind: str, now: datetime = NOW) -> None:
    found = kind_of(kind)
    assert found is not None
    evaluate_kind(found, now)


def opened(kind: str) -> list[str]:
    return sorted(Alert.objects.filter(kind=kind, state="open").values_list("subject", flat=True))


def test_a_new_kind_is_one_alert_wherever_it_comes(pool: Pool, grown_up: LaunchSetting) -> None:
    look("fingerprint_new")
    assert opened("fingerprint_new") == []
    failed("v1:a", count=3)
    look("fingerprint_new")
    alert = Alert.objects.get()
    assert (alert.subject, alert.setting, list(alert.pools.all())) == ("v1:a", grown_up, [pool])
    assert alerts_text.says(alert) == "New error: builtins.KeyError · orders.py:handle, 3 times in orders."
    assert alerts_text.about(alert) == "/fingerprint/?of=v1%3Aa"
    assert alerts_text.alert_label(alert) == "New error group" and (
        "Check the failures of the group, then add a note with the cause and the recommended "
        "action. The alert closes automatically a day after the first failure, or when a note "
        "is added."
    ) in alerts_text.what_to_do(alert)

    other = Pool.objects.create(name="other")
    make_setting(other, "invoices", address="t.invoices")
    LaunchSetting.objects.update(created_at=LONG_AGO)
    failed("v1:a", NOW + MINUTE, 4, key="invoices")
    look("fingerprint_new", NOW + MINUTE)
    alert.refresh_from_db()
    assert (Alert.objects.count(), alert.setting, alert.value) == (1, None, 7.0)
    assert alerts_text.says(alert).endswith("7 times in invoices, orders.")


def test_a_new_kind_is_over_a_day_later_or_when_it_is_in_the_book_or_merged(operator: User) -> None:
    for name in ("v1:a", "v1:b", "v1:c"):
        failed(name)
    look("fingerprint_new")
    assert opened("fingerprint_new") == ["v1:a", "v1:b", "v1:c"]
    known_errors.write("v1:a", known_errors.KnownErrorFields(ticket="OPS-1"), by=operator, now=NOW)
    merges.merge("v1:b", "of old", by=operator, now=NOW)
    look("fingerprint_new", NOW + HOUR)
    assert opened("fingerprint_new") == ["v1:c"]
    look("fingerprint_new", NOW + 25 * HOUR)
    assert opened("fingerprint_new") == []
    # That is told to nobody: it was news, not a fault that could end.
    assert set(AlertTransition.objects.exclude(step="opened").values_list("notices", flat=True)) == {None}


def test_the_first_hours_of_a_setting_are_one_alert_also_when_they_are_over(pool: Pool) -> None:
    make_setting(pool, "young", address="t.young", created_at=NOW - HOUR)
    for number in range(30):
        failed(f"v1:{number}", key="young")
    look("fingerprint_new")
    alert = Alert.objects.get()
    assert (alert.subject, alerts_text.says(alert)) == (
        "setting:young", "30 error groups appeared in the first hours after young started.",
    )  # fmt: skip
    assert alerts_text.about(alert) == "/settings/young/"
    assert alerts_text.alert_label(alert) == "New error groups"
    assert "Check the failures on the setting page" in alerts_text.what_to_do(
        alert
    ) and "Check the failures of the group" not in alerts_text.what_to_do(alert)
    look("fingerprint_new", NOW + 10 * HOUR)
    assert opened("fingerprint_new") == ["setting:young"]
    failed("v1:later", NOW + 10 * HOUR, key="young")
    look("fingerprint_new", NOW + 10 * HOUR)
    assert opened("fingerprint_new") == ["setting:young", "v1:later"]


def test_the_first_hours_of_an_installation_are_one_alert_per_setting() -> None:
    Fingerprint.objects.all().delete()
    for number in range(30):
        failed(f"v1:{number}", NOW + number * MINUTE)
    look("fingerprint_new", NOW + HOUR)
    assert opened("fingerprint_new") == ["setting:orders"]


def test_a_storm_of_new_kinds_is_ten_and_one() -> None:
    for number in range(50):
        failed(f"v1:{number}", count=number + 1)
    look("fingerprint_new")
    subjects = opened("fingerprint_new")
    assert len(subjects) == 11
    # Those that came most have one of their own.
    assert {f"v1:{number}" for number in range(40, 50)} | {""} == set(subjects)
    assert alerts_text.says(Alert.objects.get(subject="")) == "40 more alerts of this kind"
    look("fingerprint_new", NOW + 2 * HOUR)
    assert opened("fingerprint_new") == subjects


def test_what_comes_after_it_was_fixed_is_an_alert_until_it_is_fixed_again(
    operator: User, viewer: User, client: Client
) -> None:
    failed("v1:a", NOW - 3 * HOUR)
    known_errors.write(
        "v1:a", known_errors.KnownErrorFields(ticket="OPS-17"), by=operator, now=NOW - 2 * HOUR
    )
    known_errors.fixed("v1:a", "2.0", by=operator, now=NOW - HOUR)
    look("fingerprint_returned")
    assert opened("fingerprint_returned") == []
    failed("v1:a", NOW - MINUTE)
    look("fingerprint_returned")
    alert = Alert.objects.get()
    assert alerts_text.says(alert) == (
        "An error marked as fixed recurred: builtins.KeyError · orders.py:handle in orders. (OPS-17)"
    )
    assert alerts_text.measured(alert) == ""
    assert "Value" not in alerts_text.alert_email(alert.transitions.get())[1]
    client.force_login(viewer)
    assert "Value" not in client.get(f"/alerts/{alert.pk}/").content.decode()
    assert 'data-label="Value">—</td>' in client.get("/alerts/").content.decode()
    known_errors.fixed("v1:a", "2.1", by=operator, now=NOW + MINUTE)
    look("fingerprint_returned", NOW + 2 * MINUTE)
    assert opened("fingerprint_returned") == []


def test_what_returned_under_another_fingerprint_that_was_merged_returned_too(
    operator: User, pool: Pool
) -> None:
    failed("v1:a", NOW - 3 * HOUR)
    failed("v1:b", NOW - 3 * HOUR)
    merges.merge("v1:b", "v1:a", by=operator, now=NOW - 2 * HOUR)
    known_errors.fixed("v1:a", "", by=operator, now=NOW - HOUR)
    failed("v1:b", NOW - MINUTE)
    look("fingerprint_returned")
    assert opened("fingerprint_returned") == ["v1:a"]
    assert list(Alert.objects.get().pools.all()) == [pool]


def test_what_returned_and_was_quiet_for_a_day_is_over(operator: User) -> None:
    failed("v1:a", NOW - 3 * HOUR)
    known_errors.fixed("v1:a", "", by=operator, now=NOW - 2 * HOUR)
    failed("v1:a", NOW - HOUR)
    look("fingerprint_returned")
    assert opened("fingerprint_returned") == ["v1:a"]
    look("fingerprint_returned", NOW + 24 * HOUR)
    assert opened("fingerprint_returned") == []


def test_a_kind_that_comes_three_times_as_often_as_an_hour_ago_is_an_alert() -> None:
    failed("v1:a", NOW - 90 * MINUTE, 40)
    Fingerprint.objects.filter(pk="v1:a").update(received_at=LONG_AGO)
    failed("v1:a", NOW - 30 * MINUTE, 119)
    for minute in (0, 2):
        look("fingerprint_growing", NOW + minute * timedelta(seconds=1))
    look("fingerprint_growing", NOW)
    assert opened("fingerprint_growing") == []
    failed("v1:a", NOW - 20 * MINUTE, 20)
    look("fingerprint_growing", NOW)
    look("fingerprint_growing", NOW + 61 * timedelta(seconds=1))
    alert = Alert.objects.get(kind="fingerprint_growing")
    assert (alert.state, alert.subject) == ("open", "v1:a")
    assert "in orders." in alerts_text.says(alert) and alert.value >= 3
    # An hour later nothing comes any more.
    for minute in (70, 81):
        look("fingerprint_growing", NOW + minute * MINUTE)
    assert opened("fingerprint_growing") == []


@pytest.mark.parametrize("minute", [0, 1, 15, 30, 45, 59])
def test_an_even_stream_never_grows_wherever_in_the_hour_it_is_looked_at(minute: int) -> None:
    for hour in range(4):
        failed("v1:a", NOW - hour * HOUR, 600)
    failed("v1:a", NOW, 0)
    Fingerprint.objects.filter(pk="v1:a").update(received_at=LONG_AGO)

    FingerprintHour.objects.filter(fingerprint="v1:a", hour=NOW).update(count=10 * minute)
    look("fingerprint_growing", NOW + minute * MINUTE)
    kind = kind_of("fingerprint_growing")
    assert kind is not None
    (seen,) = [each for each in kind.observe(NOW + minute * MINUTE, frozenset()) if each.subject == "v1:a"]
    assert seen.value is not None and 0.98 <= seen.value <= 1.02


def test_few_failures_are_no_growth_and_a_new_kind_is_told_as_new_only() -> None:
    failed("v1:few", NOW - 30 * MINUTE, 3 * LEAST - 1)
    Fingerprint.objects.update(received_at=LONG_AGO)
    failed("v1:new", NOW - 30 * MINUTE, 1000)
    for second in (0, 61):
        look("fingerprint_growing", NOW + timedelta(seconds=second))
    assert opened("fingerprint_growing") == []
    look("fingerprint_new")
    assert opened("fingerprint_new") == ["v1:new"]


def test_a_hostile_type_is_one_line_and_no_text_of_a_failure_is_told() -> None:
    failed("v1:a", exception_type="Bad\r\nSubject: x", place="p" * 300, headline="card 4111 of Anna")
    look("fingerprint_new")
    row = AlertTransition.objects.get()
    subject, text = alerts_text.alert_email(row)
    told = json.dumps(alerts_text.alert_webhook_body(row)) + subject + text
    assert "\n" not in subject and "\r" not in text and "Anna" not in told and len(subject) <= 200


def test_a_number_stays_whole_where_the_line_of_an_alert_is_broken() -> None:
    assert alerts_text.one_line("1\N{NO-BREAK SPACE}204  a\r\n\tb ") == "1\N{NO-BREAK SPACE}204 a b"


def test_looking_asks_as_much_for_many_kinds_as_for_few(operator: User) -> None:
    def asked() -> list[int]:
        counts = []
        for name in ("fingerprint_new", "fingerprint_returned", "fingerprint_growing"):
            kind = kind_of(name)
            assert kind is not None
            with CaptureQueriesContext(connection) as queries:
                list(kind.observe(NOW, frozenset()))
            counts.append(len(queries))
        return counts

    failed("v1:0", NOW - HOUR, 30)
    known_errors.fixed("of old", "", by=operator, now=LONG_AGO)
    failed("of old", NOW)
    few = asked()
    for number in range(1, 40):
        failed(f"v1:{number}", NOW - HOUR, 30)
    assert asked() == few and max(few) <= 8
