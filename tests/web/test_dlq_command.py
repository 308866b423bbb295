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

from agents.models import LaunchSetting
from broker.port import BodyKind
from console.audit.models import AuditEntry
from console.exports import cell
from contract.typed import Typed
from dlq.cli.terminal import safe
from dlq.dead_letters.rules.parser import letter_row
from dlq.exports import EXPORTED, lines
from dlq.index import store
from dlq.models import DeadLetter
from failures.intake.batch import accept_batch
from tests.web import letters, reports
from tests.web.reports import AT, Spool


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("dlq", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


@pytest.fixture
def orders(db: None) -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def three(orders: LaunchSetting) -> list[DeadLetter]:
    reports.person("operator", "dlq.view_deadletter", "dlq.give_back")
    secret = {"iban": Typed("string", "DE-SECRET")}
    return [letters.dead("orders", number, f"ID:{number}", properties=secret) for number in (10, 11, 12)]


# -- list and show -------------------------------------------------------------------------------------------


def test_the_list_is_newest_first_and_goes_on_where_it_ended(three: list[DeadLetter]) -> None:
    other = letters.dead("invoices", 10, "ID:x")
    out, errors = StringIO(), StringIO()
    call_command("dlq", "list", "--limit", "2", "--json", stdout=out, stderr=errors)
    assert [row["id"] for row in json.loads(out.getvalue())] == [other.pk, three[2].pk]
    assert errors.getvalue() == f"Older messages: --before {three[2].pk}\n"
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


def listed(*arguments: str, person: str = "") -> list[int]:
    who = ("--as", person) if person else ()
    return [row["id"] for row in json.loads(told("list", "--json", *arguments, *who))]


@pytest.mark.django_db
def test_the_whole_filter_of_the_address_bar_narrows_lists_files_and_what_is_shown() -> None:
    reports.setting(masked_properties=["iban"])
    for name, sku in (("KeyError", "a"), ("ValueError", "a"), ("KeyError", "b")):
        number = 10 + DeadLetter.objects.count()
        row = letters.dead("orders", number, f"ID:{number}", Typed("string", f"customer {sku}"), properties={
            "sku": Typed("string", sku), "iban": Typed("string", "DE-SECRET"),
        })  # fmt: skip
        DeadLetter.objects.filter(pk=row.pk).update(exception_type=name, delivery_count=number)
    first, second, third = DeadLetter.objects.order_by("pk").values_list("pk", flat=True)
    assert listed("--filter", "?exception=keyerr&text=customer&prop=sku%3Da") == [first]
    assert listed("--exception", "keyerr", "--prop", "sku=a", "--prop", "sku=a") == [first]
    assert listed("--filter", "setting=orders&exception=keyerr", "--delivered-from", "11") == [third]
    assert listed("--text", "customer", "--limit", "2") == [third, second]
    assert listed("--text", "customer", "--limit", "2", "--before", str(second)) == [first]
    rows = told("export", "--filter", "prop=sku%3Da", "--format", "jsonl").splitlines()
    assert [json.loads(row)["id"] for row in rows] == [second, first]
    assert AuditEntry.objects.get(action="dead_letters.export").detail["query"] == "prop=sku%3Da"
    assert json.loads(told("show", "--exception", "keyerr", "--json"))["id"] == third
    # Nobody finds by a value what they may not see.
    reports.person("trusted", "dlq.view_deadletter", "dlq.can_see_masked")
    reports.person("stranger")
    assert listed("--prop", "iban=DE-SECRET", person="trusted") == [third, second, first]
    assert listed("--exception", "keyerr", person="stranger") == []
    with pytest.raises(CommandError, match="prop: .*iban"):
        told("list", "--prop", "iban=DE-SECRET")


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


@pytest.mark.django_db
def test_masked_fields_are_shown_to_whom_may_see_them() -> None:
    reports.setting(masked_properties=["iban"])
    row = letters.dead("orders", 10, "ID:1", Typed("string", '{"iban": "DE-SECRET", "sku": 7}'))
    reports.person("trusted", "dlq.view_deadletter", "dlq.can_see_masked")
    reports.person("stranger")
    for hidden in (told("show", str(row.pk)), told("show", str(row.pk), "--json")):
        assert "DE-SECRET" not in hidden and "sku" in hidden
    assert "DE-SECRET" in told("show", str(row.pk), "--as", "trusted")
    with pytest.raises(CommandError, match="No dead letter"):
        told("show", str(row.pk), "--as", "stranger")


def test_text_for_a_terminal_moves_nothing_on_it() -> None:
    assert safe("a\x1b\n\N{RIGHT-TO-LEFT OVERRIDE}\x9bб", 10) == "a\\x1b\\n\\u202e\\x9bб"
    assert safe("abcdef", 4) == "abcd … +2"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [(["list", "--setting", "ordres"], "no setting 'ordres'"),
     (["list", "--limit", "0"], "between 1 and 1000"),
     (["list", "--since", "yesterday"], "since: "), (["list", "--state", "undead"], "state: .*undead"),
     (["list", "--filter", "exeption=KeyError"], "Unknown filter parameter .exeption"),
     (["list", "--message-key", ""], "message_key: The value is missing"),
     (["export", "--filter", "text="], "text: The value is missing"),
     (["list", "--filter", "span=1d", "--span", "1h"], "span: in --filter and as --span: use only one of "
         "them"),
     (["export", "--text", "..."], "text: Enter at least one word"),
     (["show"], "Specify a message id or a filter"),
     (["show", "7", "--text", "x"], "Specify either a message id or a filter."),
     (["show", "--text", "nowhere"], "No results."),
     (["show", "4711"], "No dead letter 4711"), (["show", str(2**63)], "is not a dead-letter id"),
     (["export", "--setting", "ordres"], "no setting 'ordres'"),
     (["export", "-o", "/nowhere/letters.csv"], "is incomplete, 0 messages: No such file")],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(orders: LaunchSetting, arguments: list[str], why: str) -> None:
    with pytest.raises(CommandError, match=why) as refused:
        told(*arguments)
    assert refused.value.returncode == 1 and "\n" not in str(refused.value)


# -- export --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written"),
    [("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@x", "'@x"), ("\tx", "'\tx"), ("\rx", "'\rx"), ("a=1",
    "a=1"),
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
    store.store([row], AT)
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
