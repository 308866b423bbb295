"""Words that rows and files keep: whatever modules and apps are called, they stay."""

import pytest
from django.conf import settings

from insights.archive.statements import KINDS
from insights.runs.folder import JOBS, TABLES
from retention.erasure.protocols import digest_of


def test_kinds_of_the_archive_are_its_folders() -> None:
    assert [*KINDS] == ["protocols", "recovered", "activations", "runs", "trips", "letters", "replays"]


def test_jobs_and_tables_of_results_have_the_names_that_files_and_rows_have() -> None:
    assert {name: [*tables] for name, tables in JOBS.items()} == {
        "failure_trends": ["failure_trends", "failure_days"],
        "activation_health": ["activation_health"],
        "breaker_backtest": ["breaker_backtest", "breaker_suggestions"],
        "replay_success": ["replay_success"],
        "odd_servers": ["odd_servers"],
        "poison_profile": ["poison_profile"],
        "retention_plan": ["retention_plan"],
    }
    assert TABLES.keys() == {table for tables in JOBS.values() for table in tables}


def test_what_stands_for_an_erased_key_is_the_same_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what was erased before and after would be two messages, and archive and database would differ."""
    monkeypatch.setattr(settings, "SECRET_KEY", "the secret of a site")
    assert digest_of("ID:of-a-message") == "81203ad8072d58115e17a9ed"
