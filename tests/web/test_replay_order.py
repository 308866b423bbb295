"""Replays in the order of publishing: what people ask for, what is said of a subscription that is held, and
releasing it."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from agents.models import Hold, LaunchSetting
from agents.provisioning import queue_counts
from alerts import text as alert_text
from alerts.evaluation import evaluate_kind
from alerts.models import Alert, AlertRule
from alerts.sources import kind_of
from console.audit.models import AuditEntry
from console.operations.operation import perform
from console.operations.refusals import NotAllowed, Refused
from dlq.models import DeadLetter, JobState, ReplayJob
from dlq.replay.operations import ReleaseReplay
from dlq.replay.worker import hold
from tests.web import letters, reports
from tests.web.factories import World
from tests.web.pages import Elements, broker_answers, broker_figures, looked_at, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
REPLAYS, PREFLIGHT = "/api/v1/replays/", "/api/v1/preflight/"
READS = ("dlq.view_deadletter", "dlq.view_replayjob")
MINUTE = timedelta(minutes=1)


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def letter(orders: LaunchSetting) -> DeadLetter:
    return letters.dead("orders", 10, "ID:10")


@pytest.fixture
def operator() -> APIClient:
    client = APIClient()
    person = reports.person("operator", *READS, "dlq.give_back", "dlq.discard", "dlq.redirect")
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(person)["Authorization"])
    return client


def asked(letter: DeadLetter, **more: Any) -> dict[str, Any]:
    return {"setting": "orders", "letters": [letter.pk], **more}


def codes(answer: Any) -> list[str]:
    return [each["code"] for each in answer.json()["warnings"]]


def holding(setting: LaunchSetting, **fields: Any) -> ReplayJob:
    """It has held the subscription for a minute, and does so for another hour."""
    now = timezone.now()
    held = {"hold": "held", "held_at": now - MINUTE, "hold_until": now + 60 * MINUTE, "state": "running"}
    job = ReplayJob.objects.create(
        setting=setting, setting_key=setting.key, target_key=setting.key, scope="all", in_order="ahead",
        hold_minutes=60, **held | fields,
    )  # fmt: skip
    LaunchSetting.objects.filter(pk=setting.pk).update(hold=Hold.AHEAD, held_by=job.pk)
    setting.refresh_from_db()
    return job


# -- asking for it -------------------------------------------------------------------------------------------


def test_who_goes_ahead_acknowledges_the_hold(operator: APIClient, letter: DeadLetter) -> None:
    LaunchSetting.objects.update(ordered=True)
    ahead = asked(letter, in_order="ahead", hold_minutes=5)
    flight = operator.post(PREFLIGHT, ahead)
    assert codes(flight) == ["no_consumer", "hold"]
    said = flight.json()["warnings"][1]
    assert (said["n"], said["of"]) == (5, 0) and (
        "These messages are processed before the waiting ones. Meanwhile, the subscription is "
        "held for up to 5 minutes."
    ) in said["text"]
    refused = operator.post(REPLAYS, ahead | {"acknowledge": ["no_consumer"]})
    assert (refused.status_code, refused.json()["warnings"]) == (409, ["hold"])
    job = operator.post(REPLAYS, ahead | {"acknowledge": ["no_consumer", "hold"]}).json()
    assert {name: job[name] for name in ("in_order", "hold_minutes", "hold", "held_at", "hold_until")} == {
        "in_order": "ahead", "hold_minutes": 5, "hold": "wanted", "held_at": None, "hold_until": None,
    }  # fmt: skip
    assert (job["target_queue"], job["target"]) == ("orders.ahead", "orders")


def test_who_goes_behind_holds_nothing_and_is_out_of_an_order(
    operator: APIClient, letter: DeadLetter
) -> None:
    behind = asked(letter, in_order="behind")
    assert codes(operator.post(PREFLIGHT, behind)) == ["no_consumer"]
    LaunchSetting.objects.update(ordered=True)
    assert codes(operator.post(PREFLIGHT, behind)) == ["no_consumer", "ordered"]
    job = operator.post(REPLAYS, behind | {"acknowledge": ["no_consumer", "ordered"]}).json()
    assert (job["in_order"], job["hold_minutes"], job["hold"], job["target_queue"]) == (
        "behind",
        0,
        "",
        "orders",
    )


def test_a_hold_lasts_an_hour_at_most_where_nobody_says_more(operator: APIClient, letter: DeadLetter) -> None:
    told = operator.post(REPLAYS, asked(letter, in_order="ahead", acknowledge=["no_consumer", "hold"]))
    assert told.json()["hold_minutes"] == 60


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"in_order": "sideways"}, "invalid"),
        ({"in_order": "ahead", "hold_minutes": 0}, "invalid"),
        ({"in_order": "ahead", "hold_minutes": 1441}, "invalid"),
        ({"in_order": "behind", "hold_minutes": 5}, "bad_options"),
        ({"hold_minutes": 5}, "bad_options"),
        ({"in_order": "behind", "action": "discard", "reason": "x"}, "bad_options"),
    ],
)
def test_what_means_nothing_is_refused_by_the_preflight_as_by_the_job(
    operator: APIClient, letter: DeadLetter, more: dict[str, Any], error: str
) -> None:
    job, flight = (operator.post(path, asked(letter, **more)) for path in (REPLAYS, PREFLIGHT))
    assert (
        (job.status_code, job.json()["error"]) == (flight.status_code, flight.json()["error"]) == (400, error)
    )


def test_more_than_fit_into_one_piece_are_refused_in_order_alone(
    operator: APIClient, letter: DeadLetter, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.dead("orders", 11, "ID:11")
    monkeypatch.setattr("dlq.replay.requests.MOST_IN_ORDER", 1)
    every = {"setting": "orders", "all": True}
    assert operator.post(PREFLIGHT, every).status_code == 200
    told = operator.post(PREFLIGHT, every | {"in_order": "behind"})
    assert (told.status_code, told.json()["error"], told.json()["limit"]) == (400, "too_many_in_order", 1)


def test_a_standalone_setting_has_no_subscription_to_hold(operator: APIClient, letter: DeadLetter) -> None:
    LaunchSetting.objects.update(kind="standalone", destination=None)
    flight = operator.post(PREFLIGHT, asked(letter, in_order="ahead")).json()
    assert (flight["going"], flight["skipped"], flight["warnings"]) == (0, {"no_subscription": 1}, [])


@pytest.mark.parametrize("in_order", ["", "behind", "ahead"])
def test_while_another_replay_holds_the_subscription_whoever_comes_there_is_told(
    operator: APIClient, orders: LaunchSetting, letter: DeadLetter, in_order: str
) -> None:
    holding(orders)
    told = codes(operator.post(PREFLIGHT, asked(letter, in_order=in_order)))
    assert told[-1] == "held_by_another"
    bin_ = asked(letter, action="discard", reason="x")
    assert codes(operator.post(PREFLIGHT, bin_)) == []


def test_the_command_asks_for_an_order(operator: APIClient, letter: DeadLetter) -> None:
    how = ("--setting", "orders", "--as", "operator", str(letter.pk), "--in-order", "ahead")
    out = StringIO()
    call_command("dlq", "preflight", *how, "--hold-minutes", "7", stdout=out)
    assert (
        "warning    hold: These messages are processed before the waiting ones. "
        "Meanwhile, the subscription is held for up to 7 minutes" in out.getvalue()
    )
    begun = StringIO()
    more = ("--reason", "x", "--acknowledge", "all", "--hold-minutes", "7", "--json")
    call_command("dlq", "replay", *how, *more, stdout=begun, stderr=StringIO())
    job = json.loads(begun.getvalue())
    assert (job["in_order"], job["hold_minutes"]) == ("ahead", 7)
    shown = StringIO()
    call_command("dlq", "job", job["id"], "--as", "operator", stdout=shown)
    assert "in order   ahead\n" in shown.getvalue()


# -- the page that asks --------------------------------------------------------------------------------------

KEY = "mail-send"
BACK = f"/dead-letters/{KEY}/give-back/"


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    broker_answers(monkeypatch, broker_figures(waiting=4, delayed=0, in_delivery=0))
    return signed_in(world, "operator")


def ticks(page: Elements) -> list[str]:
    return [
        str(each["value"]) for tag, each in page.found if tag == "input" and each.get("name") == "acknowledge"
    ]


def begun(world: World) -> ReplayJob:
    return ReplayJob.objects.exclude(pk__in=[world.job.pk]).get(setting_key=KEY)  # type: ignore[union-attr]


def test_the_page_offers_three_orders_and_asks_for_the_hold_once_it_is_chosen(
    world: World, client: Client
) -> None:
    page = looked_at(client, f"{BACK}?all=1")
    values = [each["value"] for tag, each in page.found if tag == "option"]
    assert [value for value in values if value in ("", "behind", "ahead")] == ["", "behind", "ahead"]
    assert "recommended" not in page.text and "hold" not in ticks(page)
    sent = {"all": "1", "acknowledge": ticks(page), "in_order": "ahead", "hold_minutes": "30"}
    again = client.post(BACK, sent)
    page = Elements(again.content.decode())
    assert "The job was not started: acknowledge the warnings below first." in page.text and "hold" in ticks(
        page
    )
    assert (
        "Meanwhile 4 messages wait in the subscription. Publishing continues; new messages wait too."
    ) in page.text
    client.post(BACK, sent | {"acknowledge": ticks(page)})
    job = begun(world)
    assert (job.in_order, job.hold_minutes, job.hold) == ("ahead", 30, "wanted")
    text = looked_at(client, f"/replays/{job.pk}/").text
    assert "before the waiting messages" in text and "30 min" in text


def test_minutes_count_only_for_those_who_go_ahead(world: World, client: Client) -> None:
    page = looked_at(client, f"{BACK}?all=1")
    client.post(BACK, {"all": "1", "acknowledge": ticks(page), "in_order": "behind", "hold_minutes": "30"})
    job = begun(world)
    assert (job.in_order, job.hold_minutes, job.hold) == ("behind", 0, "")


def test_an_order_is_recommended_to_a_setting_that_keeps_one(world: World, client: Client) -> None:
    LaunchSetting.objects.filter(key=KEY).update(ordered=True)
    page = looked_at(client, f"{BACK}?all=1")
    assert page.text.count("(recommended)") == 2
    names = [str(each.get("name")) for tag, each in page.found if tag in ("input", "select")]
    assert names.index("in_order") < names.index("per_second")


@pytest.mark.parametrize("part", ["discard", "put-back"])
def test_what_goes_to_no_agent_has_no_order(world: World, part: str) -> None:
    page = looked_at(signed_in(world, "chief"), f"/dead-letters/{KEY}/{part}/?all=1")
    assert "in_order" not in [each.get("name") for tag, each in page.found if tag == "select"]


# -- what is said of a subscription that is held -------------------------------------------------------------


def test_each_page_of_the_setting_says_who_holds_it_and_until_when(world: World, client: Client) -> None:
    job = holding(world.settings[KEY])
    for path in (f"/settings/{KEY}/", f"/settings/{KEY}/waiting/", f"{BACK}?all=1", "/settings/", "/"):
        page = looked_at(client, path)
        assert f"/replays/{job.pk}/" in page.links(), path
        assert f"replay {str(job.pk)[:8]}" in page.text, path
        assert "59 min" in page.text or "1 h" in page.text, path
    assert (
        "is on hold: replayed messages are processed before the waiting messages."
        in looked_at(client, f"/settings/{KEY}/").text
    )
    ReplayJob.objects.update(state="paused", paused_at=timezone.now())
    assert "The replay is paused." in looked_at(client, f"/settings/{KEY}/").text


def test_rest_says_of_a_setting_which_replay_holds_it(orders: LaunchSetting) -> None:
    client, who = APIClient(), reports.person("viewer", "agents.view_launchsetting")
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(who)["Authorization"])

    def told() -> dict[str, Any]:
        found = client.get("/api/v1/settings/orders/").json()
        return {name: found[name] for name in ("hold", "held_by")}

    assert told() == {"hold": "", "held_by": None}
    job = holding(orders)
    assert told() == {"hold": "ahead", "held_by": str(job.pk)}


def test_who_may_see_no_replays_is_told_without_a_link(world: World) -> None:
    job = holding(world.settings[KEY])
    person = Client()
    person.force_login(reports.person("clerk", "agents.view_launchsetting"))
    page = looked_at(person, f"/settings/{KEY}/")
    assert str(job.pk)[:8] not in page.text and f"/replays/{job.pk}/" not in page.links()
    assert "is on hold: replayed messages are processed before the waiting messages." in page.text


def test_the_replay_says_how_far_its_hold_is(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues: list[str] = []

    def count(queue: str) -> int:
        queues.append(queue)
        return 3

    monkeypatch.setattr("dlq.pages.holds.message_count", count)
    job = holding(world.settings[KEY])
    path = f"/replays/{job.pk}/"
    text = looked_at(client, path).text
    assert (
        f"The subscription of {KEY} is on hold" in text
        and "3 messages still come before the waiting messages." in text
    )
    assert "Ends automatically in 59 min" in text or "Ends automatically in 1 h" in text
    assert queues == [f"{KEY}.ahead"]

    ReplayJob.objects.filter(pk=job.pk).update(hold="wanted")
    assert (
        "is being put on hold. Messages are moved once its consumers have closed."
        in looked_at(client, path).text
    )
    ReplayJob.objects.filter(pk=job.pk).update(hold="ending")
    text = looked_at(client, path).text
    assert "The subscription is already being released." in text and "Ends automatically" not in text
    ReplayJob.objects.filter(pk=job.pk).update(hold="over", state="done")
    text = looked_at(client, path).text
    assert (
        f"The subscription of {KEY}" not in text
        and "messages still come before the waiting messages." not in text
    )
    assert queues == [f"{KEY}.ahead"] * 2


def test_while_the_broker_does_not_answer_the_replay_says_no_number(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlq.pages.holds.message_count", lambda _queue: None)
    text = looked_at(client, f"/replays/{holding(world.settings[KEY]).pk}/").text
    assert (
        f"The subscription of {KEY} is on hold" in text
        and "message still comes before the waiting messages." not in text
    )


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (hold.HELD_BY_ANOTHER, "The job is waiting: the subscription is on hold for another replay."),
        (hold.LETTING_GO, "The job is waiting until the consumers release the subscription."),
        (hold.HANDLED_AHEAD, "The job is waiting until the moved messages are processed."),
        (hold.HOLD_ENDING, "The job is waiting for the subscription to be released."),
    ],
)
def test_why_it_waits_is_said_in_words(world: World, client: Client, why: str, said: str) -> None:
    first = holding(world.settings[KEY])
    job = ReplayJob.objects.create(
        setting=world.settings[KEY], setting_key=KEY, target_key=KEY, scope="one", in_order="ahead",
        hold="wanted", state="running", wait_reason=why, lease_until=timezone.now() + MINUTE,
        held_at=None if why == hold.HELD_BY_ANOTHER else timezone.now(),
        hold_until=timezone.now() + MINUTE,
    )  # fmt: skip
    page = looked_at(client, f"/replays/{job.pk}/")
    assert said in page.text
    assert (f"/replays/{first.pk}/" in page.links()) == (why == hold.HELD_BY_ANOTHER)


def test_the_consumers_of_a_held_subscription_are_those_beside_it(
    orders: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    class Broker:
        def attributes(self, *names: str) -> tuple[int, ...]:
            asked.append(names)
            return 5, 1, 0, 0

        def attribute(self, *names: str) -> int:
            asked.append(names)
            return 2

    monkeypatch.setattr(queue_counts, "management", Broker)
    assert queue_counts.queue_figures(orders, timezone.now()).consumers == 0
    holding(orders)
    found = queue_counts.queue_figures(orders, timezone.now())
    assert (found.waiting, found.consumers) == (4, 2)
    assert ("queue.orders.ahead", "ConsumerCount") in asked


# -- releasing it --------------------------------------------------------------------------------------------


def release(job: ReplayJob, by: Any = None, **given: Any) -> None:
    perform(ReleaseReplay, job, by, **given)


def test_a_person_ends_a_hold_before_its_time(
    operator: APIClient, orders: LaunchSetting, sent: list[str]
) -> None:
    job = holding(orders)
    before = timezone.now()
    told = operator.post(f"{REPLAYS}{job.pk}/release/", {"reason": "too long"})
    assert told.status_code == 200, told.content
    job.refresh_from_db()
    assert job.hold_until is not None and before <= job.hold_until <= timezone.now()
    assert (job.hold, job.state, sent) == ("held", "running", [str(job.pk)])
    assert hold.is_over(job, timezone.now())
    entry = AuditEntry.objects.get(action="replay.release")
    assert (entry.by_name, entry.reason, entry.result) == ("operator", "too long", "done")
    again = operator.post(f"{REPLAYS}{job.pk}/release/", {})
    assert (again.status_code, again.json()["error"]) == (409, "ending")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"hold": "", "held_at": None, "hold_until": None}, "nothing_held"),
        ({"hold": "wanted", "held_at": None, "hold_until": None}, "nothing_held"),
        ({"hold": "over"}, "nothing_held"),
        ({"hold": "ending"}, "ending"),
        ({"state": "done"}, "other_state"),
        ({"state": "cancelled"}, "other_state"),
    ],
)
def test_only_what_is_held_can_be_released(
    orders: LaunchSetting, sent: list[str], fields: dict[str, Any], code: str
) -> None:
    job = holding(orders, **fields)
    until = job.hold_until
    with pytest.raises(Refused) as refused:
        release(job)
    job.refresh_from_db()
    assert (refused.value.code, job.hold_until, sent) == (code, until, [])
    assert AuditEntry.objects.get().result == "refused"


@pytest.mark.both_databases
@pytest.mark.parametrize("state", ["planned", "running", "paused"])
@pytest.mark.parametrize("how_far", ["wanted", "held"])
def test_it_is_released_while_it_waits_moves_or_is_paused(
    orders: LaunchSetting, state: str, how_far: str
) -> None:
    job = holding(
        orders, state=state, hold=how_far, wait_reason="window", lease_until=timezone.now() + MINUTE
    )
    release(job)
    job.refresh_from_db()
    assert hold.is_over(job, timezone.now()) and job.lease_until is None


@pytest.mark.both_databases
def test_of_two_who_see_it_held_one_releases_it(orders: LaunchSetting) -> None:
    job = holding(orders)
    other = ReplayJob.objects.get(pk=job.pk)
    release(job)
    with pytest.raises(Refused) as refused:
        release(other)
    assert refused.value.code == "ending"


@pytest.mark.both_databases
def test_what_ended_meanwhile_is_not_ended_again(orders: LaunchSetting) -> None:
    job = holding(orders)
    ReplayJob.objects.filter(pk=job.pk).update(hold="over", state=JobState.DONE)
    with pytest.raises(Refused) as refused:
        release(job)
    assert refused.value.code == "other_state"


@pytest.mark.both_databases
def test_a_paused_replay_that_is_released_is_stopped(orders: LaunchSetting) -> None:
    job = holding(orders, state="paused")
    assert hold.end_overdue_holds(timezone.now()) == 0
    release(job)
    assert hold.end_overdue_holds(timezone.now()) == 1
    job.refresh_from_db()
    assert job.state == JobState.STOPPED


def test_it_takes_the_right_of_the_action(orders: LaunchSetting) -> None:
    viewer = reports.person("viewer", *READS)
    with pytest.raises(NotAllowed):
        release(holding(orders), viewer)


def test_the_page_has_a_button_for_it_that_asks_first(world: World, client: Client) -> None:
    job = holding(world.settings[KEY])
    path = f"/replays/{job.pk}/"
    assert f"{path}release/" in looked_at(client, path).links()
    asks = looked_at(client, f"{path}release/").text
    assert f"Release the subscription of {KEY}?" in asks and "stay" in asks
    client.post(f"{path}release/", {"reason": "enough"})
    job.refresh_from_db()
    assert hold.is_over(job, timezone.now())
    ReplayJob.objects.filter(pk=job.pk).update(hold="over")
    assert f"{path}release/" not in looked_at(client, path).links()


def test_the_command_releases_it(orders: LaunchSetting, operator: APIClient) -> None:
    job = holding(orders)
    shown = StringIO()
    call_command("dlq", "job", str(job.pk)[:8], "--as", "operator", stdout=shown)
    assert "in order   ahead, subscription held since" in shown.getvalue()
    how = ("release", str(job.pk)[:8], "--as", "operator", "--reason", "x")
    call_command("dlq", *how, stdout=StringIO(), stderr=StringIO())
    job.refresh_from_db()
    assert hold.is_over(job, timezone.now())
    with pytest.raises(CommandError, match="The subscription is already being released."):
        call_command("dlq", *how, stdout=StringIO(), stderr=StringIO())


# -- the alert -----------------------------------------------------------------------------------------------


def open_alerts(now: Any) -> list[Alert]:
    kind = kind_of("subscription_held")
    assert kind is not None
    evaluate_kind(kind, now)
    return list(Alert.objects.filter(kind=kind.name, state="open"))


def test_a_long_hold_opens_an_alert_until_it_ends(orders: LaunchSetting) -> None:
    now = timezone.now()
    job = holding(orders, held_at=now)
    assert open_alerts(now + timedelta(seconds=299)) == []
    [alert] = open_alerts(now + timedelta(seconds=301))
    said = alert_text.says(alert).replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith(
        f"“orders”: the subscription has been on hold for 5 min 1 s because of replay {str(job.pk)[:8]}"
    )
    assert alert_text.about(alert) == f"/replays/{job.pk}/"
    LaunchSetting.objects.update(hold="", held_by=None)
    assert open_alerts(now + timedelta(seconds=310)) == []


def test_a_paused_replay_opens_it_at_once_whatever_the_rule_of_the_pool(orders: LaunchSetting) -> None:
    now = timezone.now()
    holding(orders, held_at=now, state="paused")
    AlertRule.objects.create(kind="subscription_held", pool=orders.pool, upper=7200, lower=7200)
    [alert] = open_alerts(now + timedelta(seconds=2))
    assert "has been on hold for 2 s because of the paused replay" in alert_text.says(alert)
    ReplayJob.objects.update(state="running")
    assert open_alerts(now + timedelta(seconds=4)) == []


def test_a_replay_that_waits_for_its_turn_holds_nothing(orders: LaunchSetting) -> None:
    holding(orders)
    ReplayJob.objects.create(
        setting=orders, setting_key="orders", target_key="orders", scope="one", in_order="ahead",
        hold="wanted", state="paused",
    )  # fmt: skip
    assert open_alerts(timezone.now()) == []
