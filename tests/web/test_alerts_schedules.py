"""Scheduled settings and groups: a start that failed, was skipped, is late, too long, too short, or never
comes."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.groups.group import enable_group
from agents.models import (
    Activation,
    ActivationState,
    Duty,
    Freeze,
    GroupActivation,
    LaunchSetting,
    Missed,
    Pool,
    Schedule,
    ScheduledGroup,
    Server,
)
from agents.schedules.tick import tick
from alerts import text
from alerts.evaluation import evaluate_kind
from alerts.models import Alert
from alerts.punctuality import Decided, Punctuality, Start, failed, late, long, never, short, skipped
from alerts.sources import kind_of
from tests.web.launching import delayed, end, group_of, scheduled
from tests.web.rows import NOW

pytestmark = pytest.mark.django_db
SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
USUAL = (600.0, 620.0, 580.0, 610.0, 590.0)
CALM = Punctuality(next_due=NOW + HOUR)


def began(at: datetime, state: str = "running", **fields: object) -> Start:
    return replace(Start(state, at), **fields)  # type: ignore[arg-type]


# -- the rules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "value"),
    [("failed", 1.0), ("interrupted", 1.0), ("succeeded", 0.0), ("stopped", 0.0), ("running", 0.0)],
)
def test_the_last_start_failed(state: str, value: float) -> None:
    assert failed(replace(CALM, start=began(NOW - HOUR, state)), NOW) == value


def test_the_last_scheduled_time_was_skipped() -> None:
    window = Decided(NOW - HOUR, "skipped", NOW - HOUR)
    assert skipped(replace(CALM, window=window), NOW) == 1.0
    assert skipped(replace(CALM, window=replace(window, result="started")), NOW) == skipped(CALM, NOW) == 0.0


def test_what_is_due_and_not_decided_is_late_unless_people_keep_it_from_every_server() -> None:
    facts = Punctuality(next_due=NOW - 90 * SECOND)
    assert late(facts, NOW) == 90.0
    assert late(replace(facts, kept=True), NOW) == 0.0
    assert late(CALM, NOW) == 0.0


def test_a_start_that_waits_for_a_server_is_late_and_one_that_runs_is_not() -> None:
    assert late(replace(CALM, start=began(NOW - 70 * SECOND, "pending")), NOW) == 70.0
    assert late(replace(CALM, start=began(NOW - 70 * SECOND)), NOW) == 0.0


def test_a_start_that_began_late_is_told_for_an_hour_and_one_within_five_minutes_never() -> None:
    window = Decided(NOW - 20 * MINUTE, "started", NOW)
    assert late(replace(CALM, window=window), NOW) == 1200.0
    assert late(replace(CALM, window=window), NOW + HOUR) == 0.0
    assert late(replace(CALM, window=replace(window, due_at=NOW - 5 * MINUTE)), NOW) == 0.0


def test_a_run_is_too_long_beside_what_is_usual_and_by_five_minutes_at_least() -> None:
    facts = replace(CALM, start=began(NOW), lengths=USUAL)
    assert long(facts, NOW + 899 * SECOND) == 0.0
    assert long(facts, NOW + 1800 * SECOND) == 3.0
    assert long(replace(facts, lengths=(1.0, 1.0, 1.0)), NOW + 200 * SECOND) == 0.0
    assert long(replace(facts, lengths=(1.0, 1.0, 1.0)), NOW + 302 * SECOND) == 302.0
    assert long(replace(facts, lengths=USUAL[:2]), NOW + DAY) == 0.0, "nobody knows what is usual"
    assert long(replace(facts, start=began(NOW, "pending")), NOW + DAY) == 0.0


def test_a_run_is_too_short_unless_its_queue_was_empty_or_it_is_always_short() -> None:
    facts = replace(CALM, start=began(NOW, "succeeded", ended_at=NOW + 6 * SECOND, messages=9), lengths=USUAL)
    assert short(facts, NOW) == 100.0
    assert facts.start is not None
    assert short(replace(facts, start=replace(facts.start, messages=0)), NOW) == 0.0
    assert short(replace(facts, start=replace(facts.start, messages=None)), NOW) == 100.0
    assert short(replace(facts, start=replace(facts.start, state="failed")), NOW) == 0.0
    assert short(replace(facts, lengths=(59.0,) * 5), NOW) == 0.0
    assert short(replace(facts, lengths=USUAL[:4]), NOW) == 0.0


def test_a_schedule_without_a_next_time_or_without_any_start_never_starts_anything() -> None:
    assert never(Punctuality(next_due=None), NOW) == 1.0
    assert never(replace(CALM, windows=3), NOW) == 3.0
    assert (
        never(replace(CALM, windows=2), NOW) == never(replace(CALM, windows=3, any_started=True), NOW) == 0.0
    )


# -- from the rows -------------------------------------------------------------------------------------------


def look(name: str, now: datetime) -> list[str]:
    kind = kind_of(name)
    assert kind is not None
    evaluate_kind(kind, now)
    return list(Alert.objects.filter(kind=name, state="open").values_list("subject", flat=True))


def said(name: str) -> str:
    return text.says(Alert.objects.get(kind=name, state="open"))


@pytest.fixture
def nightly(pool: Pool) -> LaunchSetting:
    return delayed(pool, enabled=True, state_since=NOW)


@pytest.fixture
def minutely(nightly: LaunchSetting) -> Schedule:
    return scheduled(nightly, "", every_seconds=60)


def window(schedule: Schedule, minute: int) -> datetime:
    now = NOW + minute * MINUTE + SECOND
    tick(schedule.pk, now)
    return now


def test_a_failed_run_is_told_until_the_next_one_begins(minutely: Schedule, pool: Pool) -> None:
    now = window(minutely, 1)
    assert look("schedule_failed", now) == []
    end(Activation.objects.get(), now, ActivationState.FAILED)
    assert look("schedule_failed", now) == look("schedule_failed", now + SECOND) == ["setting:nightly"]
    assert said("schedule_failed") == "“nightly”: the run that started at 1 Mar 2026, 12:01:01 UTC failed."
    assert [*Alert.objects.get().pools.all()] == [pool]
    assert look("schedule_failed", window(minutely, 2)) == []


def test_a_skipped_run_is_told_with_its_reason_until_one_begins(minutely: Schedule) -> None:
    window(minutely, 1)
    assert look("schedule_skipped", NOW + 2 * MINUTE) == []
    assert look("schedule_skipped", window(minutely, 2)) == ["setting:nightly"]
    assert said("schedule_skipped").startswith(
        "“nightly”: the run scheduled for 1 Mar 2026, 12:02:00 UTC was skipped. Reason: "
    )
    end(Activation.objects.get(), NOW + 2 * MINUTE)
    assert look("schedule_skipped", window(minutely, 3)) == []


def test_a_run_that_waits_for_a_server_is_late_but_not_while_all_are_cordoned(minutely: Schedule) -> None:
    now = window(minutely, 1)
    assert look("schedule_late", now + 30 * SECOND) == []
    Schedule.objects.update(decided_up_to=now + HOUR)
    assert look("schedule_late", now + MINUTE) == ["setting:nightly"]
    assert said("schedule_late") == "“nightly”: the scheduled run has not started yet. It is 1 min late."
    Server.objects.update(duty=Duty.CORDONED)
    assert look("schedule_late", now + 2 * MINUTE) == []


def test_what_a_freeze_holds_is_neither_skipped_nor_late_nor_is_what_starts_after_it(
    minutely: Schedule, pool: Pool
) -> None:
    Schedule.objects.update(missed=Missed.ONCE)
    minutely.refresh_from_db()
    freeze = Freeze.objects.create(scope=f"p{pool.pk}", pool=pool, at=NOW, reason="release")
    for minute in range(1, 8):
        now = window(minutely, minute)
        assert look("schedule_skipped", now) == look("schedule_never", now) == []
    assert look("schedule_late", now + 5 * MINUTE) == []
    Freeze.objects.filter(pk=freeze.pk).update(lifted_at=now)
    tick(minutely.pk, now + SECOND)
    assert Activation.objects.exists()
    assert look("schedule_late", now + SECOND) == []


def test_a_scheduled_time_that_nobody_decides_is_late(minutely: Schedule) -> None:
    assert look("schedule_late", NOW + 110 * SECOND) == []
    assert look("schedule_late", NOW + 125 * SECOND) == ["setting:nightly"]
    LaunchSetting.objects.update(enabled=False)
    assert look("schedule_late", NOW + 130 * SECOND) == []


def ran(setting: LaunchSetting, number: int, seconds: float) -> Activation:
    begin = NOW + number * HOUR
    return Activation.objects.create(
        setting=setting, number=number, state="succeeded", started_at=begin, well=True,
        ended_at=begin + timedelta(seconds=seconds),
    )  # fmt: skip


def test_lengths_are_those_of_runs_that_ended_well(nightly: LaunchSetting) -> None:
    scheduled(nightly)
    for number in range(5):
        ran(nightly, number, 600)
    Activation.objects.create(setting=nightly, number=5, state="failed", started_at=NOW + 5 * HOUR,
                              ended_at=NOW + 9 * HOUR)  # fmt: skip
    now = NOW + 10 * HOUR
    Activation.objects.create(setting=nightly, number=6, state="running", started_at=now)
    assert look("schedule_long", now + 29 * MINUTE) == []
    assert look("schedule_long", now + 31 * MINUTE) == ["setting:nightly"]
    assert said("schedule_long") == "“nightly” has been running for 31 min. It usually takes 10 min."
    Activation.objects.filter(number=6).update(state="succeeded", ended_at=now + 32 * MINUTE)
    assert look("schedule_long", now + 33 * MINUTE) == []
    assert look("schedule_short", now + 33 * MINUTE) == []
    ran(nightly, 12, 5)
    assert look("schedule_short", NOW + 13 * HOUR) == ["setting:nightly"]
    assert said("schedule_short") == "“nightly” ended after 5 s. It usually takes 10 min."
    ran(nightly, 14, 610)
    assert look("schedule_short", NOW + 15 * HOUR) == []


def test_a_group_is_told_of_with_the_pools_of_its_members(pool: Pool) -> None:
    group = enable_group(group_of(delayed(pool, "one")), None, NOW)
    assert isinstance(group, ScheduledGroup)
    schedule = scheduled(group, "", every_seconds=60)
    now = window(schedule, 1)
    end(Activation.objects.get(), now, ActivationState.FAILED)
    assert GroupActivation.objects.get().state == "failed"
    assert look("schedule_failed", now) == ["group:night"]
    assert [*Alert.objects.get().pools.all()] == [pool]


def test_one_whose_runs_are_all_skipped_never_starts_and_is_told_until_one_does(
    minutely: Schedule, nightly: LaunchSetting
) -> None:
    busy = Activation.objects.create(setting=nightly, state="running", started_at=NOW - HOUR)
    for minute in (1, 2):
        assert look("schedule_never", window(minutely, minute)) == []
    assert look("schedule_never", window(minutely, 3)) == ["setting:nightly"]
    end(busy, NOW + 3 * MINUTE)
    assert look("schedule_never", window(minutely, 4)) == []


def test_a_schedule_that_cannot_be_read_never_starts_anything(minutely: Schedule) -> None:
    Schedule.objects.update(every_seconds=None, crontab="0 0 1 1 *", time_zone="Nowhere/Land")
    assert look("schedule_never", NOW) == ["setting:nightly"]
    assert said("schedule_never") == "“nightly” is enabled, but its schedule has no further runs."


def test_many_schedules_are_asked_about_with_as_many_questions_as_few(pool: Pool) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            look("schedule_late", NOW)
        return len(queries)

    def add(numbers: range) -> None:
        for number in numbers:
            setting = delayed(pool, f"n{number}", enabled=True, state_since=NOW)
            scheduled(setting)
            scheduled(group_of(delayed(pool, f"m{number}"), name=f"g{number}"))
        ScheduledGroup.objects.update(enabled=True, state_since=NOW)

    add(range(2))
    few = asked()
    add(range(2, 30))
    assert asked() == few
