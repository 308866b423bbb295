"""Settings in git: export, apply, apply again."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from agents.groups.group import enable_group
from agents.manifests.apply import Manner, apply
from agents.manifests.document import Rejected, document_of, dump, load
from agents.manifests.export import document
from agents.models import Destination, LaunchSetting, Pool, Schedule, ScheduledGroup, StateChange
from agents.provisioning.topology import REMOVING
from tests.web.launching import delayed, enabled, group_of, scheduled
from tests.web.rows import NOW, make_setting

pytestmark = pytest.mark.django_db


@pytest.fixture
def house(pool: Pool) -> Pool:
    """A setting as soon as possible, one by schedule, a group of two with a schedule."""
    make_setting(
        pool, "orders", parameters={"invoices": "demo.invoices", "rate": 1.5}, description="Заказы: срочно"
    )
    scheduled(delayed(pool, "nightly"))
    scheduled(group_of(delayed(pool, "one"), delayed(pool, "two")), "", every_seconds=3600, missed="once")
    LaunchSetting.objects.create(
        key="sweep", agent="demo.sweep", kind="standalone", pool=pool, wanted_hash="h"
    )
    return pool


def nightly(schedule: Any) -> Any:
    return {"settings": {"nightly": {"schedule": schedule}}}


def applied(data: Any, **options: Any) -> list[str]:
    outcome = apply(document_of(data), None, NOW, Manner(**options))
    return [str(change) for change in outcome.changes]


def refused(data: Any) -> list[str]:
    """What is said, after it was seen that nothing was stored."""
    before = dump(document())
    with pytest.raises(Rejected) as error:
        apply(document_of(data), None, NOW)
    assert dump(document()) == before
    return [str(problem) for problem in error.value.problems]


def test_an_export_applied_changes_nothing(house: Pool) -> None:
    exported = dump(document())
    assert applied(load(exported.encode())) == []
    assert dump(document()) == exported


def test_an_export_restores_what_was_deleted(house: Pool) -> None:
    exported = dump(document())
    ScheduledGroup.objects.all().delete()
    LaunchSetting.objects.all().delete()
    Destination.objects.all().delete()
    Pool.objects.all().delete()
    assert "+ settings/nightly: new" in applied(load(exported.encode()))
    assert dump(document()) == exported
    assert applied(load(exported.encode())) == []


def test_differences_are_told_field_by_field(house: Pool) -> None:
    data = {
        "settings": {
            "orders": {"breaker_m": 12, "concurrency": 1},
            "nightly": {"schedule": {"crontab": "0 4 * * *"}},
        },
        "groups": {"night": {"members": ["two", "one"]}},
        "pools": {"demo": {"servers": ["srv-1"]}},
    }
    assert applied(data) == [
        '~ pools/demo/servers: ["srv-1", "srv-2"] → ["srv-1"]',
        "~ settings/orders/breaker_m: 10 → 12",
        '~ groups/night/members: ["one", "two"] → ["two", "one"]',
        '~ settings/nightly/schedule/crontab: "30 2 * * *" → "0 4 * * *"',
        '~ settings/nightly/schedule/time_zone: "Europe/Berlin" → "UTC"',
    ]
    assert applied(data) == []


def test_a_dry_run_tells_and_stores_nothing(house: Pool) -> None:
    before, changes = dump(document()), StateChange.objects.count()
    data = {
        "settings": {
            "orders": {"breaker_m": 12},
            "fresh": {"agent": "a", "pool": "demo", "destination": "demo.orders"},
        }
    }
    told = applied(data, dry_run=True)
    assert "~ settings/orders/breaker_m: 10 → 12" in told and "+ settings/fresh: new" in told
    assert dump(document()) == before
    assert StateChange.objects.count() == changes


def test_what_the_file_does_not_name_stays(house: Pool) -> None:
    LaunchSetting.objects.filter(key="orders").update(breaker_m=77)
    assert applied({"settings": {"orders": {"concurrency": 3}}}) == ["~ settings/orders/concurrency: 1 → 3"]
    assert LaunchSetting.objects.get(key="orders").breaker_m == 77
    assert LaunchSetting.objects.count() == 5


def test_a_schedule_changes_its_kind_and_goes(house: Pool) -> None:
    told = applied({"settings": {"nightly": {"schedule": {"every_seconds": 60}}}})
    assert '~ settings/nightly/schedule/crontab: "30 2 * * *" → none' in told
    assert Schedule.objects.get(setting__key="nightly").every_seconds == 60
    assert applied({"settings": {"nightly": {"schedule": None}}}) == [
        "~ settings/nightly/schedule: 60 s → none"
    ]
    assert not Schedule.objects.filter(setting__key="nightly").exists()


def test_a_setting_moves_from_its_own_schedule_into_a_group_and_between_groups(house: Pool) -> None:
    applied({
        "settings": {"nightly": {"schedule": None}},
        "groups": {"night": {"members": ["two"]}, "other": {"members": ["nightly", "one"]}},
    })  # fmt: skip
    members = {group["members"] and key: group["members"] for key, group in document()["groups"].items()}
    assert members == {"night": ["two"], "other": ["nightly", "one"]}


def test_enabled_is_changed_only_where_the_file_says_so(house: Pool) -> None:
    assert "enabled" not in dump(document())
    applied({"settings": {"orders": {"enabled": True}}, "groups": {"night": {"enabled": True}}})
    assert set(LaunchSetting.objects.filter(enabled=True).values_list("key", flat=True)) == {
        "orders",
        "one",
        "two",
    }
    assert applied({"settings": {"orders": {"breaker_m": 11}}}) == ["~ settings/orders/breaker_m: 10 → 11"]
    told = applied({"settings": {"orders": {"enabled": False}}, "groups": {"night": {"enabled": False}}})
    assert told == ["~ settings/orders/enabled: true → false", "~ groups/night/enabled: true → false"]
    assert not LaunchSetting.objects.filter(enabled=True).exists()


def test_a_file_may_disable_change_and_enable_in_one_go(house: Pool) -> None:
    enabled(LaunchSetting.objects.get(key="nightly"))
    assert refused({"settings": {"nightly": {"timing": "ASAP", "schedule": None}}})
    data = {"settings": {"nightly": {"timing": "ASAP", "schedule": None, "enabled": False}}}
    assert "~ settings/nightly/enabled: true → false" in applied(data)


def test_what_cannot_be_enabled_is_stored_and_said(house: Pool) -> None:
    LaunchSetting.objects.filter(key="orders").update(
        provision_state="failed", provision_problem="no such address"
    )
    outcome = apply(document_of({"settings": {"orders": {"breaker_m": 12, "enabled": True}}}), None, NOW)
    assert "no such address" in str(outcome.refused[0])
    setting = LaunchSetting.objects.get(key="orders")
    assert (setting.breaker_m, setting.enabled) == (12, False)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"settings": {"orders": {"breaker_n": 3}}}, "settings/orders/breaker_n: unknown field"),
        ({"settings": {"orders": {"breaker_m": "12"}}}, "settings/orders/breaker_m: must be a whole number"),
        ({"settings": {"orders": {"breaker_m": True}}}, "settings/orders/breaker_m: must be a whole number"),
        ({"settings": {"orders": {"breaker_m": 0}}}, "settings/orders/breaker_m: "),
        ({"settings": {"orders": {"grace_seconds": float("nan")}}},
        "settings/orders/grace_seconds: must be a number"),
        ({"settings": {"orders": {"isolate": "yes"}}}, "settings/orders/isolate: must be true or false"),
        ({"settings": {"orders": {"agent": 5}}},
        "settings/orders/agent: must be a string: quote it as '5'"),
        ({"settings": {"orders": {"description": "a\0b"}}}, "settings/orders/description: contains NUL"),
        ({"settings": {"orders": {"parameters": []}}}, "settings/orders/parameters: "),
        ({"settings": {"orders": {"parameters": {1: 2}}}},
        "settings/orders/parameters: keys must be strings"),
        ({"settings": {"orders": {"pool": "nowhere"}}}, "settings/orders/pool: There is no pool nowhere."),
        ({"settings": {"orders": {"destination": "no.where"}}},
        "settings/orders/destination: There is no destination"),
        ({"settings": {"orders": {"spread": "SOME"}}}, "settings/orders/spread: "),
        ({"settings": {"fresh": {"agent": "a"}}}, "settings/fresh/pool: A pool is required."),
        ({"settings": {"A!": {"agent": "a", "pool": "demo", "destination": "demo.orders"}}},
        "settings/A!/key: "),
        ({"settings": {"sweep": {"destination": "demo.orders"}}}, "settings/sweep/destination: "),
        (nightly({"crontab": "* * 31 2 *"}), "settings/nightly/schedule/crontab: "),
        (nightly({"crontab": f"{'9' * 5000} * * * *"}), "settings/nightly/schedule/crontab: "),
        (nightly({"time_zone": "X/Y", "crontab": "0 0 * * *"}), "settings/nightly/schedule/time_zone: "),
        (nightly({"cron": "x"}), "settings/nightly/schedule/cron: unknown field"),
        (nightly("daily"), "settings/nightly/schedule: must be a mapping"),
        ({"settings": {"orders": {"schedule": {"every_seconds": 60}}}},
        "settings/orders/schedule: A continuous setting cannot have"),
        ({"settings": {"one": {"enabled": True}}}, "settings/one/enabled: the setting belongs to a group"),
        ({"settings": ["orders"]}, "settings: must be a mapping"),
        ({"settings": {7: {}}}, "settings/7: must be a string"),
        ({"groups": {"night": {"members": ["one", "one"]}}}, "groups/night/members: "),
        ({"groups": {"night": {"members": ["one", "night"]}}}, "groups/night/members: “night” is a group"),
        ({"groups": {"night": {"members": ["one", "orders"]}}}, "groups/night/members: "),
        ({"groups": {"night": {"members": "one"}}}, "groups/night/members: must be a list of names"),
        ({"pools": {"demo": {"servers": ["srv-9"]}}}, "pools/demo/servers: There is no server srv-9"),
        ({"destinations": {"demo.orders": {"max_attempts": 0}}}, "destinations/demo.orders/max_attempts: "),
        ({"servers": {}}, "servers: unknown field"),
        ({"version": 2}, "version: only version 1"),
        ([], "must be a mapping"),
        (None, "must be a mapping"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_path_and_nothing_is_stored(house: Pool, data: Any, said: str) -> None:
    (only,) = refused(data)
    assert only.startswith(said)


def test_every_problem_is_said_at_once(house: Pool) -> None:
    data = {
        "settings": {"orders": {"breaker_m": 0}, "nightly": {"pool": "x"}},
        "groups": {"night": {"members": ["x"]}},
    }
    assert len(refused(data)) == 3


def test_members_of_an_enabled_group_are_not_changed(house: Pool) -> None:
    enable_group(ScheduledGroup.objects.get(), None, NOW)
    (only,) = refused({"groups": {"night": {"members": ["one"]}}})
    assert "Disable the group, then add or remove members." in only
    assert applied({"groups": {"night": {"members": ["one"], "enabled": False}}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"settings: {a: {}, a: {}}", "line 1, column 19: duplicate key 'a'"),
        (b"a: &x [1]\nb: *x", "line 2, column 4: aliases are not allowed"),
        (b"a: !!python/object/apply:os.system ['true']", "line 1"),
        (b"a: [", "line 1"),
        (b"a: 1\n---\nb: 2", "line 2"),
        (b"a: 2026-02-31", "day is out of range"),
        (b"[a]: 1", "there is"),
        (b"\xff\xfe\x00", ""),
        (b"[" * 100_000, "nested too deeply"),
        (b"#" * (4 * 1024 * 1024 + 1), "the file is larger"),
    ],
)
def test_yaml_that_nobody_would_write_is_refused(text: bytes, said: str) -> None:
    with pytest.raises(Rejected) as error:
        document_of(load(text))
    assert str(error.value.problems[0]).startswith(said) or said == "there is"


def test_the_commands_speak_of_the_file(house: Pool, tmp_path: Path) -> None:
    out, file = StringIO(), tmp_path / "settings.yaml"
    call_command("export", stdout=out)
    file.write_text(out.getvalue(), encoding="utf-8")
    assert said("apply", file) == "Nothing to change.\n"
    file.write_text(out.getvalue().replace("breaker_m: 10", "breaker_m: 9", 1), encoding="utf-8")
    out = StringIO()
    with pytest.raises(SystemExit, match="2"):
        call_command("apply", str(file), "--dry-run", stdout=out)
    assert out.getvalue().endswith("1 change to make; nothing was stored.\n")
    assert said("apply", file).endswith("1 change made.\n")
    file.write_text("settings:\n  orders: {breaker_m: x}\n")
    with pytest.raises(
        CommandError, match=r"settings\.yaml: settings/orders/breaker_m: must be a whole number"
    ):
        said("apply", file)
    with pytest.raises(CommandError, match="cannot be read"):
        said("apply", tmp_path / "none.yaml")


def test_some_settings_are_exported_with_what_they_need(house: Pool) -> None:
    out = StringIO()
    call_command("export", "one", "two", stdout=out)
    found = load(out.getvalue().encode())
    assert {section: list(found[section]) for section in ("pools", "destinations", "settings", "groups")} == {
        "pools": ["demo"],
        "destinations": ["demo.orders"],
        "settings": ["one", "two"],
        "groups": ["night"],
    }
    call_command("export", "one", stdout=(alone := StringIO()))
    assert load(alone.getvalue().encode())["groups"] == {}
    with pytest.raises(CommandError, match="nobody"):
        call_command("export", "nobody")


def said(*arguments: Any) -> str:
    out = StringIO()
    call_command(*map(str, arguments), stdout=out)
    return out.getvalue()


def test_a_setting_that_is_being_removed_is_left_alone(house: Pool) -> None:
    LaunchSetting.objects.filter(key="orders").update(wanted_hash=REMOVING)
    assert "orders" not in document()["settings"]
    (only,) = refused({"settings": {"orders": {"breaker_m": 3}}})
    assert only.startswith("settings/orders: The setting is being removed")


def test_the_example_of_the_documentation_applies(pool: Pool) -> None:
    page = Path(settings.BASE_DIR, "docs", "reference", "settings-file.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert applied(load(example.encode()))
    assert applied(load(example.encode())) == []
