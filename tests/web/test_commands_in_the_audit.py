"""Who changes something at the command line is in the audit: one entry, with the account of the system where
no person is named."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents.models import Pool, ServerToken
from console.audit.log import account
from console.audit.models import AuditEntry
from console.models import ApiToken
from failures.models import Fingerprint
from insights.management.commands import pipeline
from insights.models import ArchiveBlock, PipelineRun
from insights.runs.reaper import tend
from tests.web import cases_of_failures
from tests.web.insight_rows import run_row
from tests.web.pipeline import use

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def ready(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(settings, tmp_path, "well")
    monkeypatch.setattr(pipeline, "start_waiting", lambda now: None)


def told(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


def entry() -> AuditEntry:
    """The only one; the account of the system is in each."""
    found = AuditEntry.objects.get()
    assert (found.by, found.by_name, found.detail.pop("account")) == (None, "", account())
    return found


# -- tokens


def test_a_token_of_a_server() -> None:
    for _ in range(2):
        told("create_server", "srv-7")
    issued = AuditEntry.objects.filter(action="token.issue", target="server:srv-7")
    assert [row.detail for row in issued] == [{"account": account()}] * 2


def test_a_token_of_a_person(outsider: User) -> None:
    told("create_api_token", "outsider", "--name", "night")
    found = entry()
    assert (found.action, found.target, found.detail) == ("token.issue", "user:outsider", {"name": "night"})


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_a_token_that_cannot_be_recorded_is_not_issued(
    outsider: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: Any, **about: Any) -> None:
        raise OSError("the disk is full")

    for command, name in (("create_server", "srv-7"), ("create_api_token", "outsider")):
        monkeypatch.setattr(f"{_module(command)}.record", dies)
        with pytest.raises(OSError, match="full"):
            told(command, name)
    assert not ServerToken.objects.exists() and not ApiToken.objects.exists()


def _module(command: str) -> str:
    app = "agents" if command == "create_server" else "console"
    return f"{app}.management.commands.{command}"


# -- what grows old


def test_retention_that_is_applied_by_hand() -> None:
    told("apply_retention", "--dry-run")
    assert not AuditEntry.objects.exists()
    told("apply_retention")
    assert (entry().action, entry().target) == ("retention.apply", "retention:")


def test_an_archive_that_is_to_be_read_again(settings: Any) -> None:
    now = timezone.now()
    ArchiveBlock.objects.create(
        kind="protocols", number=1, day=now.date(), first=now, last=now, planned_at=now, written_at=now
    )
    told("archive", "verify", "--kind", "protocols")
    found = entry()
    assert (found.action, found.counts) == ("archive.verify", {"blocks": 1})
    assert found.detail == {"kind": "protocols", "day": ""}


# -- the pipeline


def test_a_run_of_the_pipeline_from_its_begin_to_its_end() -> None:
    told("pipeline", "run", "odd_servers", "--no-wait", "--anew")
    run = PipelineRun.objects.get()
    found = entry()
    assert (found.action, found.target) == ("pipeline_run.start", f"pipeline_run:{run.pk}")
    assert (found.detail, run.trigger) == ({"jobs": ["odd_servers"], "anew": True}, "terminal")

    with pytest.raises(CommandError, match="in progress.*Wait until it ends"):
        told("pipeline", "run", "--no-wait")
    refused = AuditEntry.objects.latest("pk")
    assert (refused.result, refused.target) == ("refused", "pipeline_run:")

    told("pipeline", "cancel")
    ended = AuditEntry.objects.latest("pk")
    assert (ended.action, ended.target, ended.result) == ("pipeline_run.cancel", found.target, "done")
    assert ended.detail == {"account": account()}
    with pytest.raises(CommandError, match="No run is in progress"):
        told("pipeline", "cancel")
    assert AuditEntry.objects.count() == 3


def test_what_the_night_begins_has_no_entry(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("insights.runs.reaper.start_waiting", lambda now: None)
    settings.MA_PIPELINE_AT = timezone.now().time()
    run_row("failed", hours=30)
    tend(timezone.now())
    assert PipelineRun.objects.filter(trigger="nightly", state="waiting").count() == 1
    assert not AuditEntry.objects.exists()


# -- kinds of failures


@pytest.mark.parametrize(
    ("verb", "given", "make"),
    [
        ("known", ("--cause", "the currency", "--advice", "wait"), cases_of_failures.kind),
        ("fixed", ("--version", "2"), cases_of_failures.kind),
        ("not_fixed", (), cases_of_failures.fixed),
        ("merge", ("--other", cases_of_failures.OTHER), cases_of_failures.two),
        ("split", ("--other", cases_of_failures.OTHER), cases_of_failures.merged),
        ("part_off", ("--setting", "orders"), cases_of_failures.kind),
        ("join", (), cases_of_failures.part),
    ],
)
def test_a_kind_of_failures(
    pool: Pool, verb: str, given: tuple[str, ...], make: Callable[[Pool], Fingerprint]
) -> None:
    row = make(pool)
    told("error_groups", verb, row.pk, *given)
    found = entry()
    assert (found.action, found.target) == (f"error_group.{verb}", f"fingerprint:{row.pk}")
    history = row.changes.order_by("-pk")[0]
    assert (history.by, history.by_name) == (None, "")


def test_kinds_of_failures_are_listed_and_obey_no_terminal(pool: Pool) -> None:
    cases_of_failures.kind(pool, "v1:\x1b[31m")
    listed = told("error_groups", "list")
    assert "\x1b" not in listed and "KeyError" in listed and "\\x1b[31m" in listed
    with pytest.raises(CommandError, match="./ma manage error_groups list"):
        told("error_groups", "fixed", "v1:none")
