"""Two activations beside each other: how long they lasted, what they processed and what failed."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import Activation, ActivationState, Run
from failures.error_groups.rollup import fold_all
from failures.models import FailureGroup
from failures.pages.difference import Work, share_of, work_of
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in

KEY = "orders-export"


@pytest.mark.parametrize(
    ("seconds", "handled", "said"),
    [
        (60, 90, "90"),
        (120, 90, "45"),
        (60, 3, "3"),
        (3600, 90, "1.5"),
        (60, 123_456, "123,456"),
        (0.4, 5, "—"),
    ],
)
def test_a_rate_is_processed_messages_by_minutes(seconds: float, handled: int, said: str) -> None:
    assert Work(seconds, handled, failed=0, temporary=0).per_minute == said


@pytest.mark.parametrize(
    ("handled", "failed", "temporary", "said"),
    [
        (90, 10, 0, "10\N{NO-BREAK SPACE}%"),
        (95, 1, 104, "0.5\N{NO-BREAK SPACE}%"),
        (0, 0, 0, "0\N{NO-BREAK SPACE}%"),
    ],
)
def test_the_share_of_failures_is_of_all_attempts(
    handled: int, failed: int, temporary: int, said: str
) -> None:
    assert Work(60, handled, failed, temporary).failed_share == said


def test_what_goes_on_lasts_until_now_and_a_clock_that_stepped_back_costs_nothing(world: World) -> None:
    activation = world.activations[KEY]
    at = activation.started_at

    assert work_of(activation, at + timedelta(minutes=3)).seconds == 180
    assert work_of(activation, at - timedelta(minutes=3)).seconds == 0
    activation.ended_at = at + timedelta(seconds=30)
    assert work_of(activation, at + timedelta(minutes=3)).seconds == 30


def test_the_figures_of_both_are_side_by_side_and_lead_to_their_failures(world: World) -> None:
    before, now = world.activations[KEY], timezone.now()
    Run.objects.filter(activation=before).update(handled=0, failed=0, temporary=0)
    first = before.runs.order_by("pk")[0]
    Run.objects.filter(pk=first.pk).update(handled=600, failed=30, temporary=7)
    Activation.objects.filter(pk=before.pk).update(
        state=ActivationState.SUCCEEDED, started_at=now - timedelta(minutes=30), ended_at=now, number=1
    )
    after = Activation.objects.create(
        setting=before.setting,
        number=2,
        state=ActivationState.SUCCEEDED,
        started_at=now,
        ended_at=now + timedelta(minutes=2),
    )
    Run.objects.create(activation=after, server=first.server, epoch=1, handled=100, failed=25)
    page = looked_at(signed_in(world, "viewer"), f"/activations/{after.pk}/")

    figures = page.text.partition("Figure Before Now ")[2]
    assert figures.startswith(
        "Duration 30 min 2 min Processed 600 100 Processed per minute 20 50 Failed 30 25 "
        "Failure rate 4.7 % 20 % Temporary 7 0"
    )
    for activation in (before, after):
        assert f"/protocols/?activation={activation.pk}&temporary=false" in page.links()


@pytest.mark.parametrize(
    ("failures", "attempts", "said"),
    [
        (22, 1000, "2.2\N{NO-BREAK SPACE}%"),
        (72, 10_000, "0.72\N{NO-BREAK SPACE}%"),
        (500, 1000, "50\N{NO-BREAK SPACE}%"),
        (1, 3_000_000, "0.000033\N{NO-BREAK SPACE}%"),
        (0, 1000, "0\N{NO-BREAK SPACE}%"),
        (7, 0, ""),
    ],
)
def test_a_share_of_attempts_has_two_digits_and_is_not_said_where_they_are_unknown(
    failures: int, attempts: int, said: str
) -> None:
    assert share_of(failures, attempts) == said


def test_a_kind_that_failed_more_in_number_and_less_often_says_the_shares_that_are_compared(
    world: World,
) -> None:
    """22 of 1,000 attempts, then 72 of 10,000."""
    before, now = world.activations[KEY], timezone.now()
    Activation.objects.filter(pk=before.pk).update(
        state=ActivationState.SUCCEEDED, started_at=now - timedelta(hours=1), ended_at=now, number=1
    )
    after = Activation.objects.create(
        setting=before.setting, number=2, state=ActivationState.RUNNING, started_at=now
    )
    first = before.runs.order_by("pk")[0]
    Run.objects.filter(activation=before).update(handled=0, failed=0, temporary=0)
    Run.objects.filter(pk=first.pk).update(handled=978, failed=22)
    Run.objects.create(activation=after, server=first.server, epoch=1, handled=9_928, failed=72)
    fold_all(now)
    row = FailureGroup.objects.filter(activation_uuid=before.pk)[0]
    FailureGroup.objects.filter(activation_uuid=before.pk).exclude(pk=row.pk).delete()
    FailureGroup.objects.filter(pk=row.pk).update(count=22)
    row.pk, row.activation_uuid, row.count = None, after.pk, 72
    row.save(force_insert=True)

    text = looked_at(signed_in(world, "viewer"), f"/activations/{after.pk}/").text

    assert "less often 22 2.2 % 72 0.72 %" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert "show how the share of attempts" in text
