"""Filters of protocols under a name: saved from the list, used, shared, changed by their owner, deleted."""

import pytest
from django.utils import timezone

from agents.services.saved import FilterRefused
from failures.models import SavedView
from failures.saved import views
from tests.web.factories import World
from tests.web.pages import Elements, looked_at, signed_in
from tests.web.rows import api_client, make_person

pytestmark = pytest.mark.django_db


def _bar(page: Elements) -> list[str]:
    """Addresses of the saved ones that the list shows, the one that it is itself first of all."""
    tags = [a for tag, a in page.found if tag == "a" and a.get("class") == "tag"]
    return [a["href"] or "" for a in sorted(tags, key=lambda a: "aria-current" not in a)]


def test_a_filter_is_saved_from_the_list_used_renamed_and_deleted(world: World) -> None:
    client, listed = signed_in(world, "viewer"), "/protocols/?exception=Key&span=7d"
    page = looked_at(client, f"{listed}&before=x")
    query = next(a["value"] for tag, a in page.found if tag == "input" and a.get("name") == "query")
    answer = client.post("/protocols/saved/save/", {"name": " all  keys ", "query": query, "next": listed})
    saved = SavedView.objects.get()

    assert answer.headers["Location"] == listed
    assert (saved.name, saved.query, saved.shared) == ("all keys", "exception=Key&span=7d", False)
    assert _bar(looked_at(client, "/protocols/?span=7d&exception=Key"))[0] == listed
    client.post(f"/protocols/saved/{saved.pk}/change/", {"name": "keys", "shared": "1"})
    page = looked_at(client, "/protocols/saved/")
    assert "keys" in page.text and "yours, for everybody" in page.text and "last 7 days" in page.text
    client.post(f"/protocols/saved/{saved.pk}/delete/")
    assert (
        not SavedView.objects.exists()
        and "No filter is saved yet." in looked_at(client, "/protocols/saved/").text
    )


def test_others_use_a_shared_one_and_do_not_change_it(world: World) -> None:
    owner, other = signed_in(world, "viewer"), signed_in(world, "operator")
    for name, shared in (("own", "0"), ("shared", "1")):
        owner.post("/protocols/saved/save/", {"name": name, "query": f"text={name}", "shared": shared})
    own, shared_one = SavedView.objects.order_by("name")

    assert _bar(looked_at(other, "/protocols/")) == ["/protocols/?text=shared"]
    assert other.post(f"/protocols/saved/{shared_one.pk}/delete/").status_code == 403
    assert other.post(f"/protocols/saved/{own.pk}/delete/").status_code == 404
    assert SavedView.objects.count() == 2


@pytest.mark.parametrize(
    ("name", "query", "code"),
    [
        (" ", "server=srv-1", "no_name"),
        ("x", "", "empty"),
        ("x", "before=7&page=2", "empty"),
        ("x", "span=9y", "bad_filter"),
        ("x", "nonsense=1", "bad_filter"),
        ("x", "text=" + "s" * 5000, "too_long"),
        ("x" * 101, "server=srv-1", "too_long"),
        ("taken", "server=srv-1", "exists"),
    ],
)
def test_what_cannot_be_saved_says_why(groups: None, name: str, query: str, code: str) -> None:
    ann = make_person("ann", "viewer")
    views.save("taken", "server=srv-9", by=ann, now=timezone.now())

    with pytest.raises(FilterRefused) as refused:
        views.save(name, query, by=ann, now=timezone.now())

    assert refused.value.code == code
    assert SavedView.objects.count() == 1


def test_a_name_is_kept_whole_or_refused(world: World) -> None:
    client = signed_in(world, "viewer")
    client.post("/protocols/saved/save/", {"name": "x" * 100, "query": "text=x"})
    saved = SavedView.objects.get()
    page = client.post(
        f"/protocols/saved/{saved.pk}/change/", {"name": "y" * 500}, follow=True
    ).content.decode()
    saved.refresh_from_db()

    assert saved.name == "x" * 100 and "at most 100 characters" in page


def test_who_may_not_see_protocols_saves_nothing(world: World) -> None:
    client = signed_in(world, "outsider")

    assert client.post("/protocols/saved/save/", {"name": "x", "query": "text=x"}).status_code == 403
    assert client.get("/protocols/saved/").status_code == 403
    assert not SavedView.objects.exists()


# -- REST ----------------------------------------------------------------------------------------------------

REST = "/api/v1/protocols/saved/"


def test_rest_saves_lists_changes_and_deletes(groups: None) -> None:
    ann, bob = api_client(make_person("ann", "viewer")), api_client(make_person("bob", "viewer"))
    made = ann.post(REST, {"name": "keys", "query": "?exception=Key&page=3&span=", "shared": True})
    assert made.status_code == 201
    assert (made.json()["owner"], made.json()["query"]) == ("ann", "exception=Key")
    one = f"{REST}{made.json()['id']}/"

    assert ann.post(REST, {"name": "keys", "query": "server=a"}).status_code == 409
    assert ann.post(REST, {"name": "bad", "query": "span=9y"}).json()["error"] == "bad_filter"
    assert ann.post(REST, {"name": "nothing", "query": "page=2"}).json()["error"] == "empty"
    assert ann.post(REST, {"name": "misspelt", "query": "server=a", "share": True}).status_code == 400
    assert [each["name"] for each in bob.get(REST).json()["results"]] == ["keys"]
    assert bob.patch(one, {"name": "mine"}).status_code == 403
    assert bob.delete(one).status_code == 403
    assert ann.patch(one, {"shared": False, "query": "server=srv-2"}).json()["query"] == "server=srv-2"
    assert bob.get(one).status_code == 404 and bob.get(REST).json()["results"] == []
    assert ann.delete(one).status_code == 204
    assert not SavedView.objects.exists()


def test_rest_refuses_who_sees_no_protocols(groups: None) -> None:
    outsider = api_client(make_person("nobody"))
    assert outsider.get(REST).status_code == 403
    assert outsider.post(REST, {"name": "x", "query": "server=1"}).status_code == 403
    assert api_client().get(REST).status_code == 401
