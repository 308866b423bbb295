"""What is watched: silent servers, spools, trips, dead letters, the feed; each with real rows."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import resolve
from django.utils import translation

from agents.models import BreakerTrip, LaunchSetting, Pool, Server
from agents.settings.enable import enable_setting
from agents.site.components import note_state
from alerts import text as alerts_text
from alerts.evaluation import evaluate_kind
from alerts.models import Alert, AlertRule, AlertTransition, Notice
from alerts.notices.delivery import send_due
from alerts.rules import REMINDERS
from alerts.sources import components, every_kind, kind_of
from alerts.sources.dead_letters import LEAST
from console.processes import record_heartbeat
from contract.names import dead_letter_queue
from dlq.index.queries import FEED_QUEUE, feed_counted
from dlq.models import DeadLetter, LetterQueue, LetterState
from dlq.models.dead_letter import BIN_QUEUE
from tests.web.listeners import Hook, listening_hook
from tests.web.rows import NOW, make_alive
from tests.web.test_breaker_trips import give_up, started
from tests.web.test_notices import target_of

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def hook() -> Iterator[Hook]:
    with listening_hook() as hook:
        yield hook


def looks(name: str, *minutes: float, begin: datetime = NOW) -> None:
    kind = kind_of(name)
    assert kind is not None
    for minute in minutes:
        evaluate_kind(kind, begin + minute * MINUTE)


def open_subjects(kind: str) -> list[str]:
    return sorted(Alert.objects.filter(kind=kind, state="open").values_list("subject", flat=True))


def dead(queue: str, at: datetime, count: int, state: str = LetterState.DEAD) -> None:
    first = DeadLetter.objects.count() + 1
    DeadLetter.objects.bulk_create(
        DeadLetter(node_id="node", queue=queue, orig_message_id=first + number, state=state, seen_at=at)
        for number in range(count)
    )


def queue_of(setting: LaunchSetting, count: int, added_at: datetime = NOW - 9 * HOUR) -> str:
    queue = dead_letter_queue(setting.key)
    LetterQueue.objects.create(
        queue=queue, broker_count=count, indexed=count, counted_at=NOW, added_at=added_at
    )
    return queue


def test_a_server_that_stays_silent_opens_one_alert_that_closes_when_it_is_heard_again(
    server: Server, second_server: Server, pool: Pool
) -> None:
    make_alive(server, second_server, now=NOW)
    looks("server_silent", 0, 0.5, 0.9)
    assert not Alert.objects.exists()
    make_alive(second_server, now=NOW + 2 * MINUTE)
    looks("server_silent", 1.5, 2)
    alert = Alert.objects.get()
    assert (alert.subject, alert.state, alert.server, list(alert.pools.all())) == (
        "srv-1",
        "open",
        server,
        [pool],
    )
    assert alerts_text.says(alert) == "No heartbeat from server srv-1 for 2 min."
    make_alive(server, second_server, now=NOW + 3 * MINUTE)
    looks("server_silent", 3)
    make_alive(server, second_server, now=NOW + 4 * MINUTE)
    looks("server_silent", 4.1)
    alert.refresh_from_db()
    assert alert.state == "closed"


def test_after_a_pause_of_the_ma_itself_nobody_is_called_silent(server: Server, pool: Pool) -> None:
    """The first look after it finds every server as it was heard last; the second, 10 s later, finds them
    heard."""
    make_alive(server, now=NOW - HOUR)
    looks("server_silent", 0)
    make_alive(server, now=NOW)
    looks("server_silent", 10 / 60, 1, begin=NOW)
    assert not Alert.objects.filter(state="open").exists()


def test_a_server_that_nobody_counts_on_is_not_missed(server: Server) -> None:
    make_alive(server, now=NOW - HOUR)
    looks("server_silent", 0, 1, 2)
    assert not Alert.objects.exists()


def test_a_spool_that_fills_opens_and_closes_with_room_between_the_bounds(server: Server, pool: Pool) -> None:
    def fill(percent: int) -> None:
        Server.objects.filter(pk=server.pk).update(
            spool_limit_bytes=1000, spool_bytes=10 * percent, spool_rows=7
        )

    fill(79)
    looks("spool_filling", 0, 1)
    assert not Alert.objects.exists()
    fill(85)
    looks("spool_filling", 2, 3)
    assert alerts_text.says(Alert.objects.get()) == "The spool of server srv-1 is 85% full (850 bytes)."
    fill(70)
    looks("spool_filling", 4, 5, 6)
    assert open_subjects("spool_filling") == ["srv-1"]
    fill(40)
    looks("spool_filling", 7, 8)
    assert open_subjects("spool_filling") == []


def test_a_trip_is_one_alert_and_its_opening_is_told_once_by_its_own_notice(
    setting: LaunchSetting, server: Server, second_server: Server, operator: User, hook: Hook
) -> None:
    make_alive(server, second_server, now=NOW)
    target_of(setting, hook.url)
    (run,) = started(setting).values()
    give_up(run)
    trip = BreakerTrip.objects.get()
    looks("trip", 1, 2, 3)
    for minute in range(5):
        send_due(NOW + minute * MINUTE)
    assert [headers["MA-Event"] for _path, headers, _body in hook.heard] == ["trip"]
    alert = Alert.objects.get()
    assert (alert.subject, alert.setting, alert.state) == (str(trip.pk), setting, "open")
    assert alerts_text.about(alert) == f"/trips/{trip.pk}/"

    later = NOW + MINUTE + REMINDERS[0]
    looks("trip", 0, begin=later)
    enable_setting(LaunchSetting.objects.get(), operator, later + MINUTE)
    looks("trip", 2, begin=later)
    for hours in range(3):
        send_due(later + hours * HOUR)
    assert [headers["MA-Event"] for _path, headers, _body in hook.heard] == ["trip", "alert", "alert"]
    assert list(AlertTransition.objects.order_by("pk").values_list("step", flat=True)) == [
        "opened", "repeated", "closed",
    ]  # fmt: skip
    assert Notice.objects.filter(trip=trip).count() == 1


def test_dead_letters_that_grow_open_an_alert_of_their_setting(setting: LaunchSetting, pool: Pool) -> None:
    queue = queue_of(setting, 500)
    dead(queue, NOW - 90 * MINUTE, 30)
    dead(queue, NOW - 30 * MINUTE, 89)
    looks("dead_letters_growing", 0, 2)
    assert not Alert.objects.exists()
    # What was given back meanwhile died all the same.
    dead(queue, NOW - 20 * MINUTE, 5, LetterState.GIVEN_BACK)
    looks("dead_letters_growing", 3, 5)
    alert = Alert.objects.get()
    assert (alert.subject, alert.setting, alert.value) == (queue, setting, 3.13)
    assert (
        alerts_text.says(alert)
        == f"94 messages dead-lettered to {queue} in the last hour, 30 in the hour before."
    )
    assert alerts_text.about(alert) == "/dead-letters/orders/"


def test_a_few_letters_are_no_growth_nor_are_those_that_the_first_walk_of_a_queue_brought(
    setting: LaunchSetting,
) -> None:
    queue = queue_of(setting, 3)
    dead(queue, NOW - 30 * MINUTE, 3 * LEAST - 1)
    looks("dead_letters_growing", 0, 2)
    assert not Alert.objects.exists()
    added = NOW - 30 * MINUTE
    LetterQueue.objects.update(added_at=added, walk_started_at=added)
    dead(queue, added, 500)
    looks("dead_letters_growing", 0, 2)
    assert not Alert.objects.exists(), "the walk goes on"
    LetterQueue.objects.update(walk_started_at=None, walked_at=added)
    looks("dead_letters_growing", 3, 5)
    assert not Alert.objects.exists()


@pytest.mark.parametrize("seconds", [-5, 5], ids=["the feed saw them first", "the queue was found first"])
def test_500_letters_at_once_open_an_alert_in_the_first_minute_of_a_queue(
    setting: LaunchSetting, seconds: int
) -> None:
    queue = queue_of(setting, 500, added_at=NOW)
    LetterQueue.objects.update(walked_at=NOW)
    dead(queue, NOW + timedelta(seconds=seconds), 500)
    looks("dead_letters_growing", 0.1, 0.3, 0.5)
    assert open_subjects("dead_letters_growing") == [queue]
    assert alerts_text.says(Alert.objects.get()).startswith("500 messages dead-lettered to ")


def test_letters_of_the_first_walk_whose_failure_is_of_this_hour_died_in_it(setting: LaunchSetting) -> None:
    queue = queue_of(setting, 500, added_at=NOW - MINUTE)
    LetterQueue.objects.update(walked_at=NOW)
    dead(queue, NOW, 500)
    looks("dead_letters_growing", 0.1, 0.5)
    assert open_subjects("dead_letters_growing") == []
    DeadLetter.objects.update(protocol_at=NOW - 2 * MINUTE)
    looks("dead_letters_growing", 0.6, 1)
    assert open_subjects("dead_letters_growing") == [queue]


def test_more_than_so_many_in_the_queue_of_a_setting_open_an_alert_and_a_pool_may_say_how_many(
    setting: LaunchSetting, pool: Pool
) -> None:
    queue = queue_of(setting, 999)
    LetterQueue.objects.create(queue=BIN_QUEUE, broker_count=5000, counted_at=NOW)
    looks("dead_letters_many", 0, 1)
    assert open_subjects("dead_letters_many") == []
    LetterQueue.objects.filter(queue=queue).update(broker_count=1000)
    looks("dead_letters_many", 2, 3)
    assert open_subjects("dead_letters_many") == [queue]
    assert alerts_text.says(Alert.objects.get()) == f"1,000 messages in {queue}."
    LetterQueue.objects.filter(queue=queue).update(broker_count=899)
    looks("dead_letters_many", 4, 5)
    assert open_subjects("dead_letters_many") == []
    AlertRule.objects.create(kind="dead_letters_many", pool=pool, upper=10.0)
    looks("dead_letters_many", 30, 31)
    assert open_subjects("dead_letters_many") == [queue]


def test_a_letter_that_lies_for_a_day_opens_an_alert_until_it_is_given_back(setting: LaunchSetting) -> None:
    queue = queue_of(setting, 2)
    dead(queue, NOW - 25 * HOUR, 1)
    dead(queue, NOW - 2 * HOUR, 1)
    LetterQueue.objects.create(queue=BIN_QUEUE, broker_count=1, counted_at=NOW)
    dead(BIN_QUEUE, NOW - 90 * HOUR, 1)
    looks("dead_letters_old", 0, 1)
    assert open_subjects("dead_letters_old") == [queue]
    DeadLetter.objects.filter(queue=queue, seen_at__lt=NOW - 3 * HOUR).update(state=LetterState.GIVEN_BACK)
    looks("dead_letters_old", 2, 3)
    assert open_subjects("dead_letters_old") == []


def test_looking_at_dead_letters_asks_as_much_for_many_queues_as_for_few(pool: Pool) -> None:
    def asked() -> list[int]:
        counts = []
        for name in ("dead_letters_old", "dead_letters_growing"):
            with CaptureQueriesContext(connection) as queries:
                looks(name, 0)
            counts.append(len(queries))
            assert not any("COUNT(*)" in query["sql"] and "LIMIT" not in query["sql"] for query in queries)
        return counts

    def hold(numbers: range) -> None:
        for number in numbers:
            queue = f"DLQ.q{number}"
            LetterQueue.objects.create(queue=queue, broker_count=1, counted_at=NOW, added_at=NOW - 9 * HOUR)
            dead(queue, NOW - HOUR, 1)

    hold(range(2))
    few = asked()
    hold(range(2, 60))
    assert asked() == few


def test_a_feed_that_is_behind_is_one_cause_and_one_that_stands_still_another() -> None:
    record_heartbeat("feed", NOW)
    feed_counted(5000, NOW)
    for minute in range(4):
        record_heartbeat("feed", NOW + minute * MINUTE)
        LetterQueue.objects.filter(queue=FEED_QUEUE).update(counted_at=NOW + minute * MINUTE)
        looks("feed_behind", minute)
        looks("feed_silent", minute)
    assert (open_subjects("feed_behind"), open_subjects("feed_silent")) == (["feed"], [])
    assert alerts_text.says(Alert.objects.get()) == "5,000 messages are not indexed yet."
    # It died: how far it is behind nobody knows now.
    looks("feed_behind", 6, 8, 20)
    looks("feed_silent", 6, 8, 20)
    assert (open_subjects("feed_behind"), open_subjects("feed_silent")) == (["feed"], ["feed"])
    feed_counted(10, NOW + 30 * MINUTE)
    record_heartbeat("feed", NOW + 30 * MINUTE)
    looks("feed_behind", 30, 31)
    looks("feed_silent", 30, 30.1)
    assert open_subjects("feed_behind") == []


def test_an_empty_house_has_no_alerts(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its broker and its Redis answer."""

    def measured(now: datetime) -> None:
        for name in components.SILENT:
            note_state(name, "ok", now)

    monkeypatch.setattr(components, "measure", measured)
    for kind in every_kind():
        evaluate_kind(kind, NOW)
        evaluate_kind(kind, NOW + HOUR)
    assert not Alert.objects.exists()


def test_every_kind_has_its_words_in_both_languages() -> None:
    for kind in every_kind():
        for text in (kind.label, kind.what_to_do, kind.unit):
            with translation.override("en"):
                english = str(text)
            with translation.override("ru"):
                assert str(text) != english, (kind.name, english)
        assert kind.limits.lower <= kind.limits.upper


def test_every_alert_leads_to_a_page(setting: LaunchSetting) -> None:
    facts = {
        "server": "srv-1",
        "trip": 1,
        "setting": "orders",
        "queue": "DLQ.orders",
        "fingerprint": "f" * 64,
    }
    facts |= {"run": str(uuid4()), "address": "demo.orders", "replay": str(uuid4())}
    for kind in every_kind():
        assert resolve(kind.url(facts).partition("?")[0]), kind.name
    foreign = kind_of("dead_letters_old")
    assert foreign is not None and resolve(foreign.url({"queue": "Someone.DLQ"}))
