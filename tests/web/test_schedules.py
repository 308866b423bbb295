"""Every due window is decided once: started, or skipped with the reason."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from agents.activations.switch import forget_old_windows
from agents.models import Activation, Missed, Pool, Schedule, StateChange, Trigger, Window, WindowResult
from agents.reasons import LATER_ONE_STARTED, MISSED, MISSED_MANY, NOT_ENDED, STARTED_LATE
from agents.reconciler import tend
from agents.schedules import tick as ticks
from agents.schedules.tick import ask_for_ticks, save_schedule, tend_schedules, tick, upcoming
from agents.settings.enable import enable_setting
from console.reasons import NO_REASON, Reason
from tests.web.launching import delayed, enabled, end, scheduled
from tests.web.rows import NOW, make_setting

pytestmark = pytest.mark.django_db

# NOW is 2026-03-01 12:00 UTC; the next 02:30 in Berlin is 01:30 UTC of the day after.
DUE = datetime(2026, 3, 2, 1, 30, tzinfo=UTC)
SOON = DUE + timedelta(seconds=3)
DAY = timedelta(days=1)


def windows(schedule: Schedule) -> list[tuple[datetime, str, Reason]]:
    found = Window.objects.filter(schedule=schedule).order_by("due_at")
    return [(window.due_at, window.result, window.reason) for window in found]


@pytest.mark.both_databases
def test_a_due_window_starts_one_activation_however_often_it_ticks(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    assert not tick(schedule.pk, DUE - timedelta(seconds=1))
    assert tick(schedule.pk, SOON)
    assert not tick(schedule.pk, SOON)
    assert tend_schedules(SOON + timedelta(seconds=1)) == 0
    window, activation = Window.objects.get(), Activation.objects.get()
    assert (window.due_at, window.result, window.activation) == (DUE, WindowResult.STARTED, activation)
    assert (activation.trigger, activation.started_by, activation.setting.key) == (
        Trigger.SCHEDULE,
        None,
        "nightly",
    )


@pytest.mark.both_databases
def test_tending_alone_finds_the_window_when_beat_never_wakes(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    assert tend_schedules(SOON) == 1
    assert windows(schedule) == [(DUE, "started", NO_REASON)]


@pytest.mark.both_databases
def test_a_window_while_the_activation_before_still_runs_is_skipped(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    tick(schedule.pk, SOON)
    tick(schedule.pk, SOON + DAY)
    (_first, (due, result, reason)) = windows(schedule)
    assert (due, result) == (DUE + DAY, "skipped")
    assert reason == NOT_ENDED()
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
    assert windows(schedule) == [(DUE + DAY, "started", NO_REASON)]


@pytest.mark.both_databases
def test_after_days_away_missed_windows_are_skipped_each_with_a_row(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    tick(schedule.pk, SOON + 2 * DAY + timedelta(hours=1))
    assert [(due, result) for due, result, _ in windows(schedule)] == [
        (DUE + n * DAY, "skipped") for n in range(3)
    ]
    assert [reason for _due, _result, reason in windows(schedule)] == [MISSED()] * 3
    assert not Activation.objects.exists()


@pytest.mark.both_databases
def test_after_days_away_missed_windows_run_once_where_that_was_chosen(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)), missed=Missed.ONCE)
    tick(schedule.pk, SOON + 2 * DAY + timedelta(hours=1))
    assert [result for _due, result, _reason in windows(schedule)] == ["skipped", "skipped", "started"]
    assert Activation.objects.count() == 1
    assert [reason for _due, _result, reason in windows(schedule)] == [MISSED(), MISSED(), STARTED_LATE()]


@pytest.mark.both_databases
def test_a_year_away_leaves_one_row_that_says_how_many(pool: Pool) -> None:
    minutely = scheduled(enabled(delayed(pool)), "* * * * *")
    tick(minutely.pk, NOW + timedelta(days=365))
    (missed, *late) = windows(minutely)
    assert missed[0] == NOW + timedelta(minutes=1)
    assert missed[2] == MISSED_MANY(count="1000+", first="2026-03-01 12:01 UTC", last="2027-03-01 11:55 UTC")
    # The last five minutes are no longer missed: the newest of them starts.
    assert [(result, reason) for _due, result, reason in late] == [
        *[("skipped", LATER_ONE_STARTED())] * 4, ("started", NO_REASON),
    ]  # fmt: skip
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
        patched.setattr(ticks, "start_activation", dies)
        assert tend_schedules(SOON) == 0
    assert not windows(schedule)
    assert tend_schedules(SOON) == 1
    assert windows(schedule) == [(DUE, "started", NO_REASON)]


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
    again = Schedule(
        pk=schedule.pk, setting=schedule.setting, crontab="30  2 * * *", time_zone="Europe/Berlin"
    )
    save_schedule(again, None, SOON)
    tick(schedule.pk, SOON)
    assert windows(schedule) == [(DUE, "started", NO_REASON)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, datetime]]:
    """The schedules that a worker is asked to tick, with the instants."""
    sent: list[tuple[int, datetime]] = []

    def send(task: str, schedule: int, *, expires: float, at: datetime) -> bool:
        assert (task, expires) == ("agents.tick", 60)
        sent.append((schedule, at))
        return True

    monkeypatch.setattr(ticks, "send", send)
    return sent


def test_a_window_before_the_next_look_is_asked_for_when_it_begins(
    pool: Pool, asked: list[tuple[int, datetime]]
) -> None:
    daily = scheduled(enabled(delayed(pool)))
    scheduled(delayed(pool, "off"))
    often = scheduled(enabled(delayed(pool, "often")), "", every_seconds=7200)
    for now, until in ((DUE - DAY, DUE - timedelta(seconds=1)), (DUE, DUE + timedelta(seconds=5))):
        ask_for_ticks(now, until)
    assert [at for schedule, at in asked if schedule == daily.pk] == []
    ask_for_ticks(DUE - timedelta(seconds=5), DUE)
    assert [at for schedule, at in asked if schedule == daily.pk] == [DUE]
    assert {schedule for schedule, _at in asked} == {daily.pk, often.pk}
    assert not Window.objects.exists(), "who asks decides nothing"


def test_every_look_asks_for_what_begins_before_the_next_one(
    pool: Pool, asked: list[tuple[int, datetime]]
) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    tend(DUE - timedelta(seconds=4))
    assert asked == [(schedule.pk, DUE)]
    tend(DUE + timedelta(seconds=1))
    assert asked == [(schedule.pk, DUE)]
    assert windows(schedule) == [(DUE, "started", NO_REASON)], "the look itself decides what nobody ticked"


def test_a_schedule_that_nobody_can_read_keeps_no_other_from_its_tick(
    pool: Pool, asked: list[tuple[int, datetime]]
) -> None:
    bad, good = (scheduled(enabled(delayed(pool, key))) for key in ("bad", "good"))
    Schedule.objects.filter(pk=bad.pk).update(crontab="no crontab")
    ask_for_ticks(DUE - timedelta(seconds=1), DUE)
    assert asked == [(good.pk, DUE)]


def test_while_redis_is_away_one_schedule_is_asked_for(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("one", "two"):
        scheduled(enabled(delayed(pool, key)))
    sent: list[int] = []
    monkeypatch.setattr(ticks, "send", lambda _task, schedule, **_more: sent.append(schedule))
    ask_for_ticks(DUE - timedelta(seconds=1), DUE)
    assert len(sent) == 1


def test_a_tick_of_a_schedule_that_went_with_its_setting_does_nothing(pool: Pool) -> None:
    schedule = scheduled(delayed(pool))
    pk = schedule.pk
    schedule.delete()
    assert not tick(pk, SOON)


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


def test_only_what_is_started_by_schedule_has_one(pool: Pool) -> None:
    with pytest.raises(ValidationError, match="continuous"):
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
def test_old_windows_are_forgotten_and_what_they_started_stays(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    tick(schedule.pk, SOON)
    assert forget_old_windows(DUE + 90 * DAY) == 0
    assert forget_old_windows(DUE + 91 * DAY) == 1
    assert Activation.objects.count() == 1
