"""What KMAs report of returned letters reaches their replay, also when two writers store facts at the same
time."""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client

from agents.models import Run
from contract.wire import dump
from dlq.models import LetterReport, ReplayJob
from dlq.outcomes import settlement
from failures.intake.batch import accept_batch
from failures.models import SpoolMark
from tests.web import letters, reports
from tests.web.reports import AT, Spool
from tests.web.test_failures_intake_at_once import at_once

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture
def run() -> Run:
    return reports.run(reports.setting(), reports.server())


def report(run: Run, key: str, letter_id: int | None, result: str, minute: int = 10) -> None:
    about = reports.message(key, replayed=True, dead_letter_queue="DLQ.orders", dead_letter_id=letter_id)
    at = AT + timedelta(minutes=minute)
    content = reports.replay_outcome(reports.run_of(run), about, result, occurred_at=at)
    accept_batch(run.server, Spool().batch(content), at)


def outcomes(job: ReplayJob) -> list[str]:
    return list(job.items.order_by("letter_id").values_list("outcome", flat=True))


def counted(job: ReplayJob) -> tuple[int, ...]:
    """As every page shows it: kept with the job, counted by nobody."""
    job.refresh_from_db()
    return tuple(job.counts.get(name, 0) for name in ("handled", "failed_again", "dead_again"))


def test_a_report_is_the_outcome_of_its_letter(run: Run) -> None:
    rows = [letters.dead("orders", number, f"ID:{number}") for number in (10, 11, 12)]
    job = letters.given_back(run.activation.setting, *rows)
    report(run, "ID:10", 20, "handled")
    report(run, "ID:11", 21, "failed")
    assert outcomes(job) == ["handled", "failed_again", ""]
    assert counted(job) == (1, 1, 0)
    report(run, "ID:11", 21, "handled", minute=11)
    assert outcomes(job) == ["handled", "handled", ""]
    assert counted(job) == (2, 0, 0)
    assert LetterReport.objects.count() == 3


@pytest.mark.parametrize("version", [3, 4])
def test_a_report_of_the_version_before_is_the_outcome_of_its_letter(
    client: Client, run: Run, version: int
) -> None:
    """Also from the spool of a KMA that was upgraded meanwhile."""
    job = letters.given_back(run.activation.setting, letters.dead("orders", 10, "ID:10"))
    about = reports.message("ID:10", replayed=True, dead_letter_queue="DLQ.orders", dead_letter_id=20)
    content = reports.replay_outcome(reports.run_of(run), about, "handled", occurred_at=AT)
    batch: Any = dump(Spool().batch(content, reports.protocol(reports.run_of(run))))
    old, other = batch["records"]
    message = old["content"]["message"]
    for new_name, name in (
        ("replayed", "given_back"),
        ("dead_letter_queue", "letter_queue"),
        ("dead_letter_id", "letter_id"),
    ):
        message[name] = message.pop(new_name)
    old["kind"] = "letter_outcome"
    answer = client.post(
        "/api/v1/protocols/",
        json.dumps(batch | {"version": version}),
        content_type="application/json",
        headers=reports.bearer_of_server(run.server),
    )
    assert answer.json()["new"] == 2 and answer.json()["refused"] == []
    assert outcomes(job) == ["handled"]
    assert SpoolMark.objects.get().unknown_fields == 0 and other["kind"] == "protocol"


def test_a_report_of_another_setting_is_not_of_this_letter(run: Run) -> None:
    job = letters.given_back(run.activation.setting, letters.dead("orders", 10, "ID:1"))
    other = reports.run(reports.setting("invoices"), run.server)
    report(other, "ID:1", 20, "handled")
    assert outcomes(job) == [""]


def test_equal_messages_count_as_many_as_there_are(run: Run) -> None:
    rows = [letters.dead("orders", number) for number in (10, 11, 12)]
    job = letters.given_back(run.activation.setting, *rows)
    report(run, rows[0].message_key, 20, "handled")
    report(run, rows[0].message_key, 22, "handled")
    assert outcomes(job) == ["handled", "handled", ""]
    report(run, rows[0].message_key, 22, "handled", minute=12)
    assert outcomes(job) == ["handled", "handled", ""]


def test_a_second_death_ends_the_replay_and_opens_a_chapter(run: Run) -> None:
    rows = [letters.dead("orders", number) for number in (10, 11)]
    job = letters.given_back(run.activation.setting, *rows)
    again = letters.dead("orders", 100)
    assert outcomes(job) == ["", ""], "an equal message may have died for the first time"
    report(run, rows[0].message_key, 21, "failed")
    again.refresh_from_db()
    assert outcomes(job) == ["dead_again", ""] and again.chapter == 2
    assert job.items.get(outcome="dead_again").died_as == again
    assert counted(job) == (0, 0, 1)


def test_the_cases_of_many_items_are_asked_for_in_parts_and_all_found(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [letters.dead("orders", number, f"ID:{number}") for number in range(10, 15)]
    job = letters.given_back(run.activation.setting, *rows)
    monkeypatch.setattr(settlement, "ASKED_AT_ONCE", 2)
    found = settlement.cases_of(list(job.items.values_list("pk", flat=True)))
    assert found == {("orders", row.message_key) for row in rows}


@pytest.mark.django_db(transaction=True)
def test_facts_that_are_stored_at_the_same_time_all_count() -> None:
    run = reports.run(reports.setting(), reports.server())
    rows = [letters.dead("orders", number, f"ID:{number}") for number in range(10, 18)]
    job = letters.given_back(run.activation.setting, *rows)
    tasks: list[Callable[[], object]] = []
    for row in rows:
        tasks.append(partial(report, run, row.message_key, row.orig_message_id + 100, "failed"))
        tasks.append(partial(letters.dead, "orders", row.orig_message_id + 200, row.message_key))
    at_once(*tasks)
    assert outcomes(job) == ["dead_again"] * 8
