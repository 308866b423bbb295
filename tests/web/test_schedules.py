"""Every due window is decided once: started, or skipped with the reason."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from agents.models import Activation, Missed, Pool, Schedule, StateChange, Trigger, Window, WindowResult
from agents.services import schedules
from agents.services.schedules import delete_schedule, save_schedule, tend_schedules, tick, upcoming
from agents.services.settings import disable_setting, enable_setting
from agents.services.window_history import forget_old_windows
from ma_site.celery import app
from tests.web.launching import delayed, enabled, end, scheduled
from tests.web.rows import NOW, make_setting

pytestmark = pytest.mark.django_db

# NOW is 2026-03-01 12:00 UTC; the next 02:30 in Berlin is 01:30 UTC of the day after.
DUE = datetime(2026, 3, 2, 1, 30, tzinfo=UTC)
SOON = DUE + timedelta(seconds=3)
DAY = timedelta(days=1)


def windows(schedule: Schedule) -> list[tuple[datetime, str, str]]:
    return list(Window.objects.filter(schedule=schedule).order_by("due_at").values_list("due_at", "result", "reason"))


@pytest.mark.both_databases
def test_a_due_window_starts_one_activation_however_often_it_ticks(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    assert not tick(schedule.pk, DUE - timedelta(seconds=1))
    assert tick(schedule.pk, SOON)
    assert not tick(schedule.pk, SOON)
    assert tend_schedules(SOON + timedelta(seconds=1)) == 0
    window, activation = Window.objects.get(), Activation.objects.get()
    assert (window.due_at, window.result, window.activation) == (DUE, WindowResult.STARTED, activation)
    assert (activation.trigger, activation.started_by, activation.setting.key) == (Trigger.SCHEDULE, None, "nightly")


@pytest.mark.both_databases
def test_tending_alone_finds_the_window_when_beat_never_wakes(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    assert tend_schedules(SOON) == 1
    assert windows(schedule) == [(DUE, "started", "")]


@pytest.mark.both_databases
def test_a_window_while_the_activation_before_still_runs_is_skipped(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    tick(schedule.pk, SOON)
    tick(schedule.pk, SOON + DAY)
    (_first, (due, result, reason)) = windows(schedule)
    assert (due, result) == (DUE + DAY, "skipped")
    assert reason
    end(Activation.objects.get(), SOON + DAY)
    tick(schedule.pk, SOON + 2 * DAY)
    assert [result for _due, result, _reason in windows(schedule)] == ["started", "skipped", "started"]


@pytest.mark.both_databases
def test_nothing_is_decided_while_it_is_disabled_and_enabling_starts_nothing_of_before(pool: Pool) -> None:
    setting = delayed(pool)
    schedule = scheduled(setting)
    tick(schedule.pk, SOON)
    enable_setting(setting, None, SOON + timedelta(minutes=1))
    tick(schedule.pk, SOON + timedelta(minutes=2))
    assert not windows(schedule)
    assert not Activation.objects.exists()
    tick(schedule.pk, SOON + DAY)
    assert windows(schedule) == [(DUE + DAY, "started", "")]


@pytest.mark.both_databases
def test_after_days_away_missed_windows_are_skipped_each_with_a_row(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    tick(schedule.pk, SOON + 2 * DAY + timedelta(hours=1))
    assert [(due, result) for due, result, _ in windows(schedule)] == [(DUE + n * DAY, "skipped") for n in range(3)]
    assert all("missed" in reason for _due, _result, reason in windows(schedule))
    assert not Activation.objects.exists()


@pytest.mark.both_databases
def test_after_days_away_missed_windows_run_once_where_that_was_chosen(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)), missed=Missed.ONCE)
    tick(schedule.pk, SOON + 2 * DAY + timedelta(hours=1))
    assert [result for _due, result, _reason in windows(schedule)] == ["skipped", "skipped", "started"]
    assert Activation.objects.count() == 1
    assert Window.objects.get(result="started").reason


@pytest.mark.both_databases
def test_a_year_away_leaves_one_row_that_says_how_many(pool: Pool) -> None:
    minutely = scheduled(enabled(delayed(pool)), "* * * * *")
    tick(minutely.pk, NOW + timedelta(days=365))
    (missed, *late) = windows(minutely)
    assert missed[0] == NOW + timedelta(minutes=1)
    assert "1000+ windows" in missed[2]
    # The last five minutes are no longer missed: the newest of them starts.
    assert [result for _due, result, _reason in late] == ["skipped"] * 4 + ["started"]
    assert Window.objects.get(result="started").due_at == NOW + timedelta(days=365)


@pytest.mark.both_databases
def test_a_short_absence_starts_the_newest_window_that_is_on_time(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)), "", every_seconds=60)
    tick(schedule.pk, NOW + timedelta(minutes=3, seconds=1))
    assert [result for _due, result, _reason in windows(schedule)] == ["skipped", "skipped", "started"]


@pytest.mark.both_databases
def test_what_fails_halfway_is_decided_by_the_next_tick(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = scheduled(enabled(delayed(pool)))

    def dies(*_args: object, **_more: object) -> None:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patched:
        patched.setattr(schedules, "start_activation", dies)
        assert tend_schedules(SOON) == 0
    assert not windows(schedule)
    assert tend_schedules(SOON) == 1
    assert windows(schedule) == [(DUE, "started", "")]


@pytest.mark.both_databases
def test_a_changed_schedule_starts_nothing_of_before_the_change(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    schedule.crontab = "0 10 * * *"
    save_schedule(schedule, None, NOW + timedelta(hours=1))
    tick(schedule.pk, NOW + timedelta(hours=2))
    assert not windows(schedule)
    assert StateChange.objects.get(what="schedule", old__gt="").new == "0 10 * * * Europe/Berlin, skip"


@pytest.mark.both_databases
def test_a_schedule_that_is_saved_unchanged_loses_no_window(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    again = Schedule(pk=schedule.pk, setting=schedule.setting, crontab="30  2 * * *", time_zone="Europe/Berlin")
    save_schedule(again, None, SOON)
    tick(schedule.pk, SOON)
    assert windows(schedule) == [(DUE, "started", "")]
    assert PeriodicTask.objects.filter(task="agents.tick", enabled=True).count() == 1


@pytest.mark.both_databases
def test_beat_wakes_in_step_with_the_schedule_and_its_owner(pool: Pool) -> None:
    setting = delayed(pool)
    schedule = scheduled(setting)
    task = PeriodicTask.objects.get(task="agents.tick")
    assert (task.enabled, json.loads(task.args), str(task.crontab.timezone)) == (False, [schedule.pk], "Europe/Berlin")
    assert (task.crontab.minute, task.crontab.hour, task.crontab.day_of_week) == ("30", "2", "*")
    enable_setting(setting, None, NOW)
    task.refresh_from_db()
    assert task.enabled
    schedule.refresh_from_db()
    schedule.crontab, schedule.every_seconds = "", 3600
    save_schedule(schedule, None, NOW)
    task.refresh_from_db()
    assert (task.crontab, task.interval.every, task.enabled) == (None, 3600, True)
    disable_setting(setting, None, "night shift", NOW)
    task.refresh_from_db()
    assert not task.enabled
    delete_schedule(schedule, None, NOW)
    assert not PeriodicTask.objects.filter(task="agents.tick").exists()


@pytest.mark.parametrize(
    ("crontab", "day", "weekday"),
    [
        ("0 0 13 * 5", "*", "*"),
        ("0 0 L * *", "*", "*"),
        ("0 0 * * 5#2", "*", "*"),
        ("0 0 1 * *", "1", "*"),
        ("0 0 * * 1-5,7", "*", "0,1,2,3,4,5"),
    ],
)
def test_beat_wakes_more_often_where_celery_cannot_say_it(pool: Pool, crontab: str, day: str, weekday: str) -> None:
    task = scheduled(delayed(pool), crontab).periodic_task
    assert task is not None
    assert (task.crontab.day_of_month, task.crontab.day_of_week) == (day, weekday)
    assert task.schedule.is_due(timezone.now())


@pytest.mark.both_databases
def test_the_wake_up_of_a_schedule_that_went_with_its_setting_goes_too(pool: Pool) -> None:
    schedule = scheduled(delayed(pool))
    pk = schedule.pk
    schedule.delete()
    assert not tick(pk, SOON)
    assert not PeriodicTask.objects.filter(task="agents.tick").exists()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"crontab": "* * 31 2 *"}, "crontab"),
        ({"crontab": "every day"}, "crontab"),
        ({"crontab": "0 0 * * *", "time_zone": "Europe/Atlantis"}, "time_zone"),
        ({"crontab": "", "every_seconds": 1}, "every_seconds"),
        ({"crontab": "0 0 * * *", "every_seconds": 60}, "crontab"),
        ({"crontab": ""}, "crontab"),
        ({"missed": "twice"}, "missed"),
    ],
)
def test_a_bad_schedule_is_refused_at_its_field(pool: Pool, values: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        scheduled(delayed(pool), **values)
    assert set(refused.value.message_dict) == {field}
    assert not Schedule.objects.exists()
    assert not PeriodicTask.objects.filter(task="agents.tick").exists()


def test_only_what_is_started_by_schedule_has_one(pool: Pool) -> None:
    with pytest.raises(ValidationError, match="as soon as possible"):
        scheduled(make_setting(pool, timing="ASAP"))


def test_a_setting_with_a_schedule_stays_delayed(pool: Pool) -> None:
    setting = delayed(pool)
    scheduled(setting)
    setting.timing = "ASAP"
    with pytest.raises(ValidationError) as refused:
        setting.full_clean()
    assert list(refused.value.message_dict) == ["timing"]


def test_the_next_windows_are_known(pool: Pool) -> None:
    assert upcoming(scheduled(delayed(pool)), NOW) == [DUE, DUE + DAY, DUE + 2 * DAY]


@pytest.mark.both_databases
def test_beat_takes_up_the_wake_ups_of_what_is_enabled(pool: Pool) -> None:
    """Within two hours of its time: it leaves the others out until then."""
    on, off = (scheduled(owner, "*/5 * * * *") for owner in (enabled(delayed(pool, "on")), delayed(pool, "off")))
    entries = DatabaseScheduler(app=app, lazy=True).all_as_schedule()
    assert f"schedule {off.pk}" not in entries
    entry = entries[f"schedule {on.pk}"]
    assert (entry.task, entry.args, entry.options["expires"]) == ("agents.tick", [on.pk], 60)


@pytest.mark.both_databases
def test_old_windows_are_forgotten_and_what_they_started_stays(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    tick(schedule.pk, SOON)
    assert forget_old_windows(DUE + 90 * DAY) == 0
    assert forget_old_windows(DUE + 91 * DAY) == 1
    assert Activation.objects.count() == 1
