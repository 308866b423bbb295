"""manage.py dlq beyond lists and export: what the REST interface can do, in the name of a person."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents.models import LaunchSetting
from console.audit.models import AuditEntry
from dlq.cli import jobs
from dlq.models import DeadLetter, JobState, ReplayJob
from dlq.reasons import STAYED
from tests.web import letters, reports

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


def told(*arguments: str, errors: StringIO | None = None) -> str:
    out = StringIO()
    call_command("dlq", *arguments, stdout=out, stderr=errors or StringIO())
    return out.getvalue()


READS = ("dlq.view_deadletter", "dlq.view_replayjob")


@pytest.fixture
def orders(db: None) -> LaunchSetting:
    rights = ("give_back", "redirect", "discard", "edit_letters")
    reports.person("operator", *READS, *(f"dlq.{right}" for right in rights))
    return reports.setting()


@pytest.fixture
def three(orders: LaunchSetting) -> list[DeadLetter]:
    return [letters.dead("orders", number, f"ID:{number}") for number in (10, 11, 12)]


def asked(name: str, *arguments: str, person: str = "operator", errors: StringIO | None = None) -> str:
    how = ("--setting", "orders", "--reason", "mended in 1.4", "--as", person, "--acknowledge", "all")
    return told(name, *how, *arguments, errors=errors)


def begun(name: str, *arguments: str) -> Any:
    return json.loads(asked(name, *arguments, "--json"))


# -- beginning -----------------------------------------------------------------------------------------------


def test_chosen_letters_are_given_back_in_the_name_of_a_person(
    three: list[DeadLetter], sent: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        job = begun("replay", str(three[0].pk), str(three[2].pk))
    assert (job["state"], job["scope"], job["total"], job["by"]) == ("planned", "selection", 2, "operator")
    assert sent == [job["id"]]
    entry = AuditEntry.objects.get()
    assert (entry.by_name, entry.reason) == ("operator", "mended in 1.4")


def test_a_preflight_tells_without_changing_anything(three: list[DeadLetter]) -> None:
    DeadLetter.objects.filter(pk=three[1].pk).update(state="gone")
    ids = [str(row.pk) for row in three]
    text = told("preflight", "--setting", "orders", "--as", "operator", *ids)
    assert "included   2 of 3" in text and "skipped    1: no longer in the queue" in text
    assert "warning    no_consumer: The subscription has no consumers" in text
    flight = json.loads(told("preflight", "--setting", "orders", "--as", "operator", "--all", "--json"))
    assert flight["going"] == 2 and not ReplayJob.objects.exists()


def test_what_is_not_acknowledged_is_not_begun(three: list[DeadLetter]) -> None:
    how = ("--setting", "orders", "--reason", "x", "--as", "operator", "--all")
    with pytest.raises(CommandError, match="add --acknowledge ladder_advised --acknowledge no_c") as refused:
        told("replay", *how, "--acknowledge", "ladder_advised")
    assert refused.value.returncode == 1 and not ReplayJob.objects.exists()
    told("replay", *how, "--acknowledge", "no_consumer")
    assert ReplayJob.objects.get().acknowledged == ["no_consumer"]


def test_every_action_and_scope(three: list[DeadLetter], orders: LaunchSetting) -> None:
    reports.setting("archive", destination=orders.destination)
    DeadLetter.objects.filter(pk=three[0].pk).update(exception_type="KeyError")
    job = begun("redirect", "--query", "exception=KeyError", "--group", "--target", "archive")
    assert (job["action"], job["scope"], job["target"], job["total"]) == ("redirect", "group", "archive", 1)
    job = begun("discard", str(three[1].pk))
    assert (job["action"], job["scope"], job["target_queue"]) == ("discard", "one", "DLQ.bin")
    DeadLetter.objects.filter(pk=three[2].pk).update(queue="DLQ.bin", orig_queue="DLQ.orders")
    job = begun("put-back", "--all")
    assert (job["action"], job["scope"], job["source_queue"], job["total"]) == (
        "put_back",
        "all",
        "DLQ.bin",
        1,
    )


def test_how_fast_and_when_is_said(three: list[DeadLetter]) -> None:
    how = ("--per-second", "2.5", "--window", "22:00-06:00", "--ladder", "--ladder-percent", "20")
    job = begun("replay", "--all", *how)
    assert (job["per_second"], job["window_from"], job["ladder"], job["ladder_percent"]) == (
        2.5,
        "22:00:00",
        True,
        20,
    )


def test_above_a_thousand_the_number_is_said(
    three: list[DeadLetter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "TYPED_ABOVE", 2)
    for wrong in ((), ("--confirm", "2")):
        with pytest.raises(CommandError, match=r"No job was created.* Add --confirm 3\."):
            asked("replay", "--all", *wrong)
    assert not ReplayJob.objects.exists()
    asked("replay", "--all", "--confirm", "3")
    assert ReplayJob.objects.get().total == 3


@pytest.mark.parametrize(
    ("arguments", "why"),
    [([], "exactly one of"), (["7", "--all"], "exactly one of"), (["x"], "valid integer"),
     (["7", "--reason", " "], "--reason is empty"),
     (["7", "--setting", "ordres"], "Setting .ordres. not found"),
     (["999999"], "do not belong to this setting.*999999"), (["--all", "--window", "22:00"],
     "must have the form 22:00-06:00"),
     (["--query", "span=9y"], "the filter is invalid")],
)  # fmt: skip
def test_a_question_that_means_nothing_is_refused(
    three: list[DeadLetter], arguments: list[str], why: str
) -> None:
    with pytest.raises(CommandError, match=why) as refused:
        asked("replay", *arguments)
    assert "\n" not in str(refused.value) and not ReplayJob.objects.exists()


def test_who_may_not_does_nothing_and_it_is_kept(three: list[DeadLetter]) -> None:
    reports.person("viewer", *READS)
    with pytest.raises(CommandError, match="Can replay dead letters"):
        asked("replay", "--all", person="viewer")
    with pytest.raises(CommandError, match="no active user 'nobody'"):
        asked("replay", "--all", person="nobody")
    assert not ReplayJob.objects.exists()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.result, entry.by_name, entry.setting_key) == (
        "dead_letters.replay", "refused", "viewer", "orders",
    )  # fmt: skip


# -- a job that is there -------------------------------------------------------------------------------------


def test_a_job_is_shown_paused_resumed_and_cancelled(three: list[DeadLetter]) -> None:
    job = begun("replay", "--all")["id"]
    assert job in told("jobs", "--as", "operator", "--setting", "orders")
    assert told("jobs", "--as", "operator", "--state", "done") == ""
    assert "paused: 0 of 3" in told("pause", job, "--as", "operator")
    with pytest.raises(CommandError, match="Not possible: the state of the job is “paused”."):
        told("pause", job, "--as", "operator")
    resumed = told("resume", job, "--acknowledge", "stopping", "--as", "operator", "--json")
    assert json.loads(resumed)["state"] == "planned" and ReplayJob.objects.get().goes_on_all_the_same
    told("cancel", job, "--as", "operator", "--reason", "wrong filter")
    assert "reason     mended in 1.4" in told("job", job, "--as", "operator")
    assert AuditEntry.objects.get(action="replay.cancel").reason == "wrong filter"
    with pytest.raises(CommandError, match="the state of the job is “cancelled”"):
        told("cancel", job, "--as", "operator")


def test_whoever_sees_no_such_job_is_kept(three: list[DeadLetter]) -> None:
    job = begun("replay", "--all")["id"]
    reports.person("outsider")
    for person, pk, why in (("outsider", job, "permission"), ("operator", str(uuid4()), "ot found")):
        with pytest.raises(CommandError, match=why):
            told("cancel", pk, "--as", person)
    kept = AuditEntry.objects.filter(result="refused").order_by("pk")
    assert list(kept.values_list("action", "by_name")) == [
        ("replay.cancel", "outsider"),
        ("replay.cancel", "operator"),
    ]
    with pytest.raises(CommandError, match="permission"):
        told("pause", job[:8], "--as", "outsider")
    assert ReplayJob.objects.get().state == "planned"


def test_its_letters_come_as_json_lines(three: list[DeadLetter], orders: LaunchSetting) -> None:
    job = letters.given_back(orders, *three)
    rows = [
        json.loads(line) for line in told("job", str(job.pk), "--letters", "--as", "operator").splitlines()
    ]
    assert [(row["letter"], row["state"]) for row in rows] == [(row.pk, "given_back") for row in three]


def test_another_person_approves(three: list[DeadLetter], settings: Any) -> None:
    settings.MA_SECOND_PERSON_ABOVE = 2
    reports.person("second", *READS, "dlq.approve")
    reports.person("third", *READS, "dlq.approve", "dlq.give_back")
    errors = StringIO()
    asked("replay", "--all", errors=errors)
    job = ReplayJob.objects.get()
    assert job.state == JobState.AWAITING and f"./ma manage dlq approve {job.pk}" in errors.getvalue()
    with pytest.raises(CommandError, match="an operator must decide") as waits:
        told("follow", str(job.pk), "--as", "operator")
    assert waits.value.returncode == 3
    with pytest.raises(CommandError, match="Can approve"):
        told("approve", str(job.pk), "--as", "operator")
    told("approve", str(job.pk), "--as", "second")
    job.refresh_from_db()
    assert (job.state, job.approved_by.get_username()) == (JobState.PLANNED, "second")  # type: ignore[union-attr]


# -- following -----------------------------------------------------------------------------------------------


@pytest.fixture
def asleep(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What happens to the job while the command sleeps, once for each time."""

    def prepare(*changes: dict[str, Any]) -> None:
        left = list(changes)

        def sleep(_seconds: float) -> None:
            ReplayJob.objects.update(**left.pop(0))

        monkeypatch.setattr("dlq.cli.progress.sleep", sleep)
        clock = iter(range(1000))
        monkeypatch.setattr("dlq.cli.progress.monotonic", lambda: float(next(clock)))

    return prepare


RUNNING = {"state": JobState.RUNNING, "planned_at": timezone.now()}


def test_waiting_tells_rate_remaining_time_and_outcomes(
    three: list[DeadLetter], asleep: Callable[..., None]
) -> None:
    asleep(
        {**RUNNING, "counts": {"planned": 2, "given_back": 1}},
        {**RUNNING, "counts": {"planned": 2, "given_back": 1}, "wait_reason": "rate"},
        {"state": JobState.DONE, "counts": {"given_back": 2, "not_found": 1, "handled": 1}},
    )
    errors = StringIO()
    job = json.loads(asked("replay", "--all", "--wait", "--json", errors=errors))
    assert (job["state"], job["letters"]["given_back"], job["letters"]["not_found"]) == ("done", 2, 1)
    assert errors.getvalue().splitlines() == [
        "planned: 0 of 3 replayed",
        "running: 1 of 3 replayed, 1 waiting, 1.0 per second, about 2 s left",
        "running: 1 of 3 replayed, 1 waiting, 0.5 per second, about 4 s left",
        "done: 2 of 3 replayed, 1 waiting, 1 processed, 1 not found",
    ]


def test_following_goes_on_until_the_outcomes_are_known(
    three: list[DeadLetter], asleep: Callable[..., None]
) -> None:
    job = begun("replay", "--all")["id"]
    asleep(
        {"state": JobState.DONE, "counts": {"given_back": 3, "handled": 1}},
        {"counts": {"given_back": 3, "handled": 2, "dead_again": 1}},
    )
    errors = StringIO()
    told("follow", job, "--outcomes", "--as", "operator", errors=errors)
    assert errors.getvalue().splitlines()[-1] == "done: 3 of 3 replayed, 2 processed, 1 dead-lettered again"


@pytest.mark.parametrize("state", ["failed", "stopped", "cancelled"])
def test_a_job_that_ends_badly_is_exit_1(
    three: list[DeadLetter], asleep: Callable[..., None], state: str
) -> None:
    asleep({"state": state, "problem": STAYED(n=1)})
    with pytest.raises(CommandError, match=f"{state}: Messages not moved: 1.") as failed:
        asked("replay", "--all", "--wait")
    assert failed.value.returncode == 1


def test_ending_the_command_ends_only_the_waiting(
    three: list[DeadLetter], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dlq.cli.progress.sleep", interrupted)
    with pytest.raises(CommandError, match="continues") as ended:
        asked("replay", "--all", "--wait")
    assert ended.value.returncode == 130
    assert ReplayJob.objects.get().state == "planned"


# -- the rest ------------------------------------------------------------------------------------------------


def test_groups_say_the_filter_that_finds_them(three: list[DeadLetter]) -> None:
    DeadLetter.objects.filter(pk__in=[row.pk for row in three[:2]]).update(
        exception_type="KeyError", state="dead"
    )
    text = told("groups", "--by", "exception", "--setting", "orders", "--as", "operator")
    assert "2  KeyError" in text and "--query 'exception_type=KeyError'" in text
    assert json.loads(told("groups", "--as", "operator", "--json"))["by"] == "fingerprint"


def test_a_letter_is_edited_by_a_question_in_a_file(three: list[DeadLetter], tmp_path: Path) -> None:
    file = tmp_path / "changes.json"
    file.write_text(json.dumps({"body": {"text": '{"sum": 2}'}, "reason": "x"}), "utf-8")
    one = (str(three[0].pk), "--changes", str(file), "--as", "operator")
    assert json.loads(told("edit", *one, "--dry-run"))["changes"] and not ReplayJob.objects.exists()
    with pytest.raises(CommandError, match="no_consumer"):
        told("edit", *one)
    with pytest.raises(CommandError, match='is not valid JSON.* Expected: {"body"'):
        told("edit", str(three[0].pk), "--changes", "/nowhere.json", "--as", "operator")


def test_any_address_of_the_interface_can_be_asked(three: list[DeadLetter], tmp_path: Path) -> None:
    shown = json.loads(told("ask", "GET", f"dead-letters/{three[0].pk}/", "--as", "operator"))
    assert shown["message_key"] == "ID:10"
    listed = json.loads(told("ask", "GET", "replays/", "--query", "setting=orders", "--as", "operator"))
    assert listed["results"] == []
    with pytest.raises(CommandError, match="Route not found"):
        told("ask", "GET", "nothing/", "--as", "operator")
    reports.person("outsider")
    with pytest.raises(CommandError, match="permission"):
        told("ask", "GET", "replays/", "--as", "outsider")


def test_what_goes_into_the_bin_is_not_said_to_be_given_back(
    three: list[DeadLetter], asleep: Callable[..., None]
) -> None:
    job = begun("discard", "--all")["id"]
    asleep({"state": JobState.DONE, "counts": {"given_back": 3}})
    errors = StringIO()
    told("follow", job, "--outcomes", "--as", "operator", errors=errors)

    assert errors.getvalue().splitlines()[-1] == "done: 3 of 3 moved to the trash"


def test_all_waiting_messages_are_meant_only_when_that_is_said(
    orders: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[Any] = []
    monkeypatch.setattr("dlq.cli.rest.call_api", lambda *args: asked_for.append(args[-1]))
    how = ("waiting", "orders", "--do", "hold", "--part", "delayed", "--reason", "look", "--as", "operator")
    told(*how, "--all")
    told(*how, "--message", "7")

    plain = {"action": "hold", "part": "delayed", "reason": "look"}
    assert asked_for == [plain | {"all": True}, plain | {"messages": [7]}]


def test_a_job_is_named_by_the_begin_of_its_id(three: list[DeadLetter]) -> None:
    job = begun("replay", str(three[0].pk))["id"]
    for short in (job[:8], job[:11].upper(), job):
        assert "paused" in told("pause", short, "--as", "operator")
        assert json.loads(told("job", short, "--json", "--as", "operator"))["id"] == job
        told("resume", short, "--as", "operator")
    other = "0" if job[0] != "0" else "1"
    with pytest.raises(CommandError, match=f"No replay {other * 8}; list them with ./ma manage dlq jobs"):
        told("follow", other * 8, "--as", "operator")
    with pytest.raises(CommandError, match="'x-1' is not a replay id"):
        told("follow", "x-1", "--as", "operator")
    ReplayJob.objects.create(
        id=f"{job[:-1]}{'0' if job[-1] != '0' else '1'}", setting_key="orders", scope="all"
    )
    with pytest.raises(CommandError, match="Several replays begin with"):
        told("job", job[:8], "--as", "operator")


def test_with_json_a_refusal_is_json_too(three: list[DeadLetter]) -> None:
    out = StringIO()
    how = ("--setting", "orders", "--reason", "x", "--as", "operator", "--all", "--json")
    with pytest.raises(CommandError):
        call_command("dlq", "replay", *how, stdout=out)
    assert json.loads(out.getvalue())["error"] == "unacknowledged"
    out = StringIO()
    with pytest.raises(CommandError, match="Setting 'nosuch' not found"):
        call_command("dlq", "waiting", "nosuch", "--json", "--as", "operator", stdout=out)
    assert json.loads(out.getvalue())["error"] == "not_found"
