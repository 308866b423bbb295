"""Reasons that rows keep as codes: what is stored, what is said, and what became of sentences of before."""

import ast
import re
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import translation

from agents import reasons
from agents.models import Acknowledgement, Activation, Pool, Run, Server, StateChange
from console.jobs.worker import WORKER_FAILED
from console.reasons import NO_REASON, Reason, ReasonKind, said
from contract import reasons as reported
from dlq import reasons as of_dlq
from dlq.models import LetterQueue
from failures import reasons as of_failures
from failures.models import PipelineRun, RetentionRun
from tests.web.launching import delayed

ROOT = Path(__file__).resolve().parents[2]
# Chosen by a table, and given with all that any kind of it says.
BY_TABLE = {
    "NO_SERVER", "NONE_ALIVE", "NONE_OFFERS", "ALL_CORDONED", "NONE_OBEYS", "RUN_BEFORE_STOPS",
    "SAME_TYPE_IN_A_ROW", "FAILURES_IN_A_ROW", "TRIAL_FAILED",
    "SUBSCRIPTION_HOLDS", "DEAD_LETTERS_HELD", "HELD_BACK",
}  # fmt: skip
SENTENCES, CODES = ("agents", "0033_celerys_own_beat"), ("agents", "0038_reports_as_codes")
REASONS = ("agents", "0035_reason_columns")
step = import_module("agents.migrations.0034_reasons_as_codes")
problems = import_module("dlq.migrations.0022_problems_as_codes")
of_runs = import_module("failures.migrations.0022_problems_as_codes")
reports = import_module("agents.migrations.0037_what_kmas_report_as_codes")


# -- values


def test_it_is_said_in_the_language_of_the_reader() -> None:
    why = reasons.MEMBER_REFUSED(key="orders", why=reasons.GROUP_RUNS(step=1, count=3))
    assert str(why) == (
        "orders could not be started: The activation of the group before still runs, with member 1 of 3."
    )
    with translation.override("ru"):
        assert str(why).endswith("Предыдущий запуск группы ещё идёт: участник 1 из 3.")


def test_a_value_of_choices_is_said_by_its_label() -> None:
    with translation.override("ru"):
        assert str(reasons.MEMBER_ENDED(key="one", state="interrupted")) == (
            "one: завершение с ошибкой (прервано)"
        )
    assert str(reasons.MEMBER_ENDED(key="one", state="of tomorrow")) == "one did not finish well: of tomorrow"


def test_what_a_later_version_stored_is_shown_with_all_that_it_holds() -> None:
    assert str(Reason("of.tomorrow", {"n": 3})) == "of.tomorrow (n: 3)"
    assert str(Reason("of.tomorrow")) == "of.tomorrow"
    assert str(Reason("run.epoch")) == "epoch …", "a parameter that is missing spoils no page"


def test_words_of_people_are_no_format() -> None:
    assert str(said("100 % (n)s %(pool)s")) == "100 % (n)s %(pool)s"
    assert said("") == NO_REASON and not NO_REASON and str(NO_REASON) == ""


def test_a_code_is_declared_once() -> None:
    with pytest.raises(ValueError, match="two kinds"):
        ReasonKind("run.epoch", "again")


def is_kind(value: Any) -> bool:
    return isinstance(value, ReasonKind | reported.Kind)


def names_in(text: str) -> set[str]:
    return set(re.findall(r"%\((\w+)\)s", text))


@pytest.mark.parametrize("kind", list(ReasonKind.known.values()), ids=lambda kind: kind.code)
def test_every_kind_says_the_same_parameters_in_both_languages(kind: ReasonKind) -> None:
    english = str(kind.text)
    with translation.override("ru"):
        russian = str(kind.text)
    assert names_in(russian) == names_in(english)
    assert "…" not in str(kind(**dict.fromkeys(names_in(english), "x")))


@pytest.mark.parametrize(
    ("where", "kinds", "by_table"),
    [
        ("agents", {name: str(kind.text) for name, kind in vars(reasons).items() if is_kind(kind)}, BY_TABLE),
        ("kma", {name: kind.sentence for name, kind in vars(reported).items() if is_kind(kind)}, set()),
        (
            "dlq",
            {name: str(kind.text) for name, kind in vars(of_dlq).items() if is_kind(kind)},
            {"TRIPPED", "DISABLED", "FAILING", "BREAKER_COUNTS", "UNKNOWN"},
        ),
        (
            "failures",
            {name: str(kind.text) for name, kind in vars(of_failures).items() if is_kind(kind)},
            set(),
        ),
    ],
    ids=["agents", "kma", "dlq", "failures"],
)
def test_every_reason_that_is_given_has_the_parameters_of_its_kind(
    where: str, kinds: dict[str, str], by_table: set[str]
) -> None:
    given = Counter[str]()
    for path in ROOT.glob(f"{where}/**/*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in kinds and name.isupper():
                given[name] += 1
                wanted = names_in(kinds[name])
                assert {each.arg for each in call.keywords} == wanted, (path, call.lineno)
    assert given.keys() | by_table == kinds.keys(), "a kind that nobody gives says nothing"


@pytest.mark.parametrize("stored", [None, "", [], 3, {}, {"code": 7}, {"params": {}}], ids=str)
def test_what_is_no_reason_counts_as_none(stored: Any) -> None:
    assert Reason.from_json(stored) == NO_REASON


# -- rows


@pytest.mark.both_databases
@pytest.mark.django_db
def test_a_row_keeps_a_reason_in_a_reason(pool: Pool) -> None:
    setting = delayed(pool)
    why = reasons.OF_MEMBER(
        key="orders", why=reasons.SAME_TYPE_IN_A_ROW(type="E\0\ud800", servers=["a", "b"])
    )
    StateChange.objects.create(setting=setting, what="setting", new="disabled", reason=why)
    kept = StateChange.objects.get(reason=why)
    shown = "E\N{SYMBOL FOR NULL}\N{REPLACEMENT CHARACTER}"
    assert str(kept.reason) == f"orders: by the breaker: failures of one type in a row ({shown}) on a, b"
    assert StateChange.objects.filter(reason__code="group.of_member").count() == 1
    assert list(StateChange.objects.values_list("reason__code", flat=True)) == ["group.of_member"]
    assert StateChange.objects.create(what="setting").reason == NO_REASON
    with pytest.raises(TypeError, match="takes a Reason"):
        StateChange.objects.filter(reason=why).update(reason="a text")


# -- sentences of before


@pytest.mark.parametrize(
    ("text", "code", "again"),
    [
        ("", "", ""),
        ("drained", "activation.ended", "drained"),
        ("schedule", "activation.started_by", "schedule"),
        ("epoch 12", "run.epoch", "epoch 12"),
        ("The pool “p” has no server.", "activation.no_server", "The pool “p” has no server."),
        (
            "breaker: failures of one type in a row (a.B) on srv-1, srv-2",
            "breaker.same_type",
            "by the breaker: failures of one type in a row (a.B) on srv-1, srv-2",
        ),
        (
            "orders: breaker: failures in a row, last a.B on srv-1",
            "group.of_member",
            "orders: by the breaker: failures in a row, last a.B, on srv-1",
        ),
        ("one did not finish well: failed", "group.member_ended", "one did not finish well: failed"),
        (
            "one could not be started: The setting is disabled.",
            "group.member_refused",
            "one could not be started: The setting is disabled.",
        ),
        ("wrong day (from the command line)", "command_line.because", "wrong day (from the command line)"),
        ("the disk is full", "legacy.text", "the disk is full"),
    ],
)
def test_a_sentence_becomes_the_code_that_says_it(text: str, code: str, again: str) -> None:
    why = Reason.from_json(step.coded(text))
    assert (why.code, str(why)) == (code, again)


def test_every_code_of_the_step_is_one_that_is_known() -> None:
    steps = (*step.SENTENCES, *reports.SENTENCES, *problems.SENTENCES)
    assert {code for _, code in steps} <= set(ReasonKind.known)


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_rows_of_before_keep_what_they_said(
    pool: Pool, migrate: Callable[[str, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = delayed(pool)
    migrate(*SENTENCES)
    sentences = ("epoch 3", "night {shift} 100 %", "", "epoch 3", "epoch 4")
    with connection.cursor() as cursor:
        for reason in sentences:
            cursor.execute(
                "INSERT INTO agents_statechange (setting_id, what, old, new, reason, at) "
                "VALUES (%s, 'run', '', '', %s, '2026-03-01 00:00:00+00:00')",
                [setting.pk, reason],
            )
        cursor.execute("UPDATE agents_launchsetting SET disabled_reason = 'from the command line'")
    monkeypatch.setattr(step, "CHUNK", 4)
    migrate(*CODES)
    assert list(setting.changes.order_by("pk").values_list("reason", flat=True))[-len(sentences) :] == [
        reasons.EPOCH(n=3),
        Reason("legacy.text", {"text": "night {shift} 100 %"}),
        NO_REASON,
        reasons.EPOCH(n=3),
        reasons.EPOCH(n=4),
    ]
    setting.refresh_from_db()
    assert setting.disabled_reason == reasons.BY_COMMAND()


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_what_servers_reported_before_is_kept_as_it_was(
    pool: Pool, migrate: Callable[[str, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    setting, server = delayed(pool), Server.objects.create(name="srv-9")
    activation = Activation.objects.create(setting=setting)
    told = (
        ("No answer came within 1.5 s.", "agent on srv-1"),
        ("It could not be committed: unknown\naddress", "token of ada"),
        ("in words of its own", ""),
        ("", ""),
    )
    of = {"setting": setting, "server": server, "activation_uuid": activation.pk, "epoch": 1}
    for number in range(len(told)):
        Acknowledgement.objects.create(acknowledgement=f"a-{number}", **of)
    for epoch in (1, 2):
        Run.objects.create(activation=activation, server=server, epoch=epoch)
    migrate(*REASONS)
    with connection.cursor() as cursor:
        for number, (reason, through) in enumerate(told):
            cursor.execute(
                "UPDATE agents_acknowledgement SET reason = %s, answered_from = %s "
                "WHERE acknowledgement = %s",
                [reason, through, f"a-{number}"],
            )
        cursor.execute("UPDATE agents_run SET problem = 'broker: away' WHERE epoch = 2")
        cursor.execute("UPDATE agents_server SET problems = %s", ['["disk is slow"]'])
    monkeypatch.setattr(reports, "CHUNK", 3)
    migrate(*CODES)
    rows = Acknowledgement.objects.order_by("pk").values_list("reason", "answered_from")
    assert list(rows) == [
        (Reason("delivery.no_answer", {"seconds": "1.5"}), reasons.AGENT_ON(server="srv-1")),
        (Reason("delivery.not_committed", {"detail": "unknown\naddress"}), said("token of ada")),
        (Reason("legacy.text", {"text": "in words of its own"}), NO_REASON),
        (NO_REASON, NO_REASON),
    ]
    server.refresh_from_db()
    assert server.problems == [Reason("legacy.text", {"text": "disk is slow"})]
    assert [run.problems for run in Run.objects.order_by("epoch")] == [
        [],
        [Reason("legacy.text", {"text": "broker: away"})],
    ]


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_problems_of_queues_and_jobs_keep_what_they_said(
    migrate: Callable[[str, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "12 messages of DLQ.a are in delivery to another consumer": of_dlq.HELD(n=12, queue="DLQ.a"),
        "the broker has no such queue": of_dlq.NO_QUEUE(),
        "the setting tripped": of_dlq.TRIPPED(),
        "KeyError; the log of the worker has the rest": WORKER_FAILED(type="KeyError"),
        "AMQ119017: no queue": Reason("legacy.text", {"text": "AMQ119017: no queue"}),
        "": NO_REASON,
    }
    for number in range(len(told)):
        LetterQueue.objects.create(queue=f"DLQ.{number}")
    migrate("dlq", "0021_walks_of_replays")
    with connection.cursor() as cursor:
        for number, text in enumerate(told):
            cursor.execute(
                "UPDATE dlq_letterqueue SET problem = %s WHERE queue = %s", [text, f"DLQ.{number}"]
            )
    monkeypatch.setattr(problems, "CHUNK", 4)
    migrate("dlq", "0023_problem_columns")
    assert list(LetterQueue.objects.order_by("queue").values_list("problem", flat=True)) == [*told.values()]


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_problems_of_runs_keep_what_they_said(
    migrate: Callable[[str, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "The Spark application ended with -9: ValueError: x": of_failures.APPLICATION_ENDED(
            status=-9, words="ValueError: x"
        ),
        "It took longer than 6 hours (MA_PIPELINE_HOURS) and was ended.": of_failures.TOO_LONG(hours=6),
        "It needed more than 512 MB of memory (MA_PIPELINE_MEMORY_MB) and was ended.": of_failures.TOO_LARGE(
            mb=512
        ),
        "odd_servers: KeyError: 'x'\narchive: OSError: full": of_failures.STAGES_FAILED(
            errors="odd_servers: KeyError: 'x'\narchive: OSError: full"
        ),
        "BadReport: no report": of_failures.PIPELINE_BROKE(type="BadReport", text="no report"),
        "It was told to stop by a signal.": of_failures.SIGNALLED(),
        "No process took it.": of_failures.NOT_TAKEN(),
        "Its process 7 on srv-1 is gone.": of_failures.PROCESS_GONE(pid=7, host="srv-1"),
        "Its process 7 on srv-1 has given no sign of life since yesterday.": of_failures.PROCESS_SILENT(
            pid=7, host="srv-1", since="yesterday"
        ),
        "in other words": Reason("legacy.text", {"text": "in other words"}),
        "": NO_REASON,
    }
    for number in range(len(told)):
        PipelineRun.objects.create(state="failed", open=None, trigger="nightly", pid=number)
    RetentionRun.objects.create(state="failed")
    migrate("failures", "0021_saved_filters_to_console")
    with connection.cursor() as cursor:
        for number, text in enumerate(told):
            cursor.execute("UPDATE failures_pipelinerun SET problem = %s WHERE pid = %s", [text, number])
        cursor.execute("UPDATE failures_retentionrun SET problem = 'orders: KeyError: x: y'")
    monkeypatch.setattr(of_runs, "CHUNK", 4)
    migrate("failures", "0023_problem_columns")
    assert list(PipelineRun.objects.order_by("pid").values_list("problem", flat=True)) == [*told.values()]
    kept = RetentionRun.objects.values_list("problem", flat=True).get()
    assert kept == of_failures.PART_FAILED(part="orders", type="KeyError", text="x: y")
    assert str(kept) == "orders: KeyError: x: y"
