"""Who gets what: severity, hours, installation; what an address that asks for a pause gets; what is shown of
secrets."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from standardwebhooks import Webhook

from agents.models import BreakerTrip, LaunchSetting, Pool, Server
from agents.settings.enable import disable_setting, enable_setting
from agents.state_history import why_of
from alerts import operations
from alerts.models import Alert, Event, Notice, NoticeState, NoticeTarget
from alerts.models.notice import PAGERDUTY_URL
from alerts.notices import recipients
from alerts.notices.delivery import PAUSES, send_due, send_test
from alerts.notices.events import watch_dead_letters
from alerts.notices.operations import ResendNotice, save_target
from alerts.rules import SAME, Thresholds
from console.audit.models import AuditEntry
from console.operations.operation import perform
from console.operations.refusals import NotAllowed, Refused
from dlq.models import LetterQueue, ReplayJob
from dlq.replay.worker.endings import finish
from tests.web.alerts import heat
from tests.web.listeners import Hook, listening_hook
from tests.web.rows import NOW, api_client, make_alive
from tests.web.teams import teammate
from tests.web.test_breaker_trips import give_up, started
from tests.web.test_notices import target_of, tripped

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
AT_ONCE = Thresholds(80.0, 60.0)
SECRET_URL = "https://hooks.slack.com/services/T0/B0/q1w2e3"
KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def hook() -> Iterator[Hook]:
    with listening_hook() as hook:
        yield hook


def recipient(hook: Hook, name: str, channel: str = "standard", **fields: Any) -> NoticeTarget:
    """Without a setting or a pool: of the installation."""
    target = NoticeTarget(channel=channel, address=f"{hook.url}{name}/", **fields)
    target.full_clean()
    save_target(target)
    return target


def heard(hook: Hook) -> list[tuple[str, str]]:
    """Name of the recipient and the event, in order."""
    found = []
    for path, _headers, body in hook.heard:
        said = json.loads(body)
        found.append(
            (path.split("/")[-2], said.get("type") or said.get("event_action") or said.get("event", ""))
        )
    return found


# -- events --------------------------------------------------------------------------------------------------


def test_enabling_and_disabling_are_events_of_standard_webhooks_alone(
    setting: LaunchSetting, server: Server, hook: Hook, operator: User
) -> None:
    make_alive(server, now=NOW)
    all_events = recipient(hook, "all")
    recipient(hook, "old", channel="webhook")
    enable_setting(setting, operator, NOW)
    disable_setting(setting, operator, why_of(operator, "night"), NOW)

    assert send_due(NOW) == 2

    assert heard(hook) == [("all", "setting.enabled"), ("all", "setting.disabled")]
    ids = [headers["webhook-id"] for _path, headers, _body in hook.heard]
    assert len(set(ids)) == 2
    said = json.loads(hook.heard[1][2])["data"]
    assert (said["setting"], said["by"]) == ("orders", operator.username)
    assert "night" in json.dumps(said["reason"])
    assert all_events.notices.count() == 2


def test_what_is_rolled_back_is_no_event(setting: LaunchSetting, server: Server, hook: Hook) -> None:
    recipient(hook, "all")

    with pytest.raises(Refused):  # no heartbeat has told of its agent
        LaunchSetting.objects.update(provision_state="failed")
        enable_setting(LaunchSetting.objects.get(pk=setting.pk), None, NOW)

    assert not Event.objects.exists()


def test_a_trip_tells_of_its_end_where_something_is_open(
    setting: LaunchSetting, server: Server, second_server: Server, hook: Hook
) -> None:
    for channel in ("standard", "pagerduty", "slack", "webhook"):
        recipient(hook, channel, channel, secret=KEY if channel == "pagerduty" else "")
    make_alive(server, second_server, now=NOW)
    (run,) = started(setting).values()
    give_up(run)
    send_due(NOW + timedelta(hours=1))
    first = {name for name, _event in _trips_of(hook)}

    enable_setting(setting, None, NOW + timedelta(hours=1))
    send_due(NOW + timedelta(hours=1))

    assert first == {"standard", "pagerduty", "slack", "webhook"}
    ended = [pair for pair in heard(hook) if pair[1] in ("setting.trip_ended", "resolve")]
    assert sorted(ended) == [("pagerduty", "resolve"), ("standard", "setting.trip_ended")]


def _trips_of(hook: Hook) -> list[tuple[str, str]]:
    found = []
    for path, _headers, body in hook.heard:
        if b"setting.enabled" not in body and b"setting.disabled" not in body:
            found.append((path.split("/")[-2], body.decode()))
    return found


def test_a_trip_that_is_opened_again_triggers_again_what_was_resolved(
    setting: LaunchSetting, hook: Hook
) -> None:
    target = recipient(hook, "duty", "pagerduty", secret=KEY)
    target_of(setting, hook.url + "mail/")
    trip = tripped(setting)
    BreakerTrip.objects.filter(pk=trip.pk).update(ended_at=NOW)
    trip.refresh_from_db()
    recipients.create_end_notices(trip, NOW)
    BreakerTrip.objects.filter(pk=trip.pk).update(ended_at=None, reopened=1)
    trip.refresh_from_db()

    again = recipients.create_notices(trip, NOW)
    send_due(NOW)

    assert [notice.target for notice in again] == [target]
    assert [event for name, event in heard(hook) if name == "duty"] == ["trigger", "resolve", "trigger"]
    assert recipients.create_notices(trip, NOW) == []


def test_the_first_dead_letter_of_a_setting_is_an_event_until_its_queue_is_empty(
    setting: LaunchSetting, hook: Hook
) -> None:
    recipient(hook, "all")
    queue = LetterQueue.objects.create(queue="DLQ.orders", broker_count=0)
    found = []
    for count in (0, 3, 5, None, 4, 0, 0, 1):
        LetterQueue.objects.filter(pk=queue.pk).update(broker_count=count)
        found.append(watch_dead_letters(NOW))

    assert found == [0, 1, 0, 0, 0, 0, 0, 1]
    send_due(NOW)
    assert heard(hook) == [("all", "dead_letters.first")] * 2
    assert json.loads(hook.heard[0][2])["data"]["count"] == 3


def test_the_end_of_a_replay_is_an_event_with_its_state(setting: LaunchSetting, hook: Hook) -> None:
    recipient(hook, "all")
    job = ReplayJob.objects.create(
        setting=setting, setting_key=setting.key, scope="all", state="running",
        holder="00000000-0000-0000-0000-000000000001",
    )  # fmt: skip

    finish(job, NOW)
    finish(ReplayJob.objects.get(), NOW)
    send_due(NOW)

    ((_name, event),) = heard(hook)
    said = json.loads(hook.heard[0][2])["data"]
    assert (event, said["replay"], said["state"], said["setting"]) == (
        "replay.ended", str(job.pk), "done", "orders",
    )  # fmt: skip


def test_an_alert_goes_to_standard_webhooks_signed_with_the_same_id_in_each_repetition(
    pool: Pool, hook: Hook
) -> None:
    target = recipient(hook, "all")
    hook.answers = [500]
    with heat(pool, AT_ONCE) as oven:
        oven.values["oven"] = 90.0
        oven.look(NOW)
        now = datetime.now(NOW.tzinfo)
        Notice.objects.update(next_at=now)
        send_due(now)
        send_due(now + PAUSES[0])

    (_, first, body), (_, again, _) = hook.heard
    assert first["webhook-id"] == again["webhook-id"]
    said = Webhook(target.secret).verify(body, first)
    assert (said["type"], said["data"]["kind"]) == ("alert.opened", "heat")


# -- severity and owner --------------------------------------------------------------------------------------


def test_each_recipient_gets_its_severity_and_what_is_graver(
    setting: LaunchSetting, server: Server, hook: Hook
) -> None:
    make_alive(server, now=NOW)
    for name, least in (("all", 0), ("warning", 1), ("critical", 2)):
        recipient(hook, name, least_severity=least)
    enable_setting(setting, None, NOW)
    LetterQueue.objects.create(queue="DLQ.orders", broker_count=1)
    watch_dead_letters(NOW)
    tripped(setting)

    send_due(NOW)

    names = [name for name, _event in heard(hook)]
    assert {name: names.count(name) for name in set(names)} == {"all": 3, "warning": 2, "critical": 1}


def test_a_recipient_of_the_installation_gets_the_trips_of_every_pool(
    setting: LaunchSetting, pool: Pool, hook: Hook
) -> None:
    recipient(hook, "everywhere", "webhook")
    target_of(Pool.objects.create(name="other"), hook.url + "other/")
    tripped(setting)

    send_due(NOW)

    assert heard(hook) == [("everywhere", "trip")]


def test_the_same_service_of_pagerduty_is_told_once_and_two_services_each(
    setting: LaunchSetting, pool: Pool, hook: Hook
) -> None:
    for owner, key in (({"setting": setting}, KEY), ({"pool": pool}, KEY), ({}, KEY[::-1])):
        recipient(hook, "duty", "pagerduty", secret=key, **owner)
    tripped(setting)

    send_due(NOW)

    keys = [json.loads(body)["routing_key"] for _path, _headers, body in hook.heard]
    assert sorted(keys) == sorted([KEY, KEY[::-1]])


# -- hours ---------------------------------------------------------------------------------------------------

# NOW is a moment of a day; these begin in two hours, in the zone of the site.
HOURS = {
    "hours_from": (NOW + timedelta(hours=2)).time(),
    "hours_until": (NOW + timedelta(hours=4)).time(),
}


def test_outside_its_hours_a_recipient_waits_and_a_test_does_not(setting: LaunchSetting, hook: Hook) -> None:
    target = recipient(hook, "day", "webhook", **HOURS)
    tripped(setting)

    assert send_due(NOW) == 0
    notice = Notice.objects.get()
    assert (notice.state, notice.held, notice.attempts) == ("pending", True, 0)
    assert notice.next_at == NOW + timedelta(hours=2)
    assert send_test(target, None, NOW).state == NoticeState.SENT
    assert send_due(NOW + timedelta(hours=2)) == 1
    assert heard(hook) == [("day", "test"), ("day", "trip")]


def test_what_is_over_when_the_hours_begin_is_nobody_s_business(
    pool: Pool, hook: Hook, operator: User
) -> None:
    recipient(hook, "day", "webhook", **HOURS)
    with heat(pool, AT_ONCE) as oven:
        oven.values["oven"] = 90.0
        oven.look(NOW)
        send_due(NOW)
        operations.close(Alert.objects.get(), operator, "known", NOW)
        send_due(NOW)
        send_due(NOW + timedelta(hours=2))

    assert hook.heard == []
    assert set(Notice.objects.values_list("state", flat=True)) == {NoticeState.SKIPPED}


def test_what_waited_for_hours_that_were_removed_is_not_sent_when_it_is_over(
    pool: Pool, hook: Hook, operator: User
) -> None:
    recipient(hook, "day", "webhook", **HOURS)
    with heat(pool, AT_ONCE) as oven:
        oven.values["oven"] = 90.0
        oven.look(NOW)
        send_due(NOW)
        NoticeTarget.objects.update(hours_from=None, hours_until=None)
        operations.close(Alert.objects.get(), operator, "known", NOW)
        send_due(NOW + timedelta(hours=2))

    assert hook.heard == []


def test_an_incident_is_resolved_outside_the_hours_too(pool: Pool, hook: Hook, operator: User) -> None:
    recipient(hook, "duty", "pagerduty", secret=KEY, **HOURS)
    within, after = NOW + timedelta(hours=3), NOW + timedelta(hours=5)
    with heat(pool, AT_ONCE) as oven:
        oven.values["oven"] = 90.0
        oven.look(within)
        assert send_due(within) == 1
        operations.close(Alert.objects.get(), operator, "known", after)
        assert send_due(after) == 1

    assert [event for _name, event in heard(hook)] == ["trigger", "resolve"]


def test_an_incident_is_not_triggered_after_it_was_resolved(pool: Pool, hook: Hook, operator: User) -> None:
    recipient(hook, "duty", "pagerduty", secret=KEY)
    hook.answers = [500]
    with heat(pool, AT_ONCE) as oven:
        oven.values["oven"] = 90.0
        oven.look(NOW)
        send_due(NOW)
        operations.close(Alert.objects.get(), operator, "known", NOW)
        send_due(NOW + timedelta(seconds=1))
        send_due(NOW + PAUSES[0])

    assert [event for _name, event in heard(hook)] == ["trigger", "resolve"]
    assert list(Notice.objects.order_by("pk").values_list("state", flat=True)) == ["skipped", "sent"]


def test_an_alert_that_may_come_back_is_told_when_the_hours_begin(pool: Pool, hook: Hook) -> None:
    recipient(hook, "day", "webhook", **HOURS)
    begin = NOW + timedelta(hours=2)
    with heat(pool, AT_ONCE) as oven:
        oven.values["oven"] = 90.0
        oven.look(NOW)
        send_due(NOW)
        oven.values["oven"] = 10.0
        oven.look(begin - SAME / 2)
        send_due(begin)
        oven.values["oven"] = 90.0
        oven.look(begin + SAME / 4)
        send_due(begin + SAME)

    assert [json.loads(body)["step"] for _path, _headers, body in hook.heard] == ["opened"]


# -- an address that asks for a pause ------------------------------------------------------------------------


def test_an_address_that_asks_for_a_pause_gets_nothing_before(setting: LaunchSetting, hook: Hook) -> None:
    target_of(setting, hook.url)
    trip = tripped(setting)
    BreakerTrip.objects.filter(pk=trip.pk).update(ended_at=NOW)
    tripped(setting)
    hook.answers = [(429, "600")]

    assert send_due(NOW) == 0
    assert send_due(NOW + timedelta(seconds=599)) == 0
    assert len(hook.heard) == 1
    assert send_due(NOW + timedelta(seconds=600)) == 2


# -- alertmanager without one: what keeps it open ------------------------------------------------------------


def test_an_alert_that_comes_back_stays_open_and_one_that_stays_away_is_resolved(
    pool: Pool, hook: Hook
) -> None:
    recipient(hook, "am", "alertmanager")
    quick = Thresholds(80.0, 60.0)
    minute = timedelta(minutes=1)
    ends = []
    with heat(pool, quick) as oven:
        for at, value in ((0, 90.0), (1, 10.0), (5, 90.0), (40, 10.0)):
            oven.values["oven"] = value
            oven.look(NOW + at * minute)
            send_due(NOW + at * minute)
        send_due(NOW + 40 * minute + SAME)
    for _path, _headers, body in hook.heard:
        (alert,) = json.loads(body)
        ends.append(datetime.fromisoformat(alert["endsAt"]) - NOW)

    assert ends[-1] == 40 * minute
    assert all(end > 40 * minute or end >= 10 * minute for end in ends[:-1])
    assert not Notice.objects.filter(state=NoticeState.ACTIVE).exists()


def test_what_is_kept_open_ends_with_its_target(pool: Pool, hook: Hook) -> None:
    target = recipient(hook, "am", "alertmanager")
    with heat(pool, AT_ONCE) as oven:
        oven.values["oven"] = 90.0
        oven.look(NOW)
        send_due(NOW)
        target.delete()
        send_due(NOW + timedelta(hours=1))

    assert Notice.objects.get().state == NoticeState.SENT and len(hook.heard) == 1


# -- sent again ----------------------------------------------------------------------------------------------


def test_what_failed_is_sent_again_by_who_may_edit_and_leaves_an_entry(
    setting: LaunchSetting, hook: Hook, operator: User, viewer: User
) -> None:
    target_of(setting, hook.url)
    tripped(setting)
    Notice.objects.update(state=NoticeState.FAILED, attempts=8, problem="answered 500")
    notice = Notice.objects.get()

    with pytest.raises(NotAllowed):
        perform(ResendNotice, notice, viewer)
    perform(ResendNotice, notice, operator, NOW)
    with pytest.raises(Refused, match="still being sent"):
        perform(ResendNotice, notice, operator, NOW)
    assert send_due(NOW) == 1

    notice.refresh_from_db()
    assert (notice.state, notice.attempts, notice.problem) == ("sent", 1, "")
    assert list(AuditEntry.objects.order_by("pk").values_list("action", "result")) == [
        ("notice.resend", "refused"), ("notice.resend", "done"), ("notice.resend", "refused"),
    ]  # fmt: skip


def test_rest_lists_what_was_sent_and_sends_it_again(
    setting: LaunchSetting, hook: Hook, operator: User
) -> None:
    target = target_of(setting, hook.url)
    trip = tripped(setting)
    send_due(NOW)
    client = api_client(operator)

    (found,) = client.get(f"/api/v1/notices/?target={target.pk}&state=sent").json()["results"]
    assert (found["event"], found["subject"], found["attempts"]) == ("setting.tripped", f"trip:{trip.pk}", 1)
    told = client.post(f"/api/v1/notices/{found['id']}/resend/")
    assert (told.status_code, told.json()["state"]) == (200, "pending")
    assert client.get("/api/v1/notices/?state=sent").json()["results"] == []
    assert client.get(f"/api/v1/notices/?target={2**63}").status_code == 400


# -- what is shown -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("channel", "address"),
    [
        ("slack", SECRET_URL),
        ("teams", SECRET_URL),
        ("alertmanager", "https://ma:q1w2e3@hooks.slack.com"),
        ("webhook", "https://ma:q1w2e3@hooks.slack.com/x"),
    ],
)
def test_an_address_that_is_a_secret_is_shown_to_nobody(
    setting: LaunchSetting,
    server: Server,
    second_server: Server,
    operator: User,
    client: Client,
    channel: str,
    address: str,
) -> None:
    made = api_client(operator).post(
        "/api/v1/notice-targets/",
        {"setting": setting.key, "channel": channel, "address": address},
        format="json",
    )
    target = NoticeTarget.objects.get()
    make_alive(server, second_server, now=NOW)
    (run,) = started(setting).values()
    give_up(run)
    trip = BreakerTrip.objects.get()
    chief = User.objects.create_superuser("chief", password="not-a-secret-in-tests")
    client.force_login(chief)

    seen = [made.content.decode()]
    for page in (
        f"/settings/{setting.key}/", f"/trips/{trip.pk}/", "/notices/", f"/notices/?target={target.pk}",
        f"/notices/{Notice.objects.get().pk}/", "/audit/", f"/alerts/noticetarget/{target.pk}/change/",
        reverse("admin:alerts_noticetarget_changelist"),
    ):  # fmt: skip
        answer = client.get(page)
        assert answer.status_code == 200, page
        seen.append(answer.content.decode())
    for route in (f"trips/{trip.pk}", "notice-targets", f"notice-targets/{target.pk}", "notices"):
        seen.append(api_client(chief).get(f"/api/v1/{route}/").content.decode())
    seen.append(json.dumps(list(AuditEntry.objects.values_list("detail", flat=True))))
    assert not [text for text in seen if "q1w2e3" in text]
    searched = client.get(reverse("admin:alerts_noticetarget_changelist") + "?q=q1w2").content.decode()
    assert "hooks.slack.com" not in searched


def test_the_routing_key_of_pagerduty_is_entered_and_never_shown(operator: User, client: Client) -> None:
    rest = api_client(operator)
    said = {"channel": "pagerduty", "routing_key": KEY}
    made = rest.post("/api/v1/notice-targets/", said, format="json")
    target = NoticeTarget.objects.get()

    assert made.status_code == 201, made.content
    assert (target.secret, target.address, made.json()["secret"]) == (KEY, PAGERDUTY_URL, "")
    client.force_login(operator)
    page = client.get(f"/alerts/noticetarget/{target.pk}/change/").content.decode()
    assert "routing_key" in page and KEY not in page
    changed = {"routing_key": KEY[::-1], "address": PAGERDUTY_URL, "least_severity": "2"}
    assert client.post(f"/alerts/noticetarget/{target.pk}/change/", changed).status_code == 302
    target.refresh_from_db()
    assert (target.secret, target.least_severity) == (KEY[::-1], 2)
    assert client.post(f"/alerts/noticetarget/{target.pk}/change/", changed | {"routing_key": ""})
    target.refresh_from_db()
    assert target.secret == KEY[::-1]
    assert KEY not in json.dumps(list(AuditEntry.objects.values_list("detail", flat=True)))


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"channel": "pagerduty"}, "address"),
        ({"channel": "slack", "address": ""}, "address"),
        ({"channel": "webhook", "address": "http://127.0.0.1:99999/"}, "address"),
        ({"channel": "slack", "address": SECRET_URL, "routing_key": KEY}, "routing_key"),
        ({"channel": "slack", "address": SECRET_URL, "weekdays": "21"}, "weekdays"),
        ({"channel": "slack", "address": SECRET_URL, "hours_from": "09:00"}, "hours_from"),
        ({"channel": "slack", "address": SECRET_URL, "time_zone": "Mars/Base"}, "time_zone"),
        ({"channel": "slack", "address": SECRET_URL, "least_severity": "fatal"}, "least_severity"),
        ({"channel": "carrier pigeon", "address": SECRET_URL}, "channel"),
    ],
)
def test_what_is_wrongly_entered_is_refused_with_its_field(
    operator: User, said: dict[str, str], field: str
) -> None:
    told = api_client(operator).post("/api/v1/notice-targets/", said, format="json")

    assert (told.status_code, told.json()["where"]) == (400, field)
    assert not NoticeTarget.objects.exists()


def test_only_who_may_edit_every_setting_chooses_recipients_of_the_installation(
    pool: Pool, viewer: User, groups: None
) -> None:
    said = {"channel": "slack", "address": SECRET_URL}
    for who in (viewer, teammate(pool)):
        assert api_client(who).post("/api/v1/notice-targets/", said, format="json").status_code == 403
    assert not NoticeTarget.objects.exists()


def test_the_installation_has_a_most_of_its_own(hook: Hook) -> None:
    for number in range(20):
        recipient(hook, str(number), "webhook")
    with pytest.raises(ValidationError, match="20 recipients"):
        recipient(hook, "more", "webhook")


def test_the_log_asks_the_same_of_one_and_of_many(
    setting: LaunchSetting, hook: Hook, operator: User, client: Client
) -> None:
    client.force_login(operator)
    asked = []
    for _ in range(2):
        for number in range(5):
            target_of(setting, f"{hook.url}{Notice.objects.count()}/{number}/")
        tripped(setting)
        BreakerTrip.objects.update(ended_at=NOW)
        NoticeTarget.objects.update(setting=None, pool=setting.pool)
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/notices/").status_code == 200
        asked.append(len(queries))

    assert Notice.objects.count() == 15 and asked[0] == asked[1]


def test_the_log_says_event_state_problem_and_next_attempt(
    setting: LaunchSetting, hook: Hook, operator: User, client: Client
) -> None:
    target_of(setting, hook.url)
    tripped(setting)
    hook.answers = [500]
    send_due(NOW)
    client.force_login(operator)

    page = client.get("/notices/?event=trip&state=pending").content.decode()

    assert "Breaker trip: orders" in page and "answered 500" in page
    assert "No results." in client.get("/notices/?event=alert").content.decode()
