"""Records of a spool are stored exactly once, and a bad one costs no other."""

import dataclasses
import gzip
import json
import uuid
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client

from agents.models import Run, RunPhase
from contract.fingerprint import fingerprint
from contract.messages import MAX_RECORDS, MAX_TRACEBACK, OLDEST_VERSION, VERSION, RecordBatch
from contract.records import Content, RunState
from contract.wire import dump
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol, RecoveredMessage, RefusedRecord, SpoolMark
from tests.web import reports
from tests.web.reports import AT, Spool

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
URL = "/api/v1/protocols/"


@pytest.fixture
def run() -> Run:
    return reports.run(reports.setting(), reports.server())


def post(
    client: Client, batch: RecordBatch | dict[str, Any] | bytes, packed: bool = False, **headers: str
) -> Any:
    raw = batch if isinstance(batch, bytes) else json.dumps(dump(batch)).encode()
    if packed:
        raw, headers = gzip.compress(raw), headers | {"Content-Encoding": "gzip"}
    token = {} if "Authorization" in headers else reports.bearer_of_server(reports.server())
    return client.post(URL, raw, content_type="application/json", headers=token | headers)


def test_a_batch_is_stored_and_answered_with_how_far(client: Client, run: Run) -> None:
    of = reports.run_of(run)
    batch = Spool().batch(reports.protocol(of), reports.recovered(of))
    answer = post(client, batch, packed=True)
    assert (answer.status_code, answer.json()) == (
        200,
        {"stored_up_to": 2, "new": 2, "known": 0, "refused": [], "version": VERSION}
        | {"known_numbers": [], "conflicts": [], "superseded": []},
    )
    row = FailureProtocol.objects.get()
    assert (row.id, row.number, row.spool) == (batch.records[0].id, 1, batch.spool)
    assert (row.setting, row.activation, row.run, row.server) == (
        run.activation.setting, run.activation, run, run.server,
    )  # fmt: skip
    assert (row.exception_type, row.occurred_at, row.message_key) == ("builtins.KeyError", AT, "ID:1")
    assert RecoveredMessage.objects.get().message_key == "ID:1"


def test_a_resend_and_an_overlap_store_nothing_twice(run: Run) -> None:
    spool, of = Spool(), reports.run_of(run)
    first = spool.batch(reports.protocol(of), reports.protocol(of))
    more = spool.batch(reports.protocol(of))
    overlap = dataclasses.replace(first, records=first.records[1:] + more.records)
    receipts = [accept_batch(run.server, batch, AT) for batch in (first, first, overlap, first)]
    assert [(receipt.new, receipt.known, receipt.stored_up_to) for receipt in receipts] == [
        (2, 0, 2), (0, 2, 2), (1, 1, 3), (0, 2, 3),
    ]  # fmt: skip
    assert FailureProtocol.objects.count() == 3
    run.refresh_from_db()
    assert (run.failed, run.stored_records) == (3, 3)


def test_what_retention_deleted_does_not_come_back_by_a_resend(run: Run) -> None:
    batch = Spool().batch(reports.protocol(reports.run_of(run)))
    accept_batch(run.server, batch, AT)
    FailureProtocol.objects.all().delete()
    assert accept_batch(run.server, batch, AT).known == 1
    assert not FailureProtocol.objects.exists()


def test_a_record_that_comes_from_a_copied_spool_is_known_by_its_uuid(run: Run) -> None:
    batch = Spool().batch(reports.protocol(reports.run_of(run)), reports.recovered(reports.run_of(run)))
    accept_batch(run.server, batch, AT)
    copied = dataclasses.replace(batch, spool=uuid.uuid4())
    assert accept_batch(run.server, copied, AT).known == 2
    assert FailureProtocol.objects.count() == RecoveredMessage.objects.count() == 1


def test_a_setting_or_activation_that_is_not_known_stays_under_its_name(run: Run) -> None:
    unknown = dataclasses.replace(reports.run_of(run), setting="gone", activation=uuid.uuid4(), epoch=9)
    assert accept_batch(run.server, Spool().batch(reports.protocol(unknown)), AT).new == 1
    row = FailureProtocol.objects.get()
    assert (row.setting, row.activation, row.run) == (None, None, None)
    assert (row.setting_key, row.activation_uuid, row.epoch) == ("gone", unknown.activation, 9)


@pytest.mark.parametrize("which", ["batch", "record", "spool"])
def test_a_report_of_another_server_is_refused_whole(client: Client, run: Run, which: str) -> None:
    of, spool = reports.run_of(run), Spool()
    if which == "spool":
        other = reports.server("srv-2")
        SpoolMark.objects.create(spool=spool.id, server=other)
    foreign = dataclasses.replace(of, server="srv-2") if which == "record" else of
    batch = spool.batch(reports.protocol(of), reports.protocol(foreign))
    if which == "batch":
        batch = dataclasses.replace(batch, server="srv-2")
    answer = post(client, batch)
    assert (answer.status_code, answer.json()["error"]) == (403, "foreign_report")
    assert not FailureProtocol.objects.exists()


def test_a_person_may_not_report_and_neither_may_nobody(client: Client, run: Run) -> None:
    batch = Spool().batch(reports.protocol(reports.run_of(run)))
    root = reports.person("root")
    assert post(client, batch, **reports.bearer_of(root)).status_code == 401
    assert post(client, batch, Authorization="Bearer kma_wrong").status_code == 401
    assert not FailureProtocol.objects.exists()


@pytest.mark.parametrize(
    ("kind", "content", "reason"),
    [
        ("poem", {}, "kind"),
        ("interruption", {"reason": "mood"}, "content.reason"),
        ("interruption", {"max_failures": 0}, "content.max_failures"),
        ("interruption", {"max_failures": 2**31}, "content.max_failures"),
        ("interruption", {"counts": {"same_type": "", "same": -1, "any": 0}}, "content.counts.same"),
        ("interruption", {"evidence": [str(uuid.uuid4())] * 101}, "content.evidence"),
        ("protocol", {}, "content.run: is missing"),
        ("protocol", {"occurred_at": "yesterday"}, "content.occurred_at"),
        ("protocol", {"outcome": "returned"}, "is not a failed outcome"),
        ("protocol", {"duration_seconds": float("nan")}, "content.duration_seconds"),
        ("protocol", {"process_id": 10**30}, "content.process_id"),
        ("protocol", {"successes_before": -1}, "content.successes_before"),
        ("replay_outcome", {"result": "lost"}, "content.result"),
    ],
)
def test_a_record_that_cannot_be_stored_is_refused_alone(
    client: Client, run: Run, kind: str, content: dict[str, Any], reason: str
) -> None:
    spool, of = Spool(), reports.run_of(run)
    good = [spool.record(reports.protocol(of)) for _ in range(2)]
    made: dict[str, Content] = {
        "replay_outcome": reports.replay_outcome(of, reports.message()),
        "interruption": reports.interruption(of),
    }
    whole = dump(made.get(kind, reports.protocol(of)))
    assert isinstance(whole, dict)
    bad = dataclasses.replace(
        good[1], id=uuid.uuid4(), number=3, kind=kind, content=(whole | content) if content else {}
    )
    batch = RecordBatch("srv-1", spool.id, (good[0], bad, good[1]))
    answer = post(client, batch).json()
    assert (answer["new"], answer["stored_up_to"], answer["refused"][0]["number"]) == (2, 3, 3)
    assert reason in answer["refused"][0]["reason"]
    assert FailureProtocol.objects.count() == 2
    kept = RefusedRecord.objects.get()
    assert (kept.number, kept.kind, kept.server) == (3, kind, run.server)
    assert post(client, batch).json()["known"] == 3


def test_properties_that_are_nested_without_end_are_refused_alone(client: Client, run: Run) -> None:
    deep: Any = "bottom"
    for _ in range(200):
        deep = [deep]
    spool, of = Spool(), reports.run_of(run)
    good, bad = spool.record(reports.protocol(of)), spool.record(reports.protocol(of))
    content = {**bad.content, "message": {**bad.content["message"], "properties": {"deep": deep}}}
    batch = RecordBatch("srv-1", spool.id, (good, dataclasses.replace(bad, content=content)))
    answer = post(client, batch).json()
    assert (answer.get("new"), answer.get("stored_up_to")) == (1, 2), answer
    assert "nested deeper" in answer["refused"][0]["reason"]


def test_a_refused_record_does_not_keep_its_run_open(run: Run) -> None:
    spool, of = Spool(), reports.run_of(run)
    bad = spool.record(reports.protocol(of))
    bad = dataclasses.replace(bad, content={**bad.content, "outcome": "returned"})
    batch = RecordBatch("srv-1", spool.id, (bad, spool.record(reports.closing(of, records=1))))
    accept_batch(run.server, batch, AT)
    run.refresh_from_db()
    assert (run.stored_records, run.closing_records, run.failed) == (1, 1, 0)


def test_a_run_counts_its_records_and_ends_with_the_closing_one(run: Run) -> None:
    spool, of = Spool(), reports.run_of(run)
    contents: list[Content] = [
        reports.protocol(of),
        reports.protocol(of, temporary=True, outcome="temporary"),
        reports.recovered(of),
        reports.replay_outcome(of, reports.message(replayed=True)),
    ]
    accept_batch(run.server, spool.batch(*contents), AT)
    run.refresh_from_db()
    assert (run.failed, run.temporary, run.recovered, run.stored_records, run.closed_at) == (1, 1, 1, 4, None)
    accept_batch(run.server, spool.batch(reports.closing(of, records=4, state=RunState.FAILED)), AT)
    run.refresh_from_db()
    assert (run.state, run.closing_records, run.stored_records, run.closed_at) == (RunPhase.FAILED, 4, 4, AT)


def test_hostile_values_are_stored_such_that_every_database_takes_them(client: Client, run: Run) -> None:
    of = reports.run_of(run)
    record = Spool().record(reports.protocol(of))
    hostile = json.dumps({
        "nul": "a\0b", "lone\udc80": "\ud800", "huge": 10**400, "real": "REAL", "deep": [[{"x\0": 1}]],
        "n": 2**63,
    }).replace('"REAL"', "[NaN, Infinity, 1e999, 1.5]")  # fmt: skip
    text = json.dumps(dump(RecordBatch("srv-1", uuid.uuid4(), (record,))))
    text = text.replace('"properties": {}', f'"properties": {hostile}').replace("'sum'", "\\u0000\\ud800 sum")
    text = text.replace('"orders.py:handle"', json.dumps("x" * 5000))
    answer = post(client, text.encode())
    assert (answer.status_code, answer.json()["new"]) == (200, 1)
    row = FailureProtocol.objects.get()
    assert row.properties["nul"] == "a\N{SYMBOL FOR NULL}b"
    assert row.properties["real"] == ["NaN", "Infinity", "1e999", 1.5]
    assert row.properties["n"] == str(2**63)
    assert "\0" not in row.exception_text and "sum" in row.exception_text
    assert len(row.place) == 300


@pytest.mark.parametrize("raw", [b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": 1}x'])
def test_what_is_not_json_is_400(client: Client, run: Run, raw: bytes) -> None:
    answer = post(client, raw)
    assert (answer.status_code, answer.json()["error"]) == (400, "not_json")


@pytest.mark.parametrize(
    "data", [[], "text", 7, None, {}, {"server": "srv-1"}, {"server": "srv-1", "spool": "x"}]
)
def test_json_that_is_no_batch_is_400(client: Client, run: Run, data: Any) -> None:
    answer = post(client, json.dumps(data).encode())
    assert (answer.status_code, answer.json()["error"]) == (400, "not_as_agreed")


@pytest.mark.parametrize("version", [OLDEST_VERSION, VERSION])
def test_this_version_and_the_one_before_are_taken(client: Client, run: Run, version: int) -> None:
    batch = dump(dataclasses.replace(Spool().batch(reports.protocol(reports.run_of(run))), version=version))
    assert isinstance(batch, dict)
    del batch["sent_at"], batch["records"][0]["content"]["memory_peak_bytes"]  # type: ignore[index,call-overload]
    assert post(client, json.dumps(batch).encode()).json()["new"] == 1
    row = FailureProtocol.objects.get()
    assert (row.clock_skew_seconds, row.memory_peak_bytes) == (None, 0)


@pytest.mark.parametrize("version", [-1, 0, OLDEST_VERSION - 1, VERSION + 1, 99])
def test_an_older_or_newer_version_is_refused(client: Client, run: Run, version: int) -> None:
    batch = dataclasses.replace(Spool().batch(reports.protocol(reports.run_of(run))), version=version)
    assert post(client, batch).json()["error"] == "unsupported_version"
    assert not FailureProtocol.objects.exists()


def test_too_many_records_are_413_with_the_limit(client: Client, run: Run) -> None:
    spool, of = Spool(), reports.run_of(run)
    batch = spool.batch(*[reports.protocol(of)] * (MAX_RECORDS + 1))
    answer = post(client, batch, packed=True)
    assert (answer.status_code, answer.json()["limit"]) == (413, MAX_RECORDS)
    assert not SpoolMark.objects.exists()


def test_a_gzip_bomb_is_413_with_the_limit(client: Client, run: Run) -> None:
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    token = reports.bearer_of_server(reports.server())
    headers = token | {"Content-Encoding": "gzip"}
    answer = client.post(URL, bomb, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["limit"]) == (413, 16 * 1024 * 1024)


def test_a_long_traceback_keeps_its_head_and_its_tail(client: Client, run: Run) -> None:
    long = "head " + "x" * (10 * 1024 * 1024) + " tail"
    batch = Spool().batch(reports.protocol(reports.run_of(run), traceback=long))
    assert post(client, batch, packed=True).json()["new"] == 1
    kept = FailureProtocol.objects.get().traceback
    assert kept.startswith("head ") and kept.endswith(" tail") and len(kept) <= MAX_TRACEBACK


@pytest.mark.parametrize("given", ["", "  ", "\t\n"])
def test_a_blank_fingerprint_is_made_here(run: Run, given: str) -> None:
    content = reports.protocol(reports.run_of(run), fingerprint=given)
    accept_batch(run.server, Spool().batch(content), AT)
    made = fingerprint(content.exception_type, content.exception_text, content.traceback)
    assert FailureProtocol.objects.get().fingerprint == made


def test_fingerprints_that_are_too_long_stay_apart(run: Run) -> None:
    of, head = reports.run_of(run), "x" * 64
    given = [" v1:spaced ", head, head + "1", head + "2", head + "1 "]
    accept_batch(run.server, Spool().batch(*[reports.protocol(of, fingerprint=text) for text in given]), AT)
    kept = list(FailureProtocol.objects.order_by("number").values_list("fingerprint", flat=True))
    assert kept[:2] == ["v1:spaced", head]
    assert kept[2] == kept[4] and len({*kept}) == 4
    assert all(len(text) <= 64 for text in kept) and kept[2].startswith("x" * 40)


def test_records_that_are_passed_over_are_noted(run: Run) -> None:
    spool, of = Spool(), reports.run_of(run)
    first = spool.batch(*[reports.protocol(of)] * 10)
    late, last = first.records[:9], first.records[9:]
    assert accept_batch(run.server, dataclasses.replace(first, records=last), AT).stored_up_to == 10
    assert accept_batch(run.server, dataclasses.replace(first, records=late), AT).known == 9, (
        "or nothing would end"
    )
    spool.number = 12
    accept_batch(run.server, spool.batch(reports.protocol(of)), AT)
    mark = SpoolMark.objects.get()
    assert (mark.never_came, mark.gaps) == (11, [[1, 9], [11, 12]])


def test_a_spool_in_order_has_no_gaps(run: Run) -> None:
    spool, of = Spool(), reports.run_of(run)
    bad = dataclasses.replace(spool.record(reports.protocol(of)), kind="poem")
    for batch in (RecordBatch("srv-1", spool.id, (bad,)), spool.batch(*[reports.protocol(of)] * 3)):
        for _ in range(2):
            accept_batch(run.server, batch, AT)
    mark = SpoolMark.objects.get()
    assert (mark.stored_up_to, mark.never_came, mark.gaps) == (4, 0, [])


def test_unknown_fields_are_ignored_and_counted(client: Client, run: Run) -> None:
    batch = json.loads(json.dumps(dump(Spool().batch(*[reports.protocol(reports.run_of(run))] * 2))))
    batch["mood"] = "good"
    for record in batch["records"]:
        record["colour"] = record["content"]["run"]["rack"] = record["content"]["message"]["smell"] = 1
    for _ in range(2):
        assert post(client, json.dumps(batch).encode()).status_code == 200
    mark = SpoolMark.objects.get()
    assert mark.unknown_fields == 7 + 3, "once with its content, and what is around it as often as it comes"
    assert mark.unknown_names == ["mood", "records.colour"]
    fresh = batch | {"records": [batch["records"][0] | {"number": 3, "id": str(uuid.uuid4())}]}
    assert post(client, json.dumps(fresh).encode()).json()["new"] == 1
    mark.refresh_from_db()
    assert mark.unknown_names == ["mood", "protocol.message.smell", "protocol.run.rack", "records.colour"]


def test_what_was_superseded_is_told(client: Client, run: Run) -> None:
    old = dataclasses.replace(reports.run_of(run), epoch=run.epoch - 1)
    batch = Spool().batch(
        reports.protocol(old), reports.interruption(old), reports.interruption(reports.run_of(run))
    )
    answer = post(client, batch).json()
    assert (answer["new"], answer["superseded"]) == (3, [2])


@pytest.mark.parametrize(
    "problem", [OperationalError("database is locked"), InterfaceError("connection is closed")]
)
@pytest.mark.parametrize("at", ["failures.intake.batch._locked_mark", "agents.servers.admission.digest_of"])
def test_a_database_that_is_away_is_503_with_a_time(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch, at: str, problem: Exception
) -> None:
    token = reports.bearer_of_server(run.server)

    def fail(*_: Any) -> None:
        raise problem

    monkeypatch.setattr(at, fail)
    answer = post(client, Spool().batch(reports.protocol(reports.run_of(run))), **token)
    assert (answer.status_code, answer.json()["error"]) == (503, "database_away")
    assert int(answer.headers["Retry-After"]) > 0
