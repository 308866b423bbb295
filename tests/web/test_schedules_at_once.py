"""Two beats, two workers: the same window and the same pass, at the same instant, on connections of their
own."""

from datetime import UTC, datetime

import pytest

from agents.activations.end import end_activations, set_ending
from agents.groups.group import advance, advance_groups, disable_group, run_group_now
from agents.models import Activation, Ending, GroupActivation, Pool, RunPhase, Server, Window
from agents.schedules.tick import tend_schedules, tick
from console.reasons import said
from tests.web.launching import delayed, enabled, end, group_of, scheduled
from tests.web.rows import NOW, make_alive
from tests.web.test_failures_intake_at_once import at_once

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

SOON = datetime(2026, 3, 2, 1, 30, 3, tzinfo=UTC)


@pytest.fixture
def pool() -> Pool:
    pool = Pool.objects.create(name="demo")
    pool.servers.add(Server.objects.create(name="srv-1"))
    return pool


def test_doubled_ticks_start_one_activation(pool: Pool) -> None:
    schedule = scheduled(enabled(delayed(pool)))
    answers = at_once(*[lambda: tick(schedule.pk, SOON)] * 3, *[lambda: tend_schedules(SOON)] * 3)
    assert sum(bool(answer) for answer in answers) == 1
    assert Window.objects.get().activation == Activation.objects.get()


def test_doubled_ticks_start_one_pass_of_a_group(pool: Pool) -> None:
    group = group_of(enabled(delayed(pool, "one")), enabled(delayed(pool, "two")))
    group.enabled = True
    group.save()
    schedule = scheduled(group)
    at_once(*[lambda: tick(schedule.pk, SOON)] * 4)
    assert Window.objects.get().group_activation == GroupActivation.objects.get()
    assert Activation.objects.get().setting.key == "one"


def test_several_that_see_the_end_of_a_member_start_the_next_one_once(pool: Pool) -> None:
    group = group_of(*[enabled(delayed(pool, key)) for key in ("one", "two", "three")])
    group.enabled = True
    group.save()
    group_activation = run_group_now(group, None, NOW)
    end(Activation.objects.get(), NOW, tell=False)
    at_once(*[lambda: advance(group_activation.pk, NOW)] * 3, *[lambda: advance_groups(NOW)] * 2)
    assert sorted(Activation.objects.values_list("setting__key", flat=True)) == ["one", "two"]
    group_activation.refresh_from_db()
    assert group_activation.step == 1


def test_a_group_disabled_while_its_next_member_starts_leaves_nothing_running(pool: Pool) -> None:
    group = group_of(*[enabled(delayed(pool, key)) for key in ("one", "two")])
    group.enabled = True
    group.save()
    group_activation = run_group_now(group, None, NOW)
    end(Activation.objects.get(), NOW, tell=False)
    at_once(
        lambda: advance(group_activation.pk, NOW),
        lambda: disable_group(group, None, said("night shift"), NOW),
    )
    advance_groups(NOW)
    assert not Activation.objects.filter(state__in=["pending", "running"]).exists()
    group_activation.refresh_from_db()
    assert group_activation.state == "stopped"


def test_the_end_of_a_member_starts_the_next_one_at_once(pool: Pool) -> None:
    """Through the service that ends activations, as an intake or a tend does it; two see the end."""
    make_alive(*pool.servers.all(), now=NOW)
    group = group_of(*[enabled(delayed(pool, key)) for key in ("one", "two")])
    group.enabled = True
    group.save()
    run_group_now(group, None, NOW)
    first = Activation.objects.get()
    assert first.runs.count() == 1
    set_ending(first, Ending.DRAINED, NOW)
    first.runs.update(state=RunPhase.FINISHED, closed_at=NOW, closing_records=0)
    at_once(lambda: end_activations(NOW), lambda: end_activations(NOW))
    assert sorted(Activation.objects.values_list("setting__key", "state")) == [
        ("one", "succeeded"),
        ("two", "running"),
    ]
