"""Filters of dead letters under a name: whose they are, what they find for whom, what is refused."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import LaunchSetting
from console.audit.models import AuditEntry
from dlq.finding import saved as filters
from dlq.finding.saved import FilterRefused, save, saved_for
from dlq.models import SavedFilter
from tests.web import letters
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.rows import api_client, make_person

pytestmark = pytest.mark.django_db
KEY = "orders-export"
REST = "/api/v1/saved-filters/"


@pytest.fixture
def ann(groups: None) -> User:
    return make_person("ann", "viewer")


@pytest.fixture
def bob(groups: None) -> User:
    return make_person("bob", "viewer")


def kept(name: str, query: str, by: Any, **more: Any) -> SavedFilter:
    return save(name, query, by=by, now=timezone.now(), **more)


def test_a_filter_is_saved_without_what_is_of_a_page(ann: User) -> None:
    saved = kept(
        "  my   faults ",
        "?exception=KeyError&state=dead&span=&before=77&page_size=3&prop=a%3Db&prop=c%3Dd",
        ann,
    )

    assert saved.name == "my faults"
    assert saved.query == "exception=KeyError&prop=a%3Db&prop=c%3Dd"
    assert AuditEntry.objects.get().action == "save_filter"


def test_own_ones_and_shared_ones_are_to_be_used_and_only_own_ones_changed(ann: User, bob: User) -> None:
    own, shared = kept("own", "server=srv-1", ann), kept("shared", "server=srv-2", ann, shared=True)

    assert list(saved_for(ann)) == [own, shared]
    assert list(saved_for(bob)) == [shared]
    for act in (
        lambda: filters.change(shared, name="bob's", by=bob, now=timezone.now()),
        lambda: filters.delete(shared, by=bob, now=timezone.now()),
    ):
        with pytest.raises(FilterRefused, match="ann"):
            act()
    assert list(saved_for(bob)) == [shared]
    assert AuditEntry.objects.filter(result="refused", by=bob).count() == 2


@pytest.mark.parametrize(
    ("name", "query", "code"),
    [
        (" ", "server=srv-1", "no_name"),
        ("x", "", "empty"),
        ("x", "state=dead&page=2", "empty"),
        ("x", "span=9y", "bad_filter"),
        ("x", "nonsense=1", "bad_filter"),
        ("x", "server=" + "s" * 5000, "too_long"),
        ("x" * 101, "server=srv-1", "too_long"),
        ("taken", "server=srv-1", "exists"),
    ],
)
def test_what_cannot_be_saved_says_why(ann: User, name: str, query: str, code: str) -> None:
    kept("taken", "server=srv-9", ann)

    with pytest.raises(FilterRefused) as refused:
        kept(name, query, ann)

    assert refused.value.code == code
    assert SavedFilter.objects.count() == 1


def test_nobody_saves_without_end(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.services.saved.MOST", 1)
    kept("one", "server=srv-1", ann)

    with pytest.raises(FilterRefused, match="already"):
        kept("two", "server=srv-1", ann)


def test_a_masked_value_is_not_told_to_others_by_a_shared_filter(setting: LaunchSetting) -> None:
    root = User.objects.create_superuser("root")
    LaunchSetting.objects.filter(pk=setting.pk).update(masked_properties=["card"])
    own = kept("own", "prop=card%3D4111", root)

    with pytest.raises(FilterRefused, match="masked"):
        kept("shared", "prop=card%3D4111", root, shared=True)
    with pytest.raises(FilterRefused, match="masked"):
        filters.change(own, shared=True, by=root, now=timezone.now())
    own.refresh_from_db()
    assert not own.shared


# -- pages ---------------------------------------------------------------------------------------------------


def test_a_filter_is_saved_from_a_list_used_renamed_and_deleted(world: World) -> None:
    client, listed = signed_in(world, "viewer"), f"/dead-letters/{KEY}/?exception=Key&state=every"
    page = looked_at(client, listed)
    query = next(a["value"] for tag, a in page.found if tag == "input" and a.get("name") == "query")
    answer = client.post("/saved-filters/save/", {"name": "all keys", "query": query, "next": listed})
    saved = SavedFilter.objects.get()

    assert answer.headers["Location"] == listed
    assert saved.query == f"exception=Key&state=every&setting={KEY}" or saved.query.count("&") == 2
    page = looked_at(client, listed)
    here = [
        a["href"] for tag, a in page.found if tag == "a" and a.get("class") == "tag" and a.get("aria-current")
    ]
    assert here and "The filter is saved." in page.text
    used = looked_at(client, here[0] or "")
    assert "24 in this list" in used.text or "in this list" in used.text
    text = looked_at(client, "/saved-filters/").text
    assert "all keys" in text and "Exception contains Key" in text and "yours alone" in text
    client.post(f"/saved-filters/{saved.pk}/change/", {"name": "keys", "shared": "1"})
    assert "keys" in looked_at(signed_in(world, "operator"), "/saved-filters/").text
    assert signed_in(world, "operator").post(f"/saved-filters/{saved.pk}/delete/").status_code == 403
    client.post(f"/saved-filters/{saved.pk}/delete/")
    assert "No filter is saved yet." in looked_at(client, "/saved-filters/").text


def test_whoever_sees_no_letters_has_no_filters(world: World) -> None:
    client = signed_in(world, "outsider")

    assert client.get("/saved-filters/").status_code == 403
    assert client.post("/saved-filters/save/", {"name": "x", "query": "server=1"}).status_code == 403


def test_a_name_is_text(world: World) -> None:
    kept("<script>alert(1)</script>\u202e", "server=%3Cb%3E", world.people["viewer"])
    client = signed_in(world, "viewer")

    for path in ("/saved-filters/", f"/dead-letters/{KEY}/"):
        html = client.get(path).content.decode()
        assert "<script>alert" not in html and "\u202e" not in html


# -- REST ----------------------------------------------------------------------------------------------------


def test_rest_saves_lists_changes_and_deletes(ann: User, bob: User) -> None:
    client = api_client(ann)
    made = client.post(REST, {"name": "keys", "query": "exception=Key", "shared": True})
    assert made.status_code == 201 and made.json()["owner"] == "ann"
    one = f"{REST}{made.json()['id']}/"

    assert client.post(REST, {"name": "keys", "query": "server=a"}).status_code == 409
    assert client.post(REST, {"name": "bad", "query": "span=9y"}).status_code == 400
    assert [each["name"] for each in api_client(bob).get(REST).json()["results"]] == ["keys"]
    assert api_client(bob).patch(one, {"name": "mine"}).status_code == 403
    assert api_client(bob).delete(one).status_code == 403
    assert client.patch(one, {"shared": False}).json()["shared"] is False
    assert api_client(bob).get(one).status_code == 404
    assert client.delete(one).status_code == 204
    assert client.get(REST).json()["results"] == []


def test_rest_refuses_who_sees_no_letters(groups: None) -> None:
    assert api_client(make_person("nobody")).get(REST).status_code == 403


def test_a_saved_filter_finds_for_each_what_they_may_see(ann: User) -> None:
    letters.dead("orders", 1)
    saved = kept("all", "state=every", ann)

    assert api_client(ann).get(f"/api/v1/dead-letters/?{saved.query}").json()["count"] == 1
