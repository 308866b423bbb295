"""Dead letters in groups: what is counted, what is told of each, for whom; how it stays bounded."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import LaunchSetting, Pool
from console.lists import keyset
from contract.typed import Typed
from dlq.dead_letters.masks import Masks
from dlq.groups import facts as stories
from dlq.groups import queries
from dlq.groups.rules import KINDS
from dlq.models import DeadLetter, KnownFault, LetterState, Taking
from dlq.search.visibility import dead_queues_for, found
from tests.web import letters
from tests.web.factories import World, make_letter
from tests.web.pages import looked_at, signed_in
from tests.web.reports import AT
from tests.web.rows import api_client, make_setting
from tests.web.teams import teammate

pytestmark = pytest.mark.django_db
KEY = "orders-export"
FAULT, OTHER = "v1:aaaa", "v1:bbbb"


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("root")


def died(number: int, fingerprint: str = FAULT, key: str = "orders", **columns: object) -> DeadLetter:
    row = letters.dead(key, number, f"ID:{number}")
    cause = {"exception_type": "shop.KeyError", "server_name": "srv-1"} if fingerprint else {}
    DeadLetter.objects.filter(pk=row.pk).update(fingerprint=fingerprint, **(cause | columns))
    return DeadLetter.objects.get(pk=row.pk)


def counts(by: str, *queues: str) -> dict[str, int]:
    return {str(group.value): group.count for group in queries.groups_of(KINDS[by], queues).found}


@pytest.mark.both_databases
def test_letters_are_grouped_by_each_kind_and_the_filter_of_a_group_finds_just_its_letters(
    root: User,
) -> None:
    activation = "00000000-0000-0000-0000-000000000007"
    died(1, activation_uuid=activation)
    died(2, seen_at=AT - timedelta(days=3))
    died(3, OTHER, exception_type="shop.ValueError", server_name="srv-2")
    died(4, "")
    died(5, key="invoices")
    died(6, state=LetterState.GONE)
    both = ("DLQ.invoices", "DLQ.orders")

    assert counts("fingerprint", "DLQ.orders") == {FAULT: 2, OTHER: 1, "": 1}
    assert counts("fingerprint", *both) == {FAULT: 3, OTHER: 1, "": 1}
    assert counts("exception", *both) == {"shop.KeyError": 3, "shop.ValueError": 1, "": 1}
    assert counts("server", *both) == {"srv-1": 3, "srv-2": 1, "": 1}
    assert counts("activation", *both) == {activation: 1, "": 4}
    today, before = AT.date(), (AT - timedelta(days=3)).date()
    assert counts("day", *both) == {str(today): 4, str(before): 1}
    for kind in KINDS.values():
        for group in queries.groups_of(kind, both).found:
            _filters, rows = found(QueryDict(group.query), root)
            assert rows.count() == group.count, (kind.name, group.value)
            assert {group.first, group.last} <= set(rows.values_list("pk", flat=True))


@pytest.mark.both_databases
def test_the_largest_group_is_first_and_the_latest_day(root: User) -> None:
    for number in range(6):
        died(number, OTHER if number % 3 else FAULT, seen_at=AT + timedelta(days=number))

    by_fault = queries.groups_of(KINDS["fingerprint"], ["DLQ.orders"]).found
    by_day = queries.groups_of(KINDS["day"], ["DLQ.orders"]).found

    assert [(group.value, group.words) for group in by_fault] == [(OTHER, "4"), (FAULT, "2")]
    assert [group.value for group in by_day] == sorted((group.value for group in by_day), reverse=True)


@pytest.mark.both_databases
@pytest.mark.parametrize("by", list(KINDS))
@pytest.mark.parametrize("patient", [True, False])
def test_what_is_too_many_to_count_is_told_about(
    monkeypatch: pytest.MonkeyPatch, by: str, patient: bool
) -> None:
    for number in range(150):
        died(number)
    died(151, OTHER, server_name="srv-2")
    monkeypatch.setattr(keyset, "COUNTED", 100)
    monkeypatch.setattr(queries, "COARSE", 20)
    monkeypatch.setattr(queries, "EXACT", 10_000 if patient else 0)

    first, *_others = queries.groups_of(KINDS[by], ["DLQ.orders"]).found

    assert first.words.startswith("about 15") and 140 <= first.count <= 160


@pytest.mark.both_databases
def test_a_group_within_the_bound_is_counted_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        died(number)
    monkeypatch.setattr(queries, "COARSE", 20)

    assert queries.groups_of(KINDS["fingerprint"], ["DLQ.orders"]).found[0].words == "50"


@pytest.mark.both_databases
def test_of_too_many_groups_those_of_the_latest_letters_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST", 5)
    monkeypatch.setattr(queries, "LATEST", 4)
    monkeypatch.setattr(queries, "LARGEST_OF_LATEST", 3)
    for number in range(30):
        died(number, f"v1:{number:04}")
    for number in range(30, 33):
        died(number, OTHER)

    shown = queries.groups_of(KINDS["fingerprint"], ["DLQ.orders"])

    assert shown.more
    assert (shown.found[0].value, shown.found[0].count) == (OTHER, 3)
    assert len(shown.found) <= 3


@pytest.mark.both_databases
def test_a_group_tells_since_when_what_of_whose_and_what_replays_did(
    setting: LaunchSetting, root: User
) -> None:
    back = [died(number, key=setting.key, agent_version="2.4.1") for number in range(3)]
    job = letters.given_back(setting, *back)
    job.items.filter(letter=back[0]).update(outcome="dead_again")
    job.items.filter(letter=back[1]).update(outcome="handled")
    first, last = (
        died(8, key=setting.key, agent_version="2.4.1"),
        died(9, key=setting.key, agent_version="2.5.0"),
    )
    KnownFault.objects.create(setting_key=setting.key, fingerprint=FAULT, ticket="T-1")
    KnownFault.objects.create(setting_key=setting.key, fingerprint=OTHER)
    Taking.objects.create(setting_key=setting.key, by_name="ann")
    group = queries.groups_of(KINDS["fingerprint"], [f"DLQ.{setting.key}"]).found[0]

    facts = stories.facts_of_groups([group], Masks())[0]

    assert (facts.since, facts.latest, facts.example) == (first.seen_at, last.seen_at, last.pk)
    assert sorted(facts.versions) == ["2.4.1", "2.5.0"]
    assert (facts.given_back, facts.judged, facts.failed_again) == ("3", 2, 1)
    assert [fault.ticket for fault in facts.faults] == ["T-1"]
    assert [taking.by_name for taking in facts.takings] == ["ann"]


@pytest.mark.both_databases
def test_replays_are_told_of_the_latest_letters_that_were_given_back(
    setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stories, "LATEST", 2)
    monkeypatch.setattr(stories, "FEWEST_OF_QUEUE", 2)
    letters.given_back(
        setting, died(1, OTHER, key=setting.key), *(died(n, key=setting.key) for n in (2, 3, 4))
    )
    died(5, key=setting.key)
    died(6, OTHER, key=setting.key)
    found = queries.groups_of(KINDS["fingerprint"], [f"DLQ.{setting.key}"]).found

    told = {
        group.value: facts.given_back
        for group, facts in zip(found, stories.facts_of_groups(found, Masks()), strict=True)
    }

    assert told == {FAULT: "2+", OTHER: "0+"}


def test_the_example_of_a_group_is_masked(setting: LaunchSetting) -> None:
    make = Typed("string", '{"card": "4111"}')
    row = letters.dead(setting.key, 1, "ID:1", body=make)
    group = queries.groups_of(KINDS["fingerprint"], [row.queue]).found[0]

    seen = stories.facts_of_groups([group], Masks({setting.key: frozenset({"card"})}))[0]

    assert "4111" not in seen.body and "card" in seen.body


@pytest.mark.both_databases
def test_more_groups_and_letters_take_no_more_questions(setting: LaunchSetting) -> None:
    def questions() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            queries.groups_of(KINDS["fingerprint"], [f"DLQ.{setting.key}"])
        return len(asked)

    died(1, key=setting.key)
    few = questions()
    for number in range(2, 40):
        died(number, f"v1:{number % 10}", key=setting.key)

    assert questions() == few


# -- pages ---------------------------------------------------------------------------------------------------


def test_the_page_of_a_setting_leads_to_the_letters_of_a_group_and_to_giving_it_back(world: World) -> None:
    page = looked_at(signed_in(world, "operator"), f"/dead-letters/{KEY}/groups/")
    fingerprint = DeadLetter.objects.filter(setting_key=KEY, state="dead").values_list(
        "fingerprint", flat=True
    )[0]
    query = QueryDict(mutable=True)
    query["fingerprint"] = fingerprint

    assert "KeyError" in page.text and "17 3 of 14 failed again" in page.text
    assert f"/dead-letters/{KEY}/?{query.urlencode()}" in page.links()
    assert f"/dead-letters/{KEY}/give-back/?group=1&{query.urlencode()}" in page.links()
    asked = looked_at(
        signed_in(world, "operator"), f"/dead-letters/{KEY}/give-back/?group=1&{query.urlencode()}"
    )
    assert "KeyError" in asked.text
    assert f"/dead-letters/{KEY}/" in page.links()  # single letters


def test_a_group_is_edited_redirected_or_discarded_by_whom_may(world: World) -> None:
    path, client = f"/dead-letters/{KEY}/groups/", signed_in(world, "viewer")
    for right, address in (("edit_letters", "edit"), ("redirect", "redirect"), ("discard", "discard")):
        start = f"/dead-letters/{KEY}/{address}/?group=1&fingerprint="
        assert not [url for url in looked_at(client, path).links() if url.startswith(start)]
        person = world.people["viewer"]
        person.user_permissions.add(Permission.objects.get(codename=right, content_type__app_label="dlq"))
        url, *_others = [url for url in looked_at(client, path).links() if url.startswith(start)]
        assert client.get(url).status_code == 200


def test_a_filter_goes_along_to_the_groups_which_say_what_of_it_holds(world: World) -> None:
    client, query = signed_in(world, "operator"), "exception=KeyErr&setting=orders-export&text=%E2%80%AEabc"
    to = f"/letters/groups/?by=server&{query}"
    assert to in looked_at(client, f"/letters/?{query}").links()

    page = looked_at(client, to)
    assert "This part of the filter is not applied: Exception contains: KeyErr ; Words in body" in page.text
    assert "\u202e" not in page.text
    assert f"/letters/?{query}" in page.links() and f"/letters/groups/?by=day&{query}" in page.links()
    whole, narrowed = (
        looked_at(client, f"/letters/groups/?by=server{more}") for more in ("", "&setting=stock-sync")
    )
    assert (
        "No dead letters." in narrowed.text
        and ("Group counts include all dead letters of each setting. This part of the filter is not applied:")
        not in narrowed.text + whole.text
    )
    assert "orders-export" in whole.text
    assert "Invalid date." in looked_at(client, "/letters/groups/?since=0001-01-01T00:00%2B09:00").text


def test_a_viewer_may_look_and_not_act(world: World) -> None:
    page = looked_at(signed_in(world, "viewer"), f"/dead-letters/{KEY}/groups/")

    assert "KeyError" in page.text
    assert not [url for url in page.links() if "give-back" in url]
    assert not [
        tag
        for tag, attributes in page.found
        if tag == "form" and "remarks" in (attributes.get("action") or "")
    ]


def test_a_fault_is_taken_and_muted_from_its_row(world: World) -> None:
    client, path = signed_in(world, "operator"), f"/dead-letters/{KEY}/groups/"
    fingerprint = DeadLetter.objects.filter(setting_key=KEY, state="dead").values_list(
        "fingerprint", flat=True
    )[0]
    about = {"setting": KEY, "fingerprint": fingerprint, "of": "fingerprint", "next": path}

    assert client.post("/remarks/take/", about).headers["Location"] == path
    assert client.post("/remarks/mute/", {**about, "ticket": "T-77", "until": ""}).headers["Location"] == path

    text = looked_at(client, path).text
    assert "operator known T-77" in text


def test_who_works_on_it_is_told_of_faults_and_other_kinds_lead_there(world: World) -> None:
    client, path = signed_in(world, "operator"), f"/dead-letters/{KEY}/groups/"
    fault = looked_at(client, path)
    assert "unassigned" in fault.text and "Show error groups" not in fault.text
    for kind in ("exception", "server", "activation", "day"):
        page = looked_at(client, f"{path}?by={kind}")
        assert "unassigned" not in page.text and "Show error groups" in page.text, kind
        assert f"{path}?by=fingerprint" in page.links()


def test_what_of_a_filter_does_not_hold_is_said_in_the_words_of_its_form(world: World) -> None:
    page = looked_at(
        signed_in(world, "operator"), f"/dead-letters/{KEY}/groups/?span=1d&state=every&text=pear"
    )
    told = page.text.partition("This part of the filter is not applied: ")[2].partition(
        "Show messages that match the full filter"
    )[0]
    assert told.strip() == "Time: last 24 hours ; State: any state ; Words in body or properties: pear ."


@pytest.mark.both_databases
def test_all_settings_are_seen_in_groups(world: World) -> None:
    client = signed_in(world, "viewer")

    for by in (*KINDS, "nonsense"):
        assert "orders-export" in looked_at(client, f"/letters/groups/?by={by}&start=x").text
        assert "No dead letters." in looked_at(client, f"/letters/groups/?by={by}&start=999999").text
        assert "No dead letters." in looked_at(client, f"/dead-letters/stock-sync/groups/?by={by}").text


def test_hostile_texts_of_a_group_are_text(world: World) -> None:
    make_letter(
        world,
        "mail-send",
        "<script>alert(1)</script>",
        exception_type="<b>\u202eX",
        fingerprint="'\"><script>",
        place="<i>",
    )
    answer = signed_in(world, "operator").get("/dead-letters/mail-send/groups/")

    html = answer.content.decode()
    assert "<script>alert" not in html and "<b>\u202e" not in html and "<i>" not in html


@pytest.mark.both_databases
def test_a_teammate_sees_groups_of_the_pool_only(groups: None, setting: LaunchSetting, pool: Pool) -> None:
    hidden = make_setting(Pool.objects.create(name="elsewhere"), "hidden")
    died(1, key=setting.key, exception_type="shop.Mine")
    died(2, OTHER, key=hidden.key, exception_type="shop.Hidden")
    died(3, "v1:bin", key="bin", exception_type="shop.Binned")
    mate = teammate(pool, rights=("see_letters",))
    mate.groups.remove(*mate.groups.filter(name="viewer"))
    mate = User.objects.get(pk=mate.pk)
    client = Client()
    client.force_login(mate)

    assert dead_queues_for(mate) == [f"DLQ.{setting.key}"]
    text = looked_at(client, "/letters/groups/").text
    assert "shop.Mine" in text and "shop.Hidden" not in text and "shop.Binned" not in text
    for path in ("/dead-letters/hidden/groups/", "/dead-letters/bin/groups/"):
        assert client.get(path).status_code == 404


def test_an_outsider_sees_no_group(world: World) -> None:
    for path in ("/letters/groups/", f"/dead-letters/{KEY}/groups/"):
        assert signed_in(world, "outsider").get(path).status_code == 403


# -- REST ----------------------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_rest_tells_groups_with_the_filter_of_each(root: User) -> None:
    died(1)
    died(2, OTHER)
    died(3, OTHER, key="invoices")
    client = api_client(root)

    answer = client.get("/api/v1/dead-letter-groups/").json()
    assert [(each["value"], each["count"], each["query"]) for each in answer["groups"]] == [
        (OTHER, 2, "fingerprint=v1%3Abbbb"),
        (FAULT, 1, "fingerprint=v1%3Aaaaa"),
    ]
    assert answer["groups"][0]["settings"] == [
        {"setting": "invoices", "count": 1, "about": False},
        {"setting": "orders", "count": 1, "about": False},
    ]
    of_one = client.get("/api/v1/dead-letter-groups/?setting=invoices&by=day&limit=1").json()
    assert (of_one["by"], of_one["more"], len(of_one["groups"])) == ("day", False, 1)
    by_queue = client.get("/api/v1/dead-letter-groups/?queue=DLQ.invoices").json()
    assert [each["value"] for each in by_queue["groups"]] == [OTHER]
    for wrong in ("by=moon", "exception=KeyError", "setting=orders&since=2026-03-01"):
        assert client.get(f"/api/v1/dead-letter-groups/?{wrong}").status_code == 400
    assert (
        api_client(User.objects.create_user("nobody")).get("/api/v1/dead-letter-groups/").status_code == 403
    )
