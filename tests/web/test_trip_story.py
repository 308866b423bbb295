"""The story of a trip that a failed try opened again: in order, and each time with its own instant."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser

from agents.models import BreakerTrip, LaunchSetting, Pool, Server
from agents.pages.trips import cause_of_trip, trip_story
from contract.records import BreakerCounts
from tests.web.rows import NOW, activate, make_alive, make_setting
from tests.web.test_breaker_trips import give_up, started

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
LATER = NOW + timedelta(seconds=10)


def test_a_trip_that_was_opened_again_is_told_in_order_and_keeps_its_cause(
    pool: Pool, server: Server
) -> None:
    make_alive(server, now=NOW)
    setting = make_setting(pool)
    (run,) = started(setting).values()
    give_up(run, counts=BreakerCounts("KeyError", 2, 2))
    LaunchSetting.objects.update(try_one_first=True)
    activation = activate(setting, None, LATER)
    give_up(activation.runs.get(), at=LATER, reason="trial", counts=BreakerCounts("KeyError", 1, 1))

    trip = BreakerTrip.objects.get()
    told = list(trip.interruptions.order_by("received_at"))
    story = trip_story(trip, [(each, "") for each in told], AnonymousUser())

    assert [[each.reason for each, _ in chapter.given_up] for chapter in story] == [["same_type"], ["trial"]]
    assert [chapter.at for chapter in story] == [NOW, LATER]
    assert [[done.name for done in chapter.effects] for chapter in story] == [[setting.key]] * 2
    assert (
        cause_of_trip(trip, list(reversed(told))) == f"2 consecutive KeyError failures on {run.server.name}"
    )
