"""manage.py apply_retention: what it says before and after."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents.models import LaunchSetting, Pool
from failures.models import FailureProtocol
from retention import preview, worker
from retention.management.commands import apply_retention
from retention.models import RetentionRun
from retention.protocols import setting_rule
from tests.web.letters import dead
from tests.web.retention_rows import activation, of_today, protocols, recoveries, take_turn
from tests.web.rows import make_setting

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
        "orders: 7 protocols would be deleted; the last activation succeeded: everything up to its end"
    )
    assert (
        "(no setting): 2 protocols would be deleted; no activation finished for a long time: older than "
        in said("--dry-run")
    )
    assert FailureProtocol.objects.count() == 9
    assert not RetentionRun.objects.exists()


def test_a_dry_run_counts_what_two_ranges_cover_once(setting: LaunchSetting, settings: Any) -> None:
    """Nothing finished for long, and the last activation finished well long ago: both let go of the same
    rows."""
    settings.MA_RETENTION_SILENT_DAYS = 90
    protocols(activation(setting, of_today(200), well=True), 7, of_today(200))
    protocols(activation(setting, of_today(150), going_on=True), 2, of_today(150))

    foreseen = {row["rule"]: row["would_go"] for row in rows("--dry-run") if row["what"] == "protocols"}
    assert foreseen == {"well": 7, "silent": 2}
    assert sum(row["deleted"] for row in rows() if row["what"] == "protocols") == sum(foreseen.values())


def test_what_two_ranges_would_let_go_is_kept_once(setting: LaunchSetting, settings: Any) -> None:
    settings.MA_RETENTION_SILENT_DAYS, settings.MA_RETENTION_KEEP_DEAD = 90, True
    letter = dead(setting.key, 1, "ID:1")
    protocols(activation(setting, of_today(200), well=True), 1, of_today(200), message_key=letter.message_key)

    for asked in (["--dry-run"], []):
        assert sum(row["kept"].get("dead", 0) for row in rows(*asked)) == 1, asked
    assert "1 protocol would be deleted" not in said("--dry-run")


def test_one_of_a_thing_is_not_many(setting: LaunchSetting) -> None:
    recoveries(protocols(activation(setting, 5, well=True), 1, 5))

    assert said("--dry-run").startswith("orders: 1 protocol would be deleted; ")
    assert [line.partition(";")[0] for line in said().splitlines()] == [
        "orders: 1 protocol deleted", "orders: 1 recovered message deleted",
    ]  # fmt: skip


def test_a_dry_run_counts_to_a_bound_and_says_so(
    setting: LaunchSetting, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MA_RETENTION_SILENT_DAYS = 0
    monkeypatch.setattr(setting_rule, "AT_ONCE", 2)
    monkeypatch.setattr(preview, "MOST_PARTS", 3)
    protocols(activation(setting, 5, well=True), 7, 5)

    assert rows("--dry-run") == [
        {
            "what": "protocols", "setting": "orders", "rule": "well", "older_than": None, "would_go": 6,
            "kept": {},
            "at_least": True,
        }
    ]  # fmt: skip
    assert said("--dry-run").startswith("orders: at least 6 protocols would be deleted")


def test_a_dry_run_in_which_nothing_would_go_says_so_per_setting_and_why(pool: Pool, settings: Any) -> None:
    settings.MA_RETENTION_DAYS, settings.MA_RETENTION_SILENT_DAYS = 30, 90
    activation(make_setting(pool, "good"), of_today(5), well=True)
    activation(make_setting(pool, "bad", address="t.bad"), of_today(5), well=False)
    make_setting(pool, "new", address="t.new")

    told = said("--dry-run").splitlines()
    assert [line.rstrip("0123456789-:T") for line in told] == [
        "good: nothing to delete; the last activation succeeded: everything up to its end",
        "bad: nothing to delete; the last activation failed: older than ",
        "new: nothing to delete; no activation has finished yet; nothing is older than ",
        "(no setting): nothing to delete; no activation finished for a long time: older than ",
    ]
    assert rows("--dry-run") == [
        {"would_go": [], "rule": {"days": 30, "silent_days": 90, "keep_dead": False}}
    ]

    settings.MA_RETENTION_SILENT_DAYS = 0
    assert said("--dry-run").splitlines()[2:] == [
        "new: nothing to delete; no activation has finished yet",
        "(no setting): nothing to delete; nothing is deleted by age alone",
    ]


def test_a_dry_run_counts_the_settings_of_which_nothing_goes_where_they_are_many(
    setting: LaunchSetting, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply_retention, "MOST_TOLD", 2)
    protocols(activation(setting, of_today(5), well=True), 7, of_today(5))
    for number in range(2):
        make_setting(pool, f"idle-{number}", address=f"t.{number}")
    assert [line.partition(";")[0] for line in said("--dry-run").splitlines()] == [
        "orders: 7 protocols would be deleted", "idle-0: nothing to delete", "idle-1: nothing to delete",
        "(no setting): nothing to delete",
    ]  # fmt: skip

    make_setting(pool, "idle-2", address="t.2")
    assert [line.partition(";")[0] for line in said("--dry-run").splitlines()] == [
        "orders: 7 protocols would be deleted", "3 settings: nothing to delete",
        "(no setting): nothing to delete",
    ]  # fmt: skip
    assert [row["setting"] for row in rows("--dry-run")] == ["orders"]


def test_a_dry_run_that_could_not_look_at_all_of_it_does_not_say_that_nothing_goes(
    setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old by the clock of their server, young by ours: they stay, and there are more behind them."""
    monkeypatch.setattr(setting_rule, "AT_ONCE", 1)
    monkeypatch.setattr(preview, "MOST_PARTS", 2)
    protocols(activation(setting, of_today(1), going_on=True), 5, 3000, received_at=timezone.now())

    assert said("--dry-run").startswith("orders: at least 0 protocols would be deleted")


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

    protocols(activation(setting, 5, well=True), 1, 5)
    monkeypatch.setattr(worker, "apply_to_setting", faulty)

    with pytest.raises(CommandError, match="orders: RuntimeError: out of order"):
        said()


def test_it_waits_for_another_one_no_longer_than_for_a_dead_one(
    setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert take_turn(timezone.now()) is not None
    monkeypatch.setattr(RetentionRun, "lease", timedelta(seconds=0.05))
    monkeypatch.setattr(apply_retention, "WAIT_SECONDS", 0.01)

    with pytest.raises(CommandError, match="Another process"):
        said()
