"""Retention costs a dead letter no explanation, and the option keeps its protocols."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.models import Activation, Run
from console.processes import record_heartbeat
from dlq.models import DeadLetter, LetterState
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol
from retention.models import RetentionFigure
from retention.worker import run_retention_turn
from tests.web import letters, reports
from tests.web.reports import AT, Spool

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
TEXT = "no price for <b>article 4711</b>"


@pytest.fixture
def letter() -> DeadLetter:
    """Dead in an activation after which another one finished well; the feed was there since."""
    run = reports.run(reports.setting(), reports.server())
    fail(run, "ID:1")
    found = letters.dead("orders", 10, "ID:1")
    Activation.objects.update(ended_at=AT + timedelta(hours=1), well=True, state="succeeded")
    record_heartbeat("feed", AT + timedelta(hours=2))
    return found


def fail(run: Run, key: str, **fields: Any) -> None:
    content = reports.protocol(reports.run_of(run), reports.message(key), exception_text=TEXT, **fields)
    accept_batch(run.server, Spool().batch(content), AT)


def apply() -> None:
    run = run_retention_turn(timezone.now(), every=timedelta(0))
    assert run is not None
    assert run.state == "done", run.problem


def test_letter_and_case_explain_the_death_without_its_protocol(
    letter: DeadLetter, client: Client, viewer: User
) -> None:
    apply()
    assert not FailureProtocol.objects.exists()
    client.force_login(viewer)
    whole = client.get(f"/letters/{letter.pk}/").content.decode()
    case = client.get("/cases/", {"key": "ID:1", "setting": "orders"}).content.decode()

    for html in (whole, case):
        assert "builtins.KeyError" in html
        assert "no price for &lt;b&gt;article 4711" in html
        assert "orders.py:handle" in html
        assert "srv-1" in html
        assert "failure protocol deleted by retention" in html


def test_with_its_protocol_the_case_tells_it_once(letter: DeadLetter, client: Client, viewer: User) -> None:
    client.force_login(viewer)
    case = client.get("/cases/", {"key": "ID:1", "setting": "orders"}).content.decode()

    assert case.count("no price for") == 1
    assert "deleted by retention" not in case


def test_the_option_keeps_protocols_of_what_is_still_dead(letter: DeadLetter, settings: Any) -> None:
    fail(Run.objects.get(), "ID:2", temporary=True, outcome="temporary")
    settings.MA_RETENTION_KEEP_DEAD = True
    apply()
    assert list(FailureProtocol.objects.values_list("message_key", flat=True)) == ["ID:1"]
    assert RetentionFigure.objects.get(rule="well").kept_for == {"dead": 1}

    DeadLetter.objects.update(state=LetterState.GIVEN_BACK)
    apply()
    assert not FailureProtocol.objects.exists()


def test_last_attempts_stay_until_the_feed_was_there(letter: DeadLetter) -> None:
    fail(Run.objects.get(), "ID:3", last_attempt=True)
    Activation.objects.update(well=True)
    record_heartbeat("feed", AT - timedelta(hours=1))
    apply()
    assert list(FailureProtocol.objects.values_list("message_key", flat=True)) == ["ID:3"]
    assert RetentionFigure.objects.get(rule="well").kept_for == {"index": 1}

    record_heartbeat("feed", AT + timedelta(hours=1))
    apply()
    assert not FailureProtocol.objects.exists()


def test_a_long_text_is_kept_by_its_beginning() -> None:
    run = reports.run(reports.setting(), reports.server())
    content = reports.protocol(reports.run_of(run), reports.message("ID:1"), exception_text="x" * 50_000)
    accept_batch(run.server, Spool().batch(content), AT)

    assert len(letters.dead("orders", 10, "ID:1").exception_text) == 2000
