"""Scheduled groups: strict order, one pass at a time, switched as a whole."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import translation

from agents.groups import group as scheduled_group
from agents.groups.group import (
    advance_groups,
    delete_group,
    disable_group,
    enable_group,
    group_refusal,
    run_group_now,
)
from agents.groups.members import reorder, save_members
from agents.models import (
    Activation,
    GroupActivation,
    LaunchSetting,
    Pool,
    ScheduledGroup,
    StateChange,
    Trigger,
)
from agents.reasons import MEMBER_ENDED
from agents.schedules.tick import tick
from agents.settings.enable import disable_setting, enable_setting
from console.operations.refusals import Refused
from console.reasons import NO_REASON, said
from tests.web.launching import delayed, enabled, end, group_of, scheduled
from tests.web.rows import NOW, make_setting

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(minutes=1)


@pytest.fixture
def night(pool: Pool) -> ScheduledGroup:
    """one, two, three; enabled."""
    group = group_of(*[delayed(pool, key) for key in ("one", "two", "three")])
    return enable_group(group, None, NOW)


def begun(group_activation: GroupActivation) -> list[str]:
    """The members that were started, in the order of their start."""
    return list(
        group_activation.activations.order_by("started_at", "pk").values_list("setting__key", flat=True)
    )


def newest() -> Activation:
    return Activation.objects.get(ended_at=None)


def keys(group: ScheduledGroup) -> list[str]:
    return list(group.members.order_by("position").values_list("setting__key", flat=True))


@pytest.mark.both_databases
def test_members_run_one_after_the_other_and_then_it_has_succeeded(night: ScheduledGroup) -> None:
    passing = run_group_now(night, None, NOW)
    for number, key in enumerate(("one", "two", "three"), start=1):
        assert begun(passing)[number - 1 :] == [key]
        assert newest().trigger == Trigger.GROUP
        end(newest(), NOW + timedelta(minutes=number))
    passing.refresh_from_db()
    assert (passing.state, passing.ended_at) == ("succeeded", NOW + timedelta(minutes=3))


@pytest.mark.both_databases
def test_a_member_waits_until_every_record_of_the_one_before_is_here(night: ScheduledGroup) -> None:
    passing = run_group_now(night, None, NOW)
    Activation.objects.update(state="succeeded")
    assert advance_groups(LATER) == 0
    assert begun(passing) == ["one"]


@pytest.mark.both_databases
@pytest.mark.parametrize("state", ["failed", "interrupted", "stopped"])
def test_a_member_that_did_not_finish_well_fails_the_pass_and_is_named(
    night: ScheduledGroup, state: str
) -> None:
    passing = run_group_now(night, None, NOW)
    end(newest(), LATER)
    end(newest(), LATER + timedelta(minutes=1), state)
    passing.refresh_from_db()
    assert (passing.state, passing.ended_at) == ("failed", LATER + timedelta(minutes=1))
    assert passing.reason == MEMBER_ENDED(key="two", state=state)
    assert begun(passing) == ["one", "two"]


@pytest.mark.both_databases
def test_tending_heals_a_kill_between_two_members(night: ScheduledGroup) -> None:
    passing = run_group_now(night, None, NOW)
    end(newest(), NOW, tell=False)
    assert begun(passing) == ["one"]
    assert advance_groups(LATER) == 1
    assert advance_groups(LATER) == 0
    assert begun(passing) == ["one", "two"]


@pytest.mark.both_databases
def test_a_member_that_is_begun_is_never_begun_again(
    night: ScheduledGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that saw the member missing: the row's lock lets the second find it."""
    passing = run_group_now(night, None, NOW)
    facts, seen = scheduled_group._member_facts, iter([None])
    monkeypatch.setattr(scheduled_group, "_member_facts", lambda *args: next(seen, facts(*args)))
    assert not scheduled_group.advance(passing.pk, NOW)
    assert begun(passing) == ["one"]


@pytest.mark.both_databases
def test_a_second_pass_is_refused_while_one_runs(night: ScheduledGroup) -> None:
    run_group_now(night, None, NOW)
    with pytest.raises(Refused) as refused:
        run_group_now(night, None, LATER)
    assert refused.value.code == "still_running"
    schedule = scheduled(night, "", every_seconds=60)
    tick(schedule.pk, NOW + timedelta(seconds=61))
    window = schedule.windows.get()
    assert window.result == "skipped"
    with translation.override("ru"):
        assert (
            str(window.reason) == "Предыдущий запуск группы ещё не завершился: выполняется участник 1 из 3."
        )


@pytest.mark.both_databases
def test_no_pass_begins_while_a_member_of_the_one_before_is_still_stopping(night: ScheduledGroup) -> None:
    run_group_now(night, None, NOW)
    Activation.objects.update(state="stopped")
    GroupActivation.objects.update(state="stopped", ended_at=NOW)
    with pytest.raises(Refused, match="one"):
        run_group_now(night, None, LATER)


@pytest.mark.both_databases
def test_a_window_starts_a_pass(night: ScheduledGroup) -> None:
    schedule = scheduled(night, "", every_seconds=60)
    tick(schedule.pk, NOW + timedelta(seconds=61))
    window = schedule.windows.get()
    assert (window.result, window.group_activation) == ("started", GroupActivation.objects.get())
    assert begun(GroupActivation.objects.get()) == ["one"]


@pytest.mark.both_databases
def test_a_setting_that_is_gone_fails_the_pass(night: ScheduledGroup) -> None:
    passing = run_group_now(night, None, NOW)
    night.members.filter(setting__key="two").delete()
    LaunchSetting.objects.filter(key="two").delete()
    end(newest(), LATER)
    passing.refresh_from_db()
    assert passing.state == "failed" and "two" in str(passing.reason)


@pytest.mark.both_databases
def test_enabling_enables_all_members_and_starts_none(night: ScheduledGroup) -> None:
    assert night.enabled
    assert LaunchSetting.objects.filter(enabled=True).count() == 3
    assert not Activation.objects.exists()


@pytest.mark.both_databases
def test_enabling_is_all_or_nothing(pool: Pool) -> None:
    group = group_of(delayed(pool, "one"), delayed(pool, "two", provision_state="failed"))
    with pytest.raises(Refused, match="two") as refused:
        enable_group(group, None, NOW)
    assert refused.value.code == "not_provisioned"
    assert not LaunchSetting.objects.filter(enabled=True).exists()
    with pytest.raises(Refused, match="no member"):
        enable_group(ScheduledGroup.objects.create(name="empty"), None, NOW)


@pytest.mark.both_databases
def test_disabling_stops_the_member_that_runs_and_starts_no_other(night: ScheduledGroup) -> None:
    passing = run_group_now(night, None, NOW)
    assert disable_group(night, None, said("night shift"), LATER)
    assert not disable_group(night, None, said("again"), LATER)
    passing.refresh_from_db()
    assert (passing.state, str(passing.reason)) == ("stopped", "night shift")
    assert Activation.objects.get().state == "stopped"
    assert not LaunchSetting.objects.filter(enabled=True).exists()
    advance_groups(LATER)
    assert begun(passing) == ["one"]


@pytest.mark.both_databases
def test_disabling_a_member_disables_the_group(night: ScheduledGroup) -> None:
    passing = run_group_now(night, None, NOW)
    assert disable_setting(LaunchSetting.objects.get(key="three"), None, said("disk full"), LATER)
    night.refresh_from_db()
    passing.refresh_from_db()
    assert (night.enabled, str(night.disabled_reason), passing.state) == (
        False,
        "three: disk full",
        "stopped",
    )
    assert not LaunchSetting.objects.filter(enabled=True).exists()


@pytest.mark.both_databases
def test_a_tripped_member_fails_the_pass_and_disables_the_group(night: ScheduledGroup) -> None:
    passing = run_group_now(night, None, NOW)
    disable_group(night, None, said("breaker"), LATER, tripped=LaunchSetting.objects.get(key="one"))
    passing.refresh_from_db()
    assert passing.state == "failed" and "one" in str(passing.reason)
    assert Activation.objects.get().state == "interrupted"


@pytest.mark.both_databases
def test_a_member_is_not_enabled_alone(pool: Pool) -> None:
    member = delayed(pool, "one")
    group_of(member)
    with pytest.raises(Refused, match="night") as refused:
        enable_setting(member, None, NOW)
    assert refused.value.code == "in_group"
    assert not LaunchSetting.objects.filter(enabled=True).exists()


@pytest.mark.both_databases
def test_a_member_has_no_schedule_of_its_own(pool: Pool) -> None:
    member = delayed(pool, "one")
    group_of(member)
    with pytest.raises(ValidationError, match="group"):
        scheduled(LaunchSetting.objects.get(pk=member.pk))


@pytest.mark.both_databases
def test_members_are_reordered_and_a_running_pass_keeps_its_plan(night: ScheduledGroup) -> None:
    passing = run_group_now(night, None, NOW)
    reorder(night, ["three", "one", "two"], None, NOW)
    assert keys(night) == ["three", "one", "two"]
    end(newest(), LATER)
    assert begun(passing) == ["one", "two"]
    moved = StateChange.objects.filter(what="group").values_list("setting__key", "old", "new")
    assert set(moved) == {
        ("one", "night 1", "night 2"),
        ("two", "night 2", "night 3"),
        ("three", "night 3", "night 1"),
    }


@pytest.mark.parametrize(
    "order", [["one", "two"], ["one", "two", "three", "four"], ["one", "two", "two"], []]
)
def test_an_order_names_each_member_once(night: ScheduledGroup, order: list[str]) -> None:
    with pytest.raises(ValidationError):
        reorder(night, order, None, NOW)
    assert keys(night) == ["one", "two", "three"]


@pytest.mark.both_databases
def test_members_come_and_go(pool: Pool) -> None:
    group = group_of(*[delayed(pool, key) for key in ("one", "two", "three")])
    delayed(pool, "four")
    save_members(group, ["four", "three", "one"], None, NOW)
    assert keys(group) == ["four", "three", "one"]
    save_members(group, [], None, NOW)
    assert keys(group) == []


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (["one", "one"], "twice"),
        (["one", "nobody"], "unknown"),
        (["one", "night"], "unknown"),
        (["one", "asap"], "not_delayed"),
        (["one", "elsewhere"], "in_another_group"),
        (["one", "own"], "own_schedule"),
        (["one", "running"], "enabled"),
    ],
)
def test_each_wrong_member_is_refused_with_its_reason(pool: Pool, asked: list[str], code: str) -> None:
    group = group_of(delayed(pool, "one"))
    make_setting(pool, "asap")
    group_of(delayed(pool, "elsewhere"), name="other")
    scheduled(delayed(pool, "own"))
    enabled(delayed(pool, "running"))
    with pytest.raises(ValidationError) as refused:
        save_members(group, asked, None, NOW)
    assert refused.value.error_dict["members"][0].code == code
    assert keys(group) == ["one"]
    assert refused.value.messages[0]


@pytest.mark.both_databases
def test_members_come_and_go_only_while_the_group_is_disabled(night: ScheduledGroup, pool: Pool) -> None:
    delayed(pool, "four")
    with pytest.raises(ValidationError, match="Disable the group, then add or remove members."):
        save_members(night, ["one", "two", "three", "four"], None, NOW)


@pytest.mark.both_databases
def test_a_group_is_deleted_once_it_is_disabled(night: ScheduledGroup) -> None:
    scheduled(night)
    with pytest.raises(Refused) as refused:
        delete_group(night, None, NOW)
    assert refused.value.code == "enabled"
    disable_group(night, None, said(""), NOW)
    delete_group(night, None, NOW)
    assert not ScheduledGroup.objects.exists()
    assert LaunchSetting.objects.filter(enabled=False).count() == 3


def test_why_a_pass_failed_is_said_in_russian(night: ScheduledGroup) -> None:
    passing = run_group_now(night, None, NOW)
    end(newest(), LATER, "interrupted")
    passing.refresh_from_db()
    with translation.override("ru"):
        assert str(passing.reason) == "one завершилась неуспешно: прервана"


def test_a_member_that_cannot_be_enabled_is_named_before_its_refusal_in_both_languages(
    night: ScheduledGroup,
) -> None:
    disable_group(night, None, NO_REASON, NOW)
    LaunchSetting.objects.filter(key="two").update(provision_state="pending")
    for language in ("en", "ru"):
        with translation.override(language):
            refused = group_refusal(night, NOW)
            assert refused is not None and refused.reason.startswith("two: "), language
