"""A letter says what it died of, whether its protocol came before or after it."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.heartbeat.desired import attempts_known
from agents.models import Acknowledgement, LaunchSetting, Run
from console.reasons import Reason
from dlq.models import DeadLetter
from failures.intake.batch import accept_batch
from tests.web import letters, reports
from tests.web.reports import AT, Spool

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


def of(setting: LaunchSetting) -> dict[str, int]:
    return attempts_known([setting])[setting.key]


@pytest.fixture
def run() -> Run:
    return reports.run(reports.setting(), reports.server())


def fail(
    run: Run, key: str, attempt: int, kind: str, minute: int = 0, letter_id: int | None = None, **fields: Any
) -> None:
    about = reports.message(key, attempt, dead_letter_id=letter_id, replayed=letter_id is not None)
    at = AT + timedelta(minutes=minute)
    content = reports.protocol(reports.run_of(run), about, exception_type=kind, occurred_at=at, **fields)
    accept_batch(run.server, Spool().batch(content), at)


def cause(letter: DeadLetter) -> tuple[str, int]:
    letter.refresh_from_db()
    return letter.exception_type, letter.delivery_count


def test_the_last_protocol_before_the_letter_explains_it(run: Run) -> None:
    fail(run, "ID:1", 1, "First")
    fail(run, "ID:1", 2, "Last", minute=1)
    assert cause(letters.dead("orders", 10, "ID:1")) == ("Last", 2)


def test_a_later_protocol_explains_a_letter_that_is_here(run: Run) -> None:
    letter = letters.dead("orders", 10, "ID:1")
    assert cause(letter) == ("", 0)
    fail(run, "ID:1", 2, "Last", minute=1)
    assert cause(letter) == ("Last", 2)
    fail(run, "ID:1", 1, "First, late")
    assert cause(letter) == ("Last", 2)


def test_one_that_a_person_gave_up_is_explained_by_its_failure_and_its_case_says_so(run: Run) -> None:
    fail(run, "ID:1", 1, "shop.Sold", exception_text="<b>out</b>")
    noted: dict[str, Any] = {"outcome": "noted", "counted": False, "last_attempt": True, "disposition": "dlq"}
    fail(run, "ID:1", 1, "shop.Sold", minute=1, exception_text="<b>out</b>", **noted)
    letter = letters.dead("orders", 10, "ID:1")

    assert cause(letter) == ("shop.Sold", 1) and letter.exception_text == "<b>out</b>"
    client = Client()
    client.force_login(reports.person("sees", "dlq.view_deadletter", "failures.view_failureprotocol"))
    text = client.get(f"/letters/{letter.pk}/").content.decode()
    assert "Moved to DLQ manually after attempt 1: shop.Sold" in text
    assert "1 failure, dead-lettered 1 time" in text
    assert text.count("Traceback (most recent call last)") == 1
    assert attempts_known([run.activation.setting])["orders"] == {}
    listed = client.get("/protocols/", headers={"accept-language": "ru"}).content.decode()
    assert "перемещено в DLQ вручную" in listed and "&lt;b&gt;out" in listed


def test_a_delivery_that_waited_for_an_answer_is_told_in_the_case_file(run: Run) -> None:
    """The broker may have counted each loss, so the letter may have no failure at all."""
    of = {
        "setting": run.activation.setting,
        "server": run.server,
        "activation_uuid": run.activation_id,
        "epoch": 1,
    }
    ended = {
        "message_key": "ID:1",
        "jms_message_id": "ID:1",
        "opened_at": AT,
        "ended_at": AT,
        "state": "lost",
    }
    lost = "The container ended before acknowledgement; the broker will redeliver the message."
    Acknowledgement.objects.create(
        acknowledgement="a", reason=Reason("delivery.container_ended"), **of, **ended
    )
    Acknowledgement.objects.create(acknowledgement="b", **of, message_key="ID:2", jms_message_id="ID:2")
    letter = letters.dead("orders", 10, "ID:1")
    client = Client()
    client.force_login(reports.person("sees", "dlq.view_deadletter", "failures.view_failureprotocol"))
    text = client.get(f"/letters/{letter.pk}/").content.decode()
    assert "Acknowledgement on attempt 1: lost" in text and lost in text
    assert "Awaiting acknowledgement" not in text
    other = letters.dead("orders", 11, "ID:2")
    assert "Awaiting acknowledgement (attempt 1)" in client.get(f"/letters/{other.pk}/").content.decode()


def test_an_agent_cannot_say_that_a_person_gave_its_message_up(run: Run) -> None:
    fail(run, "ID:1", 1, "shop.Sold", outcome="raised", disposition="dlq", last_attempt=True)
    letter = letters.dead("orders", 10, "ID:1")

    assert cause(letter) == ("shop.Sold", 1)
    client = Client()
    client.force_login(reports.person("sees", "dlq.view_deadletter", "failures.view_failureprotocol"))
    text = client.get(f"/letters/{letter.pk}/").content.decode()
    assert "Failed on attempt 1: shop.Sold" in text and "by a person, after attempt" not in text


def test_what_was_only_noted_is_no_failure_of_the_case_nor_of_the_run(run: Run) -> None:
    fail(run, "ID:1", 1, "acknowledgement_timeout_ignored", outcome="noted", counted=False, temporary=True)
    run.refresh_from_db()
    assert (run.failed, run.temporary, run.stored_records) == (0, 0, 1)
    letter = letters.dead("orders", 10, "ID:1")
    client = Client()
    client.force_login(reports.person("sees", "dlq.view_deadletter", "failures.view_failureprotocol"))
    text = client.get(f"/letters/{letter.pk}/").content.decode()
    assert "Recorded on attempt 1: acknowledgement_timeout_ignored" in text and "0 failures" in text


def test_another_setting_and_another_message_explain_nothing(run: Run) -> None:
    letter, other = letters.dead("orders", 10, "ID:1"), letters.dead("invoices", 10, "ID:2")
    fail(run, "ID:2", 1, "Of orders")
    assert cause(letter) == cause(other) == ("", 0)


def test_failures_after_the_return_do_not_rewrite_the_chapter_before(run: Run) -> None:
    fail(run, "ID:1", 4, "First chapter")
    first = letters.dead("orders", 10, "ID:1")
    fail(run, "ID:1", 1, "Second chapter", minute=5, letter_id=15)
    assert cause(first) == ("First chapter", 4)
    second = letters.dead("orders", 20, "ID:1")
    fail(run, "ID:1", 2, "Second chapter, last", minute=6, letter_id=15)
    assert (cause(first), cause(second)) == (("First chapter", 4), ("Second chapter, last", 2))
    assert (first.chapter, second.chapter) == (1, 2)


def test_equal_messages_without_id_are_all_explained(run: Run) -> None:
    both = [letters.dead("orders", number) for number in (10, 11)]
    assert both[0].message_key == both[1].message_key
    fail(run, both[0].message_key, 3, "Same")
    assert [cause(letter) for letter in both] == [("Same", 3)] * 2


def test_a_letter_that_died_forgets_its_known_attempts(run: Run) -> None:
    now = timezone.now()
    about = reports.message("ID:1", 3)
    died = reports.protocol(
        reports.run_of(run),
        about,
        outcome="kma_died",
        exception_type="kma died",
        occurred_at=now - timedelta(minutes=2),
    )
    accept_batch(run.server, Spool().batch(died), now - timedelta(minutes=2))
    assert of(run.activation.setting) == {"ID:1": 3}
    letter = letters.dead("orders", 10, "ID:1")
    DeadLetter.objects.filter(pk=letter.pk).update(seen_at=now)
    assert of(run.activation.setting) == {}
