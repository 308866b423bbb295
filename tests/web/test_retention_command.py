"""manage.py apply_retention: what it says before and after."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents.models import LaunchSetting
from failures.management.commands import apply_retention
from failures.models import FailureProtocol, RetentionRun
from failures.retention import foreseeing, picking, turns
from failures.retention.running import take_turn
from tests.web.retention_rows import activation, protocols, recoveries

pytestmark = pytest.mark.django_db


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("apply_retention", *arguments, stdout=out)
    return out.getvalue()


def rows(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said("--json", *arguments).splitlines()]


def test_a_dry_run_says_what_would_go_and_why_and_deletes_nothing(setting: LaunchSetting) -> None:
    protocols(activation(setting, 5, well=True), 7, 5)
    protocols(None, 2, 3000)

    assert said("--dry-run").splitlines()[0] == (
        "orders: 7 protocols would go; the last finished activation finished well: all up to it"
    )
    assert "(no setting): 2 protocols would go; nothing finished for long: what is older than " in said("--dry-run")
    assert FailureProtocol.objects.count() == 9
    assert not RetentionRun.objects.exists()


def test_a_dry_run_counts_to_a_bound_and_says_so(
    setting: LaunchSetting, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MA_RETENTION_SILENT_DAYS = 0
    monkeypatch.setattr(picking, "AT_ONCE", 2)
    monkeypatch.setattr(foreseeing, "MOST_PARTS", 3)
    protocols(activation(setting, 5, well=True), 7, 5)

    assert rows("--dry-run") == [
        {
            "what": "protocols", "setting": "orders", "rule": "well", "older_than": None, "would_go": 6, "kept": {},
            "at_least": True,
        }
    ]  # fmt: skip
    assert said("--dry-run").startswith("orders: at least 6 protocols would go")


def test_it_applies_the_rule_and_says_what_it_did(setting: LaunchSetting) -> None:
    recoveries(protocols(activation(setting, 5, well=True), 7, 5))

    assert [(row["what"], row["setting"], row["deleted"]) for row in rows()] == [
        ("protocols", "orders", 7),
        ("recovered", "orders", 7),
    ]
    assert said() == ""


def test_a_fault_is_an_exit_status(setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: Any) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(turns, "apply_to_setting", faulty)

    with pytest.raises(CommandError, match="orders: RuntimeError: out of order"):
        said()


def test_it_waits_for_another_one_no_longer_than_for_a_dead_one(
    setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert take_turn(timezone.now(), every=timedelta(0)) is not None
    monkeypatch.setattr(apply_retention, "LEASE", timedelta(seconds=0.05))
    monkeypatch.setattr(apply_retention, "WAIT_SECONDS", 0.01)

    with pytest.raises(CommandError, match="Another process"):
        said()
