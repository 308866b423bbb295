"""Labels of settings on pages, over REST and in files; and many settings at once: what would happen, what
did."""

import json
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from agents.groups.group import enable_group
from agents.manifests.apply import apply
from agents.manifests.document import Rejected, document_of, dump, load
from agents.manifests.export import document
from agents.models import Activation, LaunchSetting, Pool, PoolGrant, ScheduledGroup
from agents.settings import bulk
from agents.settings.bulk import carry_out, foresee, happened
from agents.settings.enable import enable_setting
from agents.settings.operations import LabelSetting
from console.audit.models import AuditEntry
from console.operations.operation import perform
from console.operations.refusals import Refused
from tests.web.launching import delayed, group_of
from tests.web.rows import NOW, api_client, make_person, make_setting

pytestmark = pytest.mark.django_db
BULK = "/api/v1/bulk/"
NOTHING: dict[str, Any] = {"reason": "", "until": None, "ticket": "", "try_one_first": None}


def inputs(verb: str, **given: Any) -> dict[str, Any]:
    return {name: one.default for name, one in bulk.VERBS[verb].inputs.items()} | given


def labelled(pool: Pool, key: str, **labels: str) -> LaunchSetting:
    return make_setting(pool, key, labels=labels)


def fates(items: list[Any]) -> dict[str, str]:
    return {item.key: str(item.fate) for item in items}


def browser(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


# -- labels --------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ("team", ["one", "two"]),
        ("team=shop", ["two"]),
        ("team=shop,critical", []),
        ("critical=", ["one"]),
        ("none", []),
    ],
)
def test_settings_are_found_by_their_labels_over_rest(
    pool: Pool, viewer: User, wanted: str, keys: list[str]
) -> None:
    labelled(pool, "one", team="billing", critical="")
    labelled(pool, "two", team="shop")
    labelled(pool, "three")

    found = api_client(viewer).get("/api/v1/settings/", {"label": wanted}).json()["results"]

    assert sorted(each["key"] for each in found) == sorted(keys)


@pytest.mark.parametrize(
    ("labels", "status"), [({"team": "billing"}, 200), ({"-": ""}, 400), ({"a": 1, "b": [2]}, 400), ([], 400)]
)
def test_labels_are_saved_over_rest_where_they_are_labels(
    pool: Pool, operator: User, labels: Any, status: int
) -> None:
    make_setting(pool, "one")

    told = api_client(operator).patch("/api/v1/settings/one/", {"labels": labels}, format="json")

    assert told.status_code == status, told.content
    stored = LaunchSetting.objects.get(key="one").labels
    assert stored == (labels if status == 200 else {})


def test_labels_stand_in_a_file_and_come_back_the_same(pool: Pool) -> None:
    labelled(pool, "one", team="billing", critical="")
    text = dump(document())
    LaunchSetting.objects.update(labels={})

    changes = apply(document_of(load(text.encode())), None, NOW).changes

    assert [change.path for change in changes] == ["settings/one/labels"]
    assert LaunchSetting.objects.get().labels == {"team": "billing", "critical": ""}
    assert not apply(document_of(load(text.encode())), None, NOW).changes


@pytest.mark.parametrize("labels", ["team", ["team"], {"team": 1}, {"-": "x"}])
def test_a_file_with_what_is_no_label_is_rejected(pool: Pool, labels: Any) -> None:
    make_setting(pool, "one")
    text = json.dumps({"settings": {"one": {"labels": labels}}})

    with pytest.raises(Rejected) as told:
        apply(document_of(load(text.encode())), None, NOW)
    assert told.value.problems[0].path == "settings/one/labels"


def test_labels_are_edited_in_the_form_and_shown_as_links(pool: Pool, operator: User) -> None:
    setting, client = labelled(pool, "one", team="billing"), browser(operator)
    address = f"/agents/launchsetting/{setting.pk}/change/"
    form = client.get(address).context["adminform"].form
    assert 'value="team=billing"' in str(form["labels"])
    values = {bound.html_name: bound.value() for bound in form}
    sent = {name: value for name, value in values.items() if value is not None and value is not False}
    sent |= {"parameters": "{}", "masked_properties": "[]"}

    refused = client.post(address, sent | {"labels": "team=billing, -x"})
    assert "Invalid label" in refused.content.decode()
    saved = client.post(address, sent | {"labels": "critical, team=shop"})
    assert saved.status_code == 302, saved.context["adminform"].form.errors

    assert LaunchSetting.objects.get().labels == {"critical": "", "team": "shop"}
    for page in ("/", "/settings/", "/settings/one/"):
        assert 'href="/settings/?label=team%3Dshop"' in client.get(page).content.decode(), page


def test_the_list_is_narrowed_by_label_pool_destination_and_text(pool: Pool, viewer: User) -> None:
    other = Pool.objects.create(name="other")
    labelled(pool, "one", team="billing")
    make_setting(other, "two", labels={"team": "billing"}, address="demo.invoices")
    labelled(pool, "three")
    client = browser(viewer)

    def keys(**query: str) -> list[str]:
        rows = client.get("/settings/", query).context["listing"].found
        return sorted(row.setting.key for row in rows)

    assert keys(label="team") == ["one", "two"]
    assert keys(label="team", pool="other") == ["two"]
    assert keys(destination="demo.invoices") == ["two"]
    assert keys(q="BILLING") == ["one", "two"]
    assert keys(label="team", q="one", state="never") == ["one"]
    assert keys(pool="nowhere") == []


@pytest.mark.parametrize(("add", "remove"), [("-", ""), (",".join(f"l{n}" for n in range(21)), "")])
def test_labels_that_are_none_change_nothing(pool: Pool, add: str, remove: str) -> None:
    setting = labelled(pool, "one", team="billing")

    with pytest.raises(Refused) as told:
        perform(LabelSetting, setting, None, add=add, remove=remove)
    assert told.value.code == "bad_labels"
    assert LaunchSetting.objects.get().labels == {"team": "billing"}


# -- what would happen ---------------------------------------------------------------------------------------


@pytest.fixture
def house(pool: Pool) -> dict[str, LaunchSetting]:
    """`on`, `off`, `member` of a group that is on, `broken`: not on the broker."""
    on = make_setting(pool, "on")
    make_setting(pool, "off")
    enable_setting(on, None, NOW)
    enable_group(group_of(delayed(pool, "member")), None, NOW)
    make_setting(pool, "broken", provision_state="failed")
    return {setting.key: setting for setting in LaunchSetting.objects.select_related("pool").order_by("key")}


@pytest.mark.parametrize(
    ("verb", "given", "expected"),
    [
        ("enable", {}, {"on": "unchanged", "off": "done", "member": "refused", "broken": "refused"}),
        ("disable", {}, {"on": "done", "off": "unchanged", "member": "done", "broken": "unchanged"}),
        ("stop", {}, {"on": "refused", "off": "unchanged", "member": "unchanged", "broken": "unchanged"}),
        ("label", {"add": "a"}, dict.fromkeys(("on", "off", "member", "broken"), "done")),
        ("label", {}, dict.fromkeys(("on", "off", "member", "broken"), "unchanged")),
    ],
)
def test_what_is_foreseen_is_what_happens(
    house: dict[str, LaunchSetting], verb: str, given: dict[str, str], expected: dict[str, str]
) -> None:
    said = inputs(verb, **given)

    assert fates(foresee(verb, house.values(), None, NOW, said)) == expected
    _whole, items = carry_out(verb, list(house), None, said)
    assert fates(items) == expected


def test_disabling_a_member_says_that_its_group_goes_along(house: dict[str, LaunchSetting]) -> None:
    (item,) = foresee("disable", [house["member"]], None, NOW, inputs("disable"))

    assert "night" in item.says
    carry_out("disable", ["member"], None, inputs("disable"))
    assert not ScheduledGroup.objects.get().enabled


def test_each_is_checked_by_its_own_permission_and_one_refusal_stops_no_other(
    pool: Pool, groups: None
) -> None:
    mine = Pool.objects.create(name="mine")
    mine.servers.set(pool.servers.all())
    for place, key in ((pool, "a-theirs"), (mine, "b-mine"), (pool, "c-theirs"), (mine, "d-mine")):
        make_setting(place, key)
    person = make_person("someone", "viewer")
    team = Group.objects.create(name="team")
    person.groups.add(team)
    PoolGrant.objects.create(pool=mine, group=team, may_enable=True)
    person = User.objects.get(pk=person.pk)
    keys = ["a-theirs", "b-mine", "c-theirs", "d-mine", "e-gone"]

    said = inputs("enable")
    foreseen = foresee("enable", LaunchSetting.objects.select_related("pool"), person, NOW, said)
    whole, items = carry_out("enable", keys, person, said)

    expected = {"a-theirs": "refused", "b-mine": "done", "c-theirs": "refused", "d-mine": "done"}
    assert fates(foreseen) == expected
    assert fates(items) == expected | {"e-gone": "gone"}
    assert all("Can enable launch settings" in each.says for each in items if each.fate == "refused")
    enabled = LaunchSetting.objects.filter(enabled=True).values_list("key", flat=True)
    assert sorted(enabled) == ["b-mine", "d-mine"]
    entries = AuditEntry.objects.filter(operation=whole).order_by("pk")
    assert [(each.setting_key, each.result) for each in entries] == [
        ("a-theirs", "refused"),
        ("b-mine", "done"),
        ("c-theirs", "refused"),
        ("d-mine", "done"),
    ]
    assert fates(happened(whole)) == expected


def test_entries_outside_of_it_belong_to_no_operation(pool: Pool) -> None:
    setting = make_setting(pool, "one")
    whole, _items = carry_out("label", ["one"], None, inputs("label", add="a"))
    perform(LabelSetting, setting, None, add="b", remove="")

    found = AuditEntry.objects.filter(action="setting.label").order_by("pk")
    assert list(found.values_list("operation", flat=True)) == [whole, None]


# -- pages ---------------------------------------------------------------------------------------------------


def test_a_person_enables_what_the_preflight_has_shown_and_nothing_else(pool: Pool, operator: User) -> None:
    for key in ("one", "two"):
        labelled(pool, key, team="billing")
    client = browser(operator)
    asked = client.get("/bulk/settings/enable/?label=team")
    assert [row.item.key for row in asked.context["rows"]] == ["one", "two"]
    labelled(pool, "later", team="billing")

    answer = client.post("/bulk/settings/enable/?label=team", {"settings": ["one", "two"]})

    assert answer.status_code == 302 and answer["Location"].startswith("/bulk/results/")
    enabled = LaunchSetting.objects.filter(enabled=True).values_list("key", flat=True)
    assert sorted(enabled) == ["one", "two"]
    shown = client.get(answer["Location"])
    assert [(row.item.key, str(row.item.fate)) for row in shown.context["rows"]] == [
        ("one", "done"),
        ("two", "done"),
    ]


def test_a_trial_is_as_each_setting_says_where_nobody_ticks_it(pool: Pool, operator: User) -> None:
    make_setting(pool, "careful", try_one_first=True)

    browser(operator).post("/bulk/settings/enable/", {"settings": ["careful"]})

    assert Activation.objects.get().trial


def test_without_a_selection_nothing_happens(pool: Pool, operator: User) -> None:
    make_setting(pool, "one")

    answer = browser(operator).post("/bulk/settings/enable/", {})

    assert "Select at least one" in answer.content.decode()
    assert not LaunchSetting.objects.filter(enabled=True).exists()


def test_too_many_at_once_are_refused(pool: Pool, operator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ma_site.pages.bulk.MOST_AT_ONCE", 1)
    for key in ("one", "two"):
        make_setting(pool, key)

    answer = browser(operator).post("/bulk/settings/enable/", {"settings": ["one", "two"]})

    assert "Too many settings" in answer.content.decode()
    assert "Not shown because of the limit: 1" in answer.content.decode()
    assert not LaunchSetting.objects.filter(enabled=True).exists()


def test_labels_are_checked_before_they_are_given(pool: Pool, operator: User) -> None:
    labelled(pool, "one", team="billing")
    client = browser(operator)

    asked = client.post("/bulk/settings/label/", {"settings": ["one"], "add": "tier=1", "again": "1"})
    assert asked.context["counts"]["done"] == 1
    assert LaunchSetting.objects.get().labels == {"team": "billing"}
    bad = client.post("/bulk/settings/label/", {"settings": ["one"], "add": "-", "again": "1"})
    assert "Invalid label" in bad.content.decode()

    client.post("/bulk/settings/label/", {"settings": ["one"], "add": "tier=1", "remove": "team"})
    assert LaunchSetting.objects.get().labels == {"tier": "1"}


def test_the_result_is_for_who_did_it_and_for_who_sees_the_audit(pool: Pool, operator: User) -> None:
    make_setting(pool, "one")
    whole, _items = carry_out("label", ["one"], operator, inputs("label", add="a"))
    colleague = make_person("colleague")
    colleague.user_permissions.add(
        *Group.objects.get(name="viewer").permissions.filter(codename="view_launchsetting")
    )

    assert browser(operator).get(f"/bulk/results/{whole}/").status_code == 200
    assert browser(colleague).get(f"/bulk/results/{whole}/").status_code == 404
    assert browser(operator).get(f"/bulk/results/{UUID(int=7)}/").status_code == 404


def test_a_verb_that_is_none_is_not_found(operator: User) -> None:
    assert browser(operator).get("/bulk/settings/remove/").status_code == 404


@pytest.mark.parametrize("verb", list(bulk.VERBS))
def test_who_may_do_it_nowhere_has_no_link_and_changes_nothing(pool: Pool, viewer: User, verb: str) -> None:
    setting, client = make_setting(pool, "one"), browser(viewer)

    assert f"/bulk/settings/{verb}/" not in client.get("/settings/").content.decode()
    assert client.get(f"/bulk/settings/{verb}/").context["counts"]["refused"] == 1
    assert client.post(f"/bulk/settings/{verb}/", {"settings": ["one"], "add": "a"}).status_code == 403
    told = api_client(viewer).post(BULK, {"action": verb, "settings": ["one"]}, format="json")
    assert told.status_code == 403

    setting.refresh_from_db()
    assert (setting.enabled, setting.labels) == (False, {})
    refused = AuditEntry.objects.filter(result="refused").values_list("action", flat=True)
    assert list(refused) == ["setting.bulk"] * 2


# -- REST and the command line -------------------------------------------------------------------------------


def test_over_rest_a_preflight_then_just_these(pool: Pool, operator: User) -> None:
    labelled(pool, "one", team="billing")
    labelled(pool, "two")
    client = api_client(operator)

    asked = client.get(BULK, {"action": "enable", "label": "team"}).json()
    assert asked == {"operation": None, "settings": [{"key": "one", "result": "done", "says": ""}]}
    done = client.post(BULK, {"action": "enable", "settings": ["one", "gone"]}, format="json").json()

    assert [(each["key"], each["result"]) for each in done["settings"]] == [("one", "done"), ("gone", "gone")]
    assert AuditEntry.objects.get(operation=done["operation"]).setting_key == "one"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"action": "enable", "settings": []}, "settings"),
        ({"action": "enable"}, "settings"),
        ({"action": "remove", "settings": ["one"]}, "action"),
        ({"action": "enable", "settings": ["one"], "reson": "x"}, "reson"),
        ({"action": "enable", "settings": ["one"], "ticket": "x"}, "ticket"),
        ({"action": "enable", "settings": ["one"] * 501}, "settings"),
    ],
)
def test_a_body_that_is_not_understood_changes_nothing(
    pool: Pool, operator: User, body: dict[str, Any], where: str
) -> None:
    make_setting(pool, "one")

    told = api_client(operator).post(BULK, body, format="json")

    assert (told.status_code, told.json()["where"]) == (400, where), told.content
    assert not LaunchSetting.objects.filter(enabled=True).exists()


@pytest.mark.parametrize("query", [{"action": "enable", "state": "x"}, {"action": "enable", "labels": "a"}])
def test_a_preflight_that_is_not_understood_is_refused(operator: User, query: dict[str, str]) -> None:
    assert api_client(operator).get(BULK, query).status_code == 400


def test_who_sees_no_settings_is_refused_and_in_the_audit(pool: Pool, outsider: User) -> None:
    told = api_client(outsider).post(BULK, {"action": "enable", "settings": ["one"]}, format="json")

    assert told.status_code == 403
    assert AuditEntry.objects.get().action == "setting.bulk"


def command(*words: str) -> tuple[str, int]:
    out = StringIO()
    try:
        call_command("bulk", *words, stdout=out)
    except SystemExit as end:
        return out.getvalue(), int(str(end.code))
    return out.getvalue(), 0


def test_the_command_shows_then_does(house: dict[str, LaunchSetting]) -> None:
    text, code = command("enable", "--all", "--dry-run")
    assert code == 1 and "off" in text
    assert not LaunchSetting.objects.get(key="off").enabled

    text, code = command("enable", "--q", "off", "--json")
    told = json.loads(text)
    assert (code, told["settings"][0]["key"], told["settings"][0]["result"]) == (0, "off", "done")
    assert LaunchSetting.objects.get(key="off").enabled
    assert AuditEntry.objects.filter(operation=told["operation"]).count() == 1


def test_the_command_selects_nothing_by_accident(house: dict[str, LaunchSetting]) -> None:
    with pytest.raises(CommandError, match="--all"):
        command("disable")
    assert LaunchSetting.objects.get(key="on").enabled
    assert timezone.now() > NOW
