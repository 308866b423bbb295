"""Settings in git over REST: the same file as the command applies, with the rights of each form; and what the
file leaves out of its pools, removed."""

from typing import Any

import pytest
import yaml
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command

from agents.groups.group import enable_group
from agents.manifests import apply as applying
from agents.manifests.apply import Manner, apply
from agents.manifests.document import document_of
from agents.models import Destination, LaunchSetting, Pool, ScheduledGroup
from broker.memory.broker import MemoryBroker
from console.audit.models import AuditEntry
from console.operations.refusals import Refused
from deploy.remote.site import Exit
from tests.web.launching import delayed, enabled, group_of
from tests.web.remote_client import RemoteClient
from tests.web.rows import NOW, api_client, make_person, make_setting
from tests.web.teams import teammate
from tests.web.test_destination_policy import memory  # noqa: F401 - a fixture

URL = "/api/v1/manifests/"
# Who may see all that a file is about.
SEE = ("view_launchsetting", "view_pool", "view_destination", "view_scheduledgroup")


@pytest.fixture
def house(pool: Pool) -> Pool:
    make_setting(pool)
    group_of(delayed(pool, "one"), delayed(pool, "two"))
    return pool


def post(who: User, data: Any, code: int = 200, **options: Any) -> Any:
    text = data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False)
    answer = api_client(who).post(URL, {"text": text, **options})
    assert answer.status_code == code, answer.content
    return answer.json()


def changes(answer: Any) -> list[str]:
    return [each["text"] for each in answer["changes"]]


def may(*names: str) -> User:
    """Sees what a file is about, and has these permissions."""
    person = make_person("exact")
    person.user_permissions.set(Permission.objects.filter(codename__in=[*SEE, *names]))
    return person


# -- export and apply ----------------------------------------------------------------------------------------


def test_what_is_exported_is_applied_without_a_change(house: Pool, operator: User) -> None:
    client = api_client(operator)
    text = client.get(URL).json()["text"]
    assert list(yaml.safe_load(text)["settings"]) == ["one", "orders", "two"]
    assert post(operator, text) == {"changes": [], "refused": [], "withheld": []}
    some = yaml.safe_load(client.get(f"{URL}?key=one&key=two").json()["text"])
    assert (list(some["settings"]), list(some["groups"])) == (["one", "two"], ["night"])
    gone = client.get(f"{URL}?key=none")
    assert gone.status_code == 404 and "none" in gone.json()["detail"]


def test_a_dry_run_says_what_would_change_and_stores_nothing(house: Pool, operator: User) -> None:
    wanted = {"settings": {"orders": {"breaker_m": 12}}}
    for _again in range(2):
        told = post(operator, wanted, dry_run=True)
        assert told["changes"] == [
            {
                "path": "settings/orders/breaker_m",
                "old": "10",
                "new": "12",
                "text": "~ settings/orders/breaker_m: 10 → 12",
            }
        ]
    assert AuditEntry.objects.count() == 0
    post(operator, wanted)
    assert LaunchSetting.objects.get(key="orders").breaker_m == 12
    assert [(each.action, each.by_name) for each in AuditEntry.objects.all()] == [
        ("setting.change", "operator")
    ]


def test_what_is_wrong_is_named_with_its_place_and_nothing_is_stored(house: Pool, operator: User) -> None:
    wrong = {"settings": {"orders": {"breaker_m": 12, "brekaer": 1}, "one": {"concurrency": "x"}}}
    told = post(operator, wrong, code=400)
    assert (told["error"], told["where"]) == ("rejected", "settings/orders/brekaer")
    assert [each["path"] for each in told["problems"]] == [
        "settings/orders/brekaer",
        "settings/one/concurrency",
    ]
    assert LaunchSetting.objects.get(key="orders").breaker_m == 10
    assert post(operator, "a: [", code=400)["problems"][0]["path"].startswith("line 1")
    assert api_client(operator).post(URL, {"text": "{}", "dryrun": True}).status_code == 400
    assert api_client(operator).post(URL, {"text": "x" * (9 * 1024 * 1024)}).status_code == 413


# -- rights --------------------------------------------------------------------------------------------------

ENTRIES: list[tuple[dict[str, Any], str]] = [
    ({"pools": {"demo": {"description": "x"}}}, "change_pool"),
    ({"pools": {"new": {}}}, "add_pool"),
    ({"destinations": {"demo.orders": {"max_attempts": 3}}}, "change_destination"),
    ({"destinations": {"demo.new": {}}}, "add_destination"),
    ({"settings": {"orders": {"breaker_m": 12}}}, "change_launchsetting"),
    ({"settings": {"orders": {"schedule": None}, "one": {"description": "x"}}}, "change_launchsetting"),
    ({"groups": {"night": {"members": ["two", "one"]}}}, "change_launchsetting"),
    ({"groups": {"night": {"description": "x"}}}, "change_launchsetting"),
    ({"groups": {"night": {"schedule": {"every_seconds": 60}}}}, "change_launchsetting"),
    ({"groups": {"empty": {}}}, "change_launchsetting"),
    ({"settings": {"orders": {"enabled": True}}}, "can_enable"),
    ({"groups": {"night": {"enabled": True}}}, "can_enable"),
]


@pytest.mark.parametrize(("data", "right"), ENTRIES, ids=[f"{each} {right}" for each, right in ENTRIES])
def test_each_change_needs_the_right_of_its_form(house: Pool, data: dict[str, Any], right: str) -> None:
    without = may()
    told = post(without, data, code=403)
    assert told["error"] == "permission_denied" and "permission" in told["problems"][0]["text"]
    (entry,) = AuditEntry.objects.all()
    assert (entry.action, entry.result, entry.by_name) == ("manifest.apply", "refused", "exact")
    post(without, data, code=403, dry_run=True)

    without.user_permissions.add(Permission.objects.get(codename=right))
    assert post(User.objects.get(pk=without.pk), data)["changes"]


def test_what_changes_nothing_needs_no_right(house: Pool, viewer: User) -> None:
    text = api_client(viewer).get(URL).json()["text"]
    assert post(viewer, text)["changes"] == []


def test_a_setting_that_is_switched_off_needs_the_right_to_disable(house: Pool) -> None:
    enabled(LaunchSetting.objects.get(key="orders"))
    data, person = {"settings": {"orders": {"enabled": False}}}, may()
    assert "Can disable" in post(person, data, code=403)["problems"][0]["text"]
    person.user_permissions.add(Permission.objects.get(codename="can_disable"))
    assert changes(post(User.objects.get(pk=person.pk), data)) == ["~ settings/orders/enabled: true → false"]


def test_a_right_in_a_pool_is_enough_there_and_nowhere_else(house: Pool, groups: None) -> None:
    other = Pool.objects.create(name="other")
    make_setting(other, "theirs", address="demo.theirs")
    mate = teammate(house)
    assert post(mate, {"settings": {"orders": {"breaker_m": 12}}})["changes"]
    for wrong in (
        {"settings": {"theirs": {"breaker_m": 12}}},
        {"settings": {"orders": {"pool": "other"}}},
        {"settings": {"theirs": {"pool": "demo"}}},
        {"settings": {"new": {"agent": "a", "pool": "demo", "destination": "demo.theirs"}}},
        {"settings": {"new": {"agent": "a", "pool": "other", "destination": "demo.orders"}}},
        {"groups": {"night": {"members": ["one", "two", "theirs"]}}},
    ):
        assert post(mate, wrong, code=403)["problems"], wrong
    new = {"agent": "demo.orders", "pool": "demo", "destination": "demo.orders"}
    assert post(mate, {"settings": {"new": new}})["changes"]


def test_nobody_takes_off_a_mask_or_lets_messages_be_discarded_by_a_file(house: Pool) -> None:
    LaunchSetting.objects.filter(key="orders").update(masked_properties=["card"])
    person = may("change_launchsetting")
    for field, value in (("masked_properties", []), ("after_last", "discard")):
        told = post(person, {"settings": {"orders": {field: value}}}, code=400)
        assert "You cannot" in told["problems"][0]["text"]


@pytest.mark.parametrize("missing", SEE)
def test_who_may_not_see_one_of_them_gets_neither_export_nor_plan(house: Pool, missing: str) -> None:
    person = make_person("blind")
    person.user_permissions.set(Permission.objects.exclude(codename=missing))
    assert api_client(person).get(URL).status_code == 403
    post(person, {}, code=403, dry_run=True)


# -- what the file leaves out --------------------------------------------------------------------------------

LEFT: dict[str, Any] = {"pools": {"demo": {}}, "settings": {"orders": {}}}


def test_what_the_pools_of_the_file_have_besides_is_removed(
    house: Pool,
    operator: User,
    memory: MemoryBroker,  # noqa: F811 - the fixture
) -> None:
    other = Pool.objects.create(name="other")
    make_setting(other, "theirs", address="demo.theirs")
    ScheduledGroup.objects.create(name="empty")
    going = ["- groups/night: removed", "- settings/one: removed", "- settings/two: removed"]
    operator.user_permissions.add(Permission.objects.get(codename="delete_launchsetting"))
    operator = User.objects.get(pk=operator.pk)

    assert changes(post(operator, LEFT)) == []
    told = post(operator, LEFT, prune=True, dry_run=True)
    assert (changes(told), told["refused"]) == (going, [])
    assert LaunchSetting.objects.count() == 4 and ScheduledGroup.objects.count() == 2

    told = post(operator, LEFT, prune=True)
    assert (changes(told), told["refused"]) == (going, [])
    assert set(LaunchSetting.objects.values_list("key", flat=True)) == {"orders", "theirs"}
    assert ScheduledGroup.objects.get().name == "empty" and Destination.objects.count() == 2
    assert {each.action for each in AuditEntry.objects.all()} == {"group.delete", "setting.remove"}
    assert post(operator, LEFT, prune=True)["changes"] == []


def test_what_runs_or_is_not_yours_is_not_removed(house: Pool, operator: User, memory: MemoryBroker) -> None:  # noqa: F811
    enable_group(ScheduledGroup.objects.get(), operator, NOW)
    for dry_run in (True, False):
        told = post(operator, LEFT, prune=True, dry_run=dry_run)
        said = {each["path"]: each["text"] for each in told["refused"]}
        assert "enabled" in said["groups/night"] and "Can delete launch setting" in said["settings/one"]
    assert changes(told) == [] and LaunchSetting.objects.count() == 3


# -- the commands --------------------------------------------------------------------------------------------


def test_a_plan_ends_with_2_where_it_has_changes(
    house: Pool, operator: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    remote, file = RemoteClient(operator, monkeypatch), tmp_path / "settings.yaml"
    file.write_text(remote("export").out.replace("breaker_m: 10", "breaker_m: 9", 1), encoding="utf-8")
    for words in (("plan", str(file)), ("apply", str(file), "--dry-run")):
        planned = remote(*words)
        assert planned.code == Exit.CHANGES
        assert planned.out.endswith("1 change to make; nothing was stored.\n")
    assert remote("plan", str(file), "--json").json["changes"][0]["path"].endswith("/breaker_m")
    assert remote("apply", str(file)).out.endswith("1 change made.\n")
    assert (remote("plan", str(file)).code, remote("apply", str(file)).out) == (0, "Nothing to change.\n")
    removed = remote("plan", str(file), "--prune")
    assert removed.code == 0, "everything is in the file"


def test_a_file_that_is_refused_ends_with_1_and_names_each_place(
    house: Pool, operator: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    remote, file = RemoteClient(operator, monkeypatch), tmp_path / "settings.yaml"
    file.write_text("settings:\n  orders: {breaker_m: x, brekaer: 1}\n")
    ran = remote("apply", str(file))
    assert (ran.code, ran.out) == (Exit.REFUSED, "")
    first, second, third, _advice = ran.err.splitlines()
    assert first.startswith(f"{file}: settings/orders/brekaer: unknown field")
    assert second.startswith(f"{file}: settings/orders/breaker_m: must be a whole number")
    assert third == "ma: The file was rejected; nothing was stored. (settings/orders/brekaer)"
    assert remote("apply", str(tmp_path / "none")).code == Exit.USAGE
    file.write_bytes(b"\xff")
    assert remote("apply", str(file)).code == Exit.USAGE


def test_what_could_not_be_enabled_is_named_and_ends_with_1(
    house: Pool, operator: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise Refused("away", "The broker is away.", "Try again.")

    monkeypatch.setattr(applying, "enable_setting", refuse)
    remote, file = RemoteClient(operator, monkeypatch), tmp_path / "settings.yaml"
    file.write_text("settings:\n  orders: {breaker_m: 7, enabled: true}\n")
    ran = remote("apply", str(file))
    assert ran.code == Exit.REFUSED and "settings/orders: The broker is away. Try again." in ran.err
    assert LaunchSetting.objects.get(key="orders").breaker_m == 7


def test_a_request_waits_for_the_broker_no_longer_than_it_was_told(
    house: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    LaunchSetting.objects.update(provision_state="pending", provision_problem="")
    asked: list[int] = []
    monkeypatch.setattr(applying, "provision_setting", asked.append)
    data = {"settings": {"orders": {"enabled": True}}}
    outcome = apply(document_of(data), None, NOW, Manner(seconds=0.0))
    assert (asked, [each.path for each in outcome.refused]) == ([], ["settings/orders"])


def test_the_command_of_the_machine_prunes_too(house: Pool, memory: MemoryBroker, tmp_path: Any) -> None:  # noqa: F811
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(LEFT))
    with pytest.raises(SystemExit, match="2"):
        call_command("apply", str(file), "--prune", "--dry-run")
    call_command("apply", str(file), "--prune")
    assert [each.key for each in LaunchSetting.objects.all()] == ["orders"]
    enabled(make_setting(house, "again"))
    with pytest.raises(
        CommandError, match="settings/again: The setting cannot be removed while it is enabled"
    ):
        call_command("apply", str(file), "--prune", "--dry-run")
