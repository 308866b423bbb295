"""Attempts that killed their KMA count on every server, until the message ended."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from agents.heartbeat.desired import attempts_known
from agents.models import LaunchSetting, Run
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol
from failures.protocols import messages
from tests.web import reports
from tests.web.reports import Spool

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def of(setting: LaunchSetting) -> dict[str, int]:
    return attempts_known([setting])[setting.key]


@pytest.fixture
def run() -> Run:
    return reports.run(reports.setting(), reports.server())


@pytest.fixture
def now() -> datetime:
    return timezone.now()


def store(
    run: Run, now: datetime, key: str, attempt: int, minutes_ago: int, outcome: str, last: bool = False
) -> None:
    at = now - timedelta(minutes=minutes_ago)
    content = reports.protocol(
        reports.run_of(run), reports.message(key, attempt), outcome=outcome, occurred_at=at, last_attempt=last
    )
    accept_batch(run.server, Spool().batch(content), at)


def test_only_messages_that_a_kma_died_with_are_told(run: Run, now: datetime) -> None:
    store(run, now, "ID:plain", 3, 5, "raised")
    store(run, now, "ID:killer", 2, 5, "kma_died")
    assert of(run.activation.setting) == {"ID:killer": 2}


def test_the_number_is_the_largest_since_also_of_attempts_that_killed_nobody(run: Run, now: datetime) -> None:
    store(run, now, "ID:killer", 2, 9, "kma_died")
    store(run, now, "ID:killer", 3, 5, "raised")
    assert of(run.activation.setting) == {"ID:killer": 3}


def test_another_setting_hears_nothing_of_it(run: Run, now: datetime) -> None:
    store(run, now, "ID:killer", 2, 9, "kma_died")
    assert of(reports.setting("invoices")) == {}


def test_a_weak_key_is_not_told_because_equal_messages_share_it(run: Run, now: datetime) -> None:
    content = reports.protocol(
        reports.run_of(run), reports.message("sha256:1", 2, weak=True), outcome="kma_died", occurred_at=now
    )
    accept_batch(run.server, Spool().batch(content), now)
    assert of(run.activation.setting) == {}


def test_a_message_that_was_handled_is_forgotten(run: Run, now: datetime) -> None:
    store(run, now, "ID:killer", 2, 5, "kma_died")
    content = reports.recovered(reports.run_of(run), reports.message("ID:killer", 3), occurred_at=now)
    accept_batch(run.server, Spool().batch(content), now)
    assert of(run.activation.setting) == {}


def test_an_exhausted_message_starts_anew_when_it_is_given_back(run: Run, now: datetime) -> None:
    store(run, now, "ID:killer", 2, 30, "kma_died")
    store(run, now, "ID:killer", 4, 20, "raised", last=True)
    assert of(run.activation.setting) == {}
    store(run, now, "ID:killer", 1, 10, "kma_died")
    assert of(run.activation.setting) == {"ID:killer": 1}


def test_a_higher_app_says_when_messages_ended(
    run: Run, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = {"ID:killer": now - timedelta(minutes=1)}
    monkeypatch.setattr(messages, "message_endings", lambda key, keys: [ended])
    store(run, now, "ID:killer", 2, 5, "kma_died")
    store(run, now, "ID:other", 1, 5, "kma_died")
    assert of(run.activation.setting) == {"ID:other": 1}


@pytest.mark.parametrize("ordered", [False, True])
def test_attempts_of_a_run_that_the_site_does_not_know_are_not_told(
    run: Run, now: datetime, ordered: bool
) -> None:
    LaunchSetting.objects.update(ordered=ordered)
    unknown = replace(reports.run_of(run), activation=uuid4())
    died = reports.protocol(unknown, reports.message("ID:victim", 9), outcome="kma_died", occurred_at=now)
    accept_batch(run.server, Spool().batch(died), now)
    assert FailureProtocol.objects.count() == 1, "it is stored"
    assert of(LaunchSetting.objects.get()) == {}


def test_what_an_unknown_run_says_of_its_end_ends_nothing(run: Run, now: datetime) -> None:
    store(run, now, "ID:killer", 2, 5, "kma_died")
    unknown = replace(reports.run_of(run), activation=uuid4())
    said = reports.recovered(unknown, reports.message("ID:killer", 3), occurred_at=now)
    accept_batch(run.server, Spool().batch(said), now)
    assert of(run.activation.setting) == {"ID:killer": 2}


def test_what_was_long_ago_is_forgotten(run: Run, now: datetime) -> None:
    store(run, now, "ID:killer", 2, 25 * 60, "kma_died")
    assert of(run.activation.setting) == {}
