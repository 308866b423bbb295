"""manage.py dlq: the same letters and services as the REST interface, for scripts."""

import base64
import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import LaunchSetting
from broker.port import BodyKind
from contract.typed import Typed
from dlq import index
from dlq.export import EXPORTED, cell, lines
from dlq.models import AuditEntry, DeadLetter, ReplayJob
from dlq.reading import letter_row
from dlq.replay import steps
from dlq.terminal import safe
from failures.intake import accept_batch
from tests.web import letters, reports
from tests.web.reports import AT, Spool


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("dlq", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs that a worker was told of."""
    told_of: list[str] = []
    monkeypatch.setattr("dlq.replay.jobs.send", lambda task, job, **_: told_of.append(job))
    return told_of


@pytest.fixture
def orders(db: None) -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def three(orders: LaunchSetting) -> list[DeadLetter]:
    reports.person("operator", "dlq.view_deadletter", "dlq.give_back")
    secret = {"iban": Typed("string", "DE-SECRET")}
    return [letters.dead("orders", number, f"ID:{number}", properties=secret) for number in (10, 11, 12)]


# -- list and show --------------------------------------------------------------------------------------------------


def test_the_list_is_newest_first_and_goes_on_where_it_ended(three: list[DeadLetter]) -> None:
    other = letters.dead("invoices", 10, "ID:x")
    out, errors = StringIO(), StringIO()
    call_command("dlq", "list", "--limit", "2", "--json", stdout=out, stderr=errors)
    assert [row["id"] for row in json.loads(out.getvalue())] == [other.pk, three[2].pk]
    assert errors.getvalue() == f"There are older ones: --before {three[2].pk}\n"
    older = told("list", "--limit", "2", "--before", str(three[2].pk)).splitlines()
    assert [int(line.split()[0]) for line in older] == [three[1].pk, three[0].pk]
    assert "DLQ.orders" in older[0] and "ID:11" in older[0]


def test_filters_narrow_the_list(three: list[DeadLetter]) -> None:
    letters.dead("invoices", 10, "ID:x")
    DeadLetter.objects.filter(pk=three[0].pk).update(state="gone")
    span = ("--since", "2026-03-01T12:00:10Z", "--until", "2026-03-01T12:00:12Z", "--state", "every")
    found = [json.loads(told("list", "--json", "--setting", "orders", *more)) for more in ((), span)]
    assert [[row["id"] for row in rows] for rows in found] == [
        [three[2].pk, three[1].pk], [three[1].pk, three[0].pk],
    ]  # fmt: skip


def test_one_letter_is_shown_with_its_protocols(orders: LaunchSetting) -> None:
    run = reports.run(orders, reports.server())
    about = reports.protocol(reports.run_of(run), reports.message("ID:1"))
    accept_batch(run.server, Spool().batch(about), AT)
    secret = {"iban": Typed("string", "DE-SECRET")}
    row = letters.dead("orders", 10, "ID:1", Typed("string", "one\n\x1b[31mtwo"), properties=secret)
    text = told("show", str(row.pk))
    assert "builtins.KeyError: 'sum'  at orders.py:handle" in text
    assert "address t.orders, queue orders, message id 10" in text
    assert "one\n\\x1b[31mtwo\n" in text
    shown = json.loads(told("show", str(row.pk), "--json"))
    assert (shown["message_key"], shown["exception_type"]) == ("ID:1", "builtins.KeyError")
    assert [each["place"] for each in shown["protocols"]] == ["orders.py:handle"]
    assert "DE-SECRET" not in text + json.dumps(shown)


def test_text_for_a_terminal_moves_nothing_on_it() -> None:
    assert safe("a\x1b\n\N{RIGHT-TO-LEFT OVERRIDE}\x9bб", 10) == "a\\x1b\\n\\u202e\\x9bб"
    assert safe("abcdef", 4) == "abcd … +2"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [(["list", "--setting", "ordres"], "no setting 'ordres'"), (["list", "--limit", "0"], "from 1 to 1000"),
     (["list", "--since", "yesterday"], "since: "), (["list", "--state", "undead"], "state: .*undead"),
     (["show", "4711"], "no dead letter 4711"), (["show", str(2**63)], "is no number"),
     (["export", "--setting", "ordres"], "no setting 'ordres'"),
     (["export", "-o", "/nowhere/letters.csv"], "not whole, 0 letters: No such file")],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(orders: LaunchSetting, arguments: list[str], why: str) -> None:
    with pytest.raises(CommandError, match=why) as refused:
        told(*arguments)
    assert refused.value.returncode == 1 and "\n" not in str(refused.value)


# -- replay ---------------------------------------------------------------------------------------------------------


def replay(*arguments: str, person: str = "operator") -> str:
    return told("replay", "--setting", "orders", "--reason", "mended in 1.4", "--as", person, *arguments)


def test_chosen_letters_are_given_back_in_the_name_of_a_person(
    three: list[DeadLetter], sent: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        job = json.loads(replay(str(three[0].pk), str(three[2].pk), "--json"))
    assert (job["state"], job["scope"], job["total"], job["by"]) == ("planned", "selection", 2, "operator")
    assert sent == [job["id"]]
    entry = AuditEntry.objects.get()
    assert (entry.by_name, entry.reason) == ("operator", "mended in 1.4")


class Queue:
    """The dead-letter queue of orders, at a broker that does what it is told; `stuck` stay."""

    def __init__(self, *numbers: int, stuck: frozenset[int] = frozenset()) -> None:
        self.numbers, self.stuck = set(numbers), stuck

    def node_id(self) -> str:
        return letters.NODE

    def count(self, key: str) -> int:
        return len(self.numbers)

    def walk(self, key: str) -> set[int]:
        return set(self.numbers)

    def move_back(self, key: str, numbers: list[int]) -> int:
        self.numbers -= set(numbers) - self.stuck
        return len(numbers)


def work_while_asleep(monkeypatch: pytest.MonkeyPatch, queue: Any) -> None:
    """A worker does one step whenever the command sleeps."""

    def step(_seconds: float) -> None:
        job = ReplayJob.objects.get()
        steps.claim(job.pk, timezone.now())
        steps.run_step(job.pk, queue)

    monkeypatch.setattr("dlq.management.commands.dlq.time.sleep", step)


def test_waiting_tells_the_progress_until_the_job_is_done(
    three: list[DeadLetter], monkeypatch: pytest.MonkeyPatch
) -> None:
    work_while_asleep(monkeypatch, Queue(10, 12))
    out, errors = StringIO(), StringIO()
    how = ("--setting", "orders", "--all", "--reason", "mended", "--as", "operator", "--wait", "--json")
    call_command("dlq", "replay", *how, stdout=out, stderr=errors)
    job = json.loads(out.getvalue())
    assert (job["state"], job["letters"]["given_back"], job["letters"]["not_found"]) == ("done", 2, 1)
    told_lines = errors.getvalue().splitlines()
    assert told_lines[0] == "planned: 0 of 3 given back"
    assert told_lines[-1] == "done: 2 of 3 given back, 2 waiting, 1 not found"
    assert len(told_lines) == len(set(told_lines))


def test_a_job_that_fails_is_exit_1(three: list[DeadLetter], monkeypatch: pytest.MonkeyPatch) -> None:
    work_while_asleep(monkeypatch, Queue(10, 11, 12, stuck=frozenset({11})))
    with pytest.raises(CommandError, match="failed: 1 letters stayed where they were"):
        replay("--all", "--wait")


def test_ending_the_command_ends_only_the_waiting(three: list[DeadLetter], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dlq.management.commands.dlq.time.sleep", interrupted)
    with pytest.raises(CommandError, match="goes on") as ended:
        replay("--all", "--wait")
    assert ended.value.returncode == 130
    assert ReplayJob.objects.get().state == "planned"


def test_who_may_not_gives_nothing_back(three: list[DeadLetter]) -> None:
    reports.person("viewer", "dlq.view_deadletter")
    with pytest.raises(CommandError, match=r"viewer may not .* dlq\.give_back"):
        replay("--all", person="viewer")
    with pytest.raises(CommandError, match="no active user 'nobody'"):
        replay("--all", person="nobody")
    assert not ReplayJob.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [([], "one of the two"), (["7", "--all"], "one of the two"), (["x"], "letters: A valid integer"),
     (["0"], "letters: "), (["7", "--reason", " "], "--reason is empty"),
     (["7", "--setting", "ordres"], "no setting 'ordres'"), (["999999"], "not dead letters of this setting.*999999")],
)  # fmt: skip
def test_a_question_that_means_nothing_is_refused(three: list[DeadLetter], arguments: list[str], why: str) -> None:
    with pytest.raises(CommandError, match=why):
        replay(*arguments)
    assert not ReplayJob.objects.exists()


# -- export ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written"),
    [("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@x", "'@x"), ("\tx", "'\tx"), ("\rx", "'\rx"), ("a=1", "a=1"),
     ("", ""), (None, ""), (-1, "-1"), (True, "true"), (AT, "2026-03-01T12:00:00+00:00"), ("\0\ud800", "␀�")],
)  # fmt: skip
def test_no_cell_is_a_formula(value: Any, written: str) -> None:
    assert cell(value) == written


def test_csv_comes_back_as_it_was() -> None:
    rows = [{"id": 1, "body_text": 'a "b"\r,;\nc'}, {"id": 2, "body_text": "x\ry"}]
    text = "".join(lines(rows, "csv"))
    assert list(csv.reader(StringIO(text, newline=""))) == [
        ["id", "body_text"], ["1", 'a "b"\r,;\nc'], ["2", "x\ry"],
    ]  # fmt: skip


def test_an_export_is_not_ahead_of_its_reader() -> None:
    def rows() -> Any:
        yield {"id": 1}
        raise AssertionError("read too far")

    assert next(iter(lines(rows(), "jsonl"))) == '{"id": 1}\n'


def test_the_export_is_filtered_and_has_no_properties(three: list[DeadLetter], tmp_path: Path) -> None:
    letters.dead("invoices", 10, "ID:x")
    letters.dead("orders", 13, "=cmd()", Typed("string", "@evil"))
    file = tmp_path / "letters.csv"
    assert told("export", "--setting", "orders", "-o", str(file)) == ""
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert list(rows[0]) == [*EXPORTED, "body_text"]
    assert [row["message_key"] for row in rows] == ["'=cmd()", "ID:12", "ID:11", "ID:10"]
    assert rows[0]["body_text"] == "'@evil"
    assert "DE-SECRET" not in file.read_text("utf-8")


def test_bodies_come_whole_where_they_are_asked_for(orders: LaunchSetting) -> None:
    letters.dead("orders", 10, "ID:1", Typed("string", "long " * 2000))
    letters.dead("orders", 11, "ID:2", Typed("binary", b"\xff\0"), body_kind=BodyKind.DATA)
    heads = [json.loads(line)["body_text"] for line in told("export", "--format", "jsonl").splitlines()]
    assert [len(head) < 5000 for head in heads] == [True, True]
    whole = [json.loads(line) for line in told("export", "--format", "jsonl", "--bodies").splitlines()]
    assert [row["body"] for row in whole] == [{"base64": "/wA="}, {"text": "long " * 2000}]
    assert "encoded" not in whole[0] and "body_text" not in whole[0]
    first = next(csv.DictReader(StringIO(told("export", "--bodies"), newline="")))
    assert (first["body_form"], first["body"]) == ("base64", "/wA=")


def test_nothing_is_told_of_bytes_that_are_no_message(orders: LaunchSetting) -> None:
    row = letter_row(b"\0iban=DE-SECRET", letters.NODE, AT)
    row.queue = "DLQ.unknown"
    index.store([row], AT)
    texts = [
        told("export"), told("export", "--bodies"), told("export", "--bodies", "--format", "jsonl"),
        told("show", str(row.pk)), told("show", str(row.pk), "--json"), told("list"), told("list", "--json"),
    ]  # fmt: skip
    for form in ("DE-SECRET", b"DE-SECRET".hex(), base64.b64encode(b"\0iban=DE-SECRET").decode()):
        assert [form in text for text in texts] == [False] * 7
    assert all(row.problem.split()[0] in text for text in texts)


def test_the_export_asks_once_and_leaves_the_bytes_where_they_are(three: list[DeadLetter]) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert len(told("export").splitlines()) == 4
    assert len(queries) <= 4
    assert not any("encoded" in query["sql"] or '"properties"' in query["sql"] for query in queries)


def test_an_export_of_nothing_names_its_columns(orders: LaunchSetting) -> None:
    assert told("export", "--setting", "orders") == ",".join([*EXPORTED, "body_text"]) + "\r\n"
