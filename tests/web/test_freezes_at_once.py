"""A freeze beside starts, ticks, freezes and unfreezes of the same instant, from connections of their own."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from agents.activations.operations import start_activation
from agents.freezes.operations import FreezePool, FreezeSite, UnfreezePool
from agents.groups.group import enable_group
from agents.models import Activation, Freeze, HeldStart, Pool, SiteIdentity, Trigger, Window
from agents.schedules.tick import tick
from agents.settings.enable import enable_setting
from console.audit.models import AuditEntry
from console.operations.operation import perform
from console.operations.refusals import Refused
from tests.web.launching import delayed, enabled, group_of, scheduled
from tests.web.rows import NOW, make_setting
from tests.web.test_failures_intake_at_once import at_once

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
ROUNDS = range(3)
DUE = datetime(2026, 3, 2, 1, 30, tzinfo=UTC)


def freeze(pool: Pool) -> bool:
    return perform(FreezePool, pool, None, NOW, reason="release").changed


def unfreeze(pool: Pool) -> bool:
    return perform(UnfreezePool, pool, None, NOW).changed


@pytest.mark.parametrize("_round", ROUNDS)
def test_a_freeze_is_told_only_after_the_start_that_had_begun_before_it(pool: Pool, _round: int) -> None:
    setting = enabled(delayed(pool))
    begun, order = threading.Event(), list[str]()

    def start() -> None:
        with transaction.atomic():
            start_activation(setting, Trigger.PERSON, None, NOW)
            begun.set()
            waits.wait(0.3)  # the freeze cannot be done before: nobody sets it
            order.append("started")

    def freezes() -> None:
        begun.wait(10)
        freeze(pool)
        order.append("frozen")

    waits = threading.Event()
    at_once(start, freezes)

    assert order == ["started", "frozen"]
    assert Activation.objects.count() == Freeze.objects.count() == 1


@pytest.mark.parametrize("_round", ROUNDS)
def test_a_tick_beside_a_freeze_starts_its_window_or_holds_it(pool: Pool, _round: int) -> None:
    schedule = scheduled(enabled(delayed(pool)))

    at_once(lambda: tick(schedule.pk, DUE), lambda: freeze(pool), lambda: tick(schedule.pk, DUE))

    results = list(Window.objects.values_list("result", flat=True))
    started, held = Activation.objects.count(), HeldStart.objects.count()
    assert (results, started, held) in ((["started"], 1, 0), (["held"], 0, 1))


@pytest.mark.parametrize("_round", ROUNDS)
def test_what_is_held_starts_once_however_many_tick_after_the_freeze(pool: Pool, _round: int) -> None:
    schedule = scheduled(enabled(delayed(pool)), missed="once")
    freeze(pool)
    tick(schedule.pk, DUE)
    unfreeze(pool)

    later = DUE + timedelta(minutes=1)
    decided = at_once(*[lambda: tick(schedule.pk, later)] * 3)

    assert sorted(map(bool, decided)) == [False, False, True]
    assert Activation.objects.count() == Window.objects.filter(result="started").count() == 1


@pytest.mark.parametrize("_round", ROUNDS)
def test_of_several_who_unfreeze_at_once_one_does_it(pool: Pool, _round: int) -> None:
    freeze(pool)

    done = at_once(*[lambda: unfreeze(pool)] * 3)

    assert sorted(done) == [False, False, True]
    entries = AuditEntry.objects.filter(action="pool.unfreeze")
    assert sorted("changed" in entry.detail for entry in entries) == [False, True, True]


@pytest.mark.parametrize("_round", ROUNDS)
def test_of_several_who_freeze_at_once_one_begins_it(pool: Pool, _round: int) -> None:
    done = at_once(*[lambda: freeze(pool)] * 3)

    assert sorted(done) == [False, False, True]
    assert Freeze.objects.count() == 1


@pytest.mark.parametrize("_round", ROUNDS)
def test_freezes_of_all_scopes_beside_groups_and_settings_that_are_enabled_come_to_an_end(
    pool: Pool, _round: int
) -> None:
    group = group_of(delayed(pool, "two"), delayed(pool, "one"))
    setting = make_setting(pool, "zero")
    site = SiteIdentity.objects.get_or_create(pk=1)[0]

    def enables() -> bool:
        try:
            enable_group(group, None, NOW)
            enable_setting(setting, None, NOW)
        except Refused:
            return False
        return True

    answers = at_once(
        lambda: freeze(pool),
        lambda: perform(FreezeSite, site, None, NOW, reason="release").changed,
        enables,
    )

    assert answers[:2] == [True, True]
    assert answers[2] in (True, False)
    assert Freeze.objects.count() == 2
