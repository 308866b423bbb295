"""A server reports of its own runs. Reports of another's run are set aside, doubtful ones are marked."""

import dataclasses
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from agents.models import LaunchSetting, Run, Server
from alerts.evaluation import evaluate_all
from alerts.models import Alert
from contract.records import RecordRun
from dlq.models import ReplayJob
from failures.intake import rows
from failures.models import FailureProtocol, RefusedRecord, SpoolMark
from tests.web import letters, reports
from tests.web.reports import AT, Spool
from tests.web.test_failures_intake import post

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
PAGES = "failures.view_failureprotocol"


@pytest.fixture
def setting() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def run(setting: LaunchSetting) -> Run:
    return reports.run(setting, reports.server())


@pytest.fixture
def stranger() -> Server:
    """A server with a token, in no pool."""
    return reports.server("srv-5")


@pytest.fixture
def job(run: Run) -> ReplayJob:
    return letters.given_back(run.activation.setting, letters.dead("orders", 10, "ID:10"))


def as_server(of: RecordRun, server: Server, **fields: Any) -> RecordRun:
    return dataclasses.replace(of, server=server.name, **fields)


def send(client: Client, server: Server, *contents: Any, spool: Spool | None = None) -> dict[str, Any]:
    answer = post(client, (spool or Spool(server.name)).batch(*contents), **reports.bearer_of_server(server))
    assert answer.status_code == 200, answer.content
    told: dict[str, Any] = answer.json()
    return told


def returned(of: RecordRun, result: str = "handled") -> Any:
    about = reports.message("ID:10", replayed=True, dead_letter_queue="DLQ.orders", dead_letter_id=20)
    return reports.replay_outcome(of, about, result, occurred_at=AT + timedelta(minutes=10))


def outcome(job: ReplayJob) -> str:
    return str(job.items.get().outcome)


def test_a_server_settles_no_replay_of_a_run_that_is_anothers(
    client: Client, run: Run, stranger: Server, job: ReplayJob
) -> None:
    told = send(client, stranger, returned(as_server(reports.run_of(run), stranger)))

    assert outcome(job) == ""
    assert told["stored_up_to"] == 1, "the spool drains"
    send(client, run.server, returned(reports.run_of(run), "failed"))
    assert outcome(job) == "failed_again"


@pytest.mark.parametrize("known", ["another epoch", "an unknown activation"])
def test_a_server_that_never_ran_the_setting_settles_no_replay_of_it(
    client: Client, run: Run, stranger: Server, job: ReplayJob, known: str
) -> None:
    fields: dict[str, Any] = {"epoch": 99} if known == "another epoch" else {"activation": uuid.uuid4()}

    send(client, stranger, returned(as_server(reports.run_of(run), stranger, **fields)))

    assert outcome(job) == ""


def test_what_is_of_another_servers_run_is_set_aside_and_told(
    client: Client, run: Run, stranger: Server
) -> None:
    of, spool = as_server(reports.run_of(run), stranger), Spool(stranger.name)

    told = send(
        client, stranger, reports.protocol(of), reports.recovered(of), reports.closing(of, 2), spool=spool
    )

    assert not FailureProtocol.objects.exists()
    assert [each["reason"] for each in told["refused"]] == ["another_server"] * 3
    assert (told["new"], told["known"], told["stored_up_to"]) == (0, 0, 3)
    assert set(RefusedRecord.objects.values_list("code", "server__name")) == {("another_server", "srv-5")}
    run.refresh_from_db()
    assert (run.stored_records, run.closing_records) == (0, None)
    client.force_login(reports.person("root", PAGES, "agents.view_server"))
    assert "about an instance on another server" in client.get(f"/servers/{stranger.name}/").content.decode()
    mark = SpoolMark.objects.get(spool=spool.id)
    assert mark.set_aside_at is not None
    evaluate_all(mark.set_aside_at)
    assert [alert.subject for alert in Alert.objects.filter(kind="reports_set_aside")] == ["srv-5"]


def test_late_records_of_a_server_that_lost_its_run_are_stored(
    client: Client, run: Run, job: ReplayJob
) -> None:
    other = reports.server("srv-2")
    Run.objects.create(activation=run.activation, server=other, epoch=2)
    Run.objects.filter(pk=run.pk).update(wanted=False, state="lost", closed_at=AT)

    told = send(client, run.server, reports.protocol(reports.run_of(run)), returned(reports.run_of(run)))

    assert (told["new"], told["refused"]) == (2, [])
    assert FailureProtocol.objects.get().verified
    assert outcome(job) == "handled"


def test_a_server_of_the_activation_is_believed_to_know_its_own_epoch(client: Client, run: Run) -> None:
    other = reports.server("srv-2")
    taken_over = Run.objects.create(activation=run.activation, server=other, epoch=2)
    of = as_server(reports.run_of(taken_over), run.server)

    told = send(client, run.server, reports.protocol(of))

    assert told["refused"] == []
    assert not FailureProtocol.objects.get().verified


def test_records_of_an_activation_that_nobody_knows_are_stored_and_marked(
    client: Client, run: Run, job: ReplayJob
) -> None:
    """As after a restore: the server has run the setting, in an activation that is not here any more."""
    of = dataclasses.replace(reports.run_of(run), activation=uuid.uuid4())

    told = send(client, run.server, reports.protocol(of), returned(of))

    assert (told["new"], told["refused"]) == (2, [])
    protocol = FailureProtocol.objects.get()
    assert not protocol.verified
    assert outcome(job) == ""
    person = reports.person("reader", PAGES)
    assert (
        client.get(f"/api/v1/protocols/{protocol.pk}/", headers=reports.bearer_of(person)).json()["verified"]
        is False
    )
    client.force_login(person)
    assert (
        "Unverified: the site does not know this instance on srv-1. Possible causes: a "
        "restored database, a deleted activation or a forged report."
    ) in client.get(f"/protocols/{protocol.pk}/").content.decode()
    assert "unverified" in client.get("/protocols/").content.decode()


def test_a_setting_that_was_removed_and_made_again_gets_no_outcome_of_the_old_one(
    client: Client, run: Run
) -> None:
    of, server = reports.run_of(run), run.server
    run.activation.setting.delete()
    again = reports.run(reports.setting(), reports.server("srv-2"))
    job = letters.given_back(again.activation.setting, letters.dead("orders", 10, "ID:10"))

    told = send(client, server, reports.protocol(of), returned(of))

    assert [each["reason"] for each in told["refused"]] == ["never_ran"]
    assert not FailureProtocol.objects.get().verified
    assert outcome(job) == ""


def test_an_outcome_of_a_setting_that_was_removed_is_stored_and_accuses_nobody(
    client: Client, run: Run
) -> None:
    """Its runs went with it: nobody can tell any more who ran it."""
    of, server = reports.run_of(run), run.server
    run.activation.setting.delete()

    assert send(client, server, returned(of))["refused"] == []
    assert not RefusedRecord.objects.exists()


def test_a_spool_that_lost_records_gets_them_stored_though_the_epoch_is_anothers_by_now(
    client: Client, run: Run, job: ReplayJob
) -> None:
    """The copy knew one run; the second, on srv-2, was lost with it, and its epoch was given out again."""
    other = reports.server("srv-2")
    spool = Spool(other.name)
    SpoolMark.objects.create(spool=spool.id, server=other, lost_at=AT, lost_from=1, lost_to=2)
    of = as_server(reports.run_of(run), other)

    told = send(client, other, reports.protocol(of), returned(of), spool=spool)

    assert (told["new"], told["refused"]) == (2, [])
    assert not FailureProtocol.objects.get().verified
    assert outcome(job) == ""


def test_what_is_set_aside_is_bounded_and_counted_on(
    client: Client, run: Run, stranger: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_SET_ASIDE", 3)
    of, spool = as_server(reports.run_of(run), stranger), Spool(stranger.name)

    for _ in range(2):
        told = send(client, stranger, reports.protocol(of), reports.protocol(of), spool=spool)
        assert len(told["refused"]) == 2

    assert RefusedRecord.objects.count() == 3
    assert SpoolMark.objects.get(spool=spool.id).set_aside == 4


def test_an_unverified_recovery_turns_no_error_into_well(client: Client, run: Run) -> None:
    from failures.protocols.messages import unresolved

    of = reports.run_of(run)
    send(client, run.server, reports.protocol(of))
    send(client, run.server, reports.recovered(dataclasses.replace(of, epoch=99)))
    assert unresolved(run.activation) == 1
    send(client, run.server, reports.recovered(of))
    assert unresolved(run.activation) == 0
