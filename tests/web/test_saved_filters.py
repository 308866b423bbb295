"""Filters of lists under a name: whose they are, what they find for whom, what is refused, what the audit
keeps. The same holds for each list."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import LaunchSetting
from console.audit.models import AuditEntry
from console.models import SavedFilter
from console.operations.operation import perform
from console.operations.refusals import NotAllowed, Refused
from console.saved_filters.operations import ChangeFilter, DeleteFilter, SavedFilters, SaveFilter
from dlq.saved_filters import saved_filters as of_letters
from failures.saved_filters import saved_filters as of_protocols
from tests.web import letters
from tests.web.factories import World
from tests.web.pages import Elements, looked_at, signed_in
from tests.web.rows import api_client, make_person

pytestmark = pytest.mark.django_db
KEY = "orders-export"


@dataclass(frozen=True)
class Saving:
    """One list: where it is without a filter, and with one as it is and in another order, what is saved of
    that and how people read it."""

    filters: SavedFilters
    pages: str
    rest: str
    plain: str
    listed: str
    turned: str
    query: str
    words: str


LETTERS = Saving(
    of_letters,
    "/saved-filters/",
    "/api/v1/saved-filters/",
    "/letters/",
    f"/dead-letters/{KEY}/?exception=Key&state=every",
    f"/dead-letters/{KEY}/?state=every&exception=Key",
    f"exception=Key&state=every&setting={KEY}",
    "State any state",
)
PROTOCOLS = Saving(
    of_protocols,
    "/protocols/saved/",
    "/api/v1/protocols/saved/",
    "/protocols/",
    "/protocols/?exception=Key&span=7d",
    "/protocols/?span=7d&exception=Key",
    "exception=Key&span=7d",
    "Time last 7 days",
)
LISTS = (LETTERS, PROTOCOLS)


@pytest.fixture(params=LISTS, ids=lambda of: of.filters.word)
def of(request: pytest.FixtureRequest) -> Saving:
    saving: Saving = request.param
    return saving


@pytest.fixture
def ann(groups: None) -> User:
    return make_person("ann", "viewer")


@pytest.fixture
def bob(groups: None) -> User:
    return make_person("bob", "viewer")


def kept(of: Saving, name: str, query: str, by: Any, **more: Any) -> SavedFilter:
    saved = SavedFilter(list=of.filters.word, owner=by)
    made: SavedFilter = perform(SaveFilter, saved, by, name=name, query=query, **more).made
    return made


def audited() -> list[tuple[str, str, str]]:
    """What the audit has, oldest first."""
    entries = AuditEntry.objects.order_by("pk").select_related("by")
    return [(each.action, each.result, each.by_name) for each in entries]


def bar_of(page: Elements) -> list[str]:
    """Addresses of the saved ones that the list shows, the one that it is itself first of all."""
    tags = [a for tag, a in page.found if tag == "a" and a.get("class") == "tag"]
    return [a["href"] or "" for a in sorted(tags, key=lambda a: "aria-current" not in a)]


@pytest.mark.parametrize(
    ("of", "query", "saved"),
    [
        (
            LETTERS,
            "?exception=KeyError&state=dead&span=&before=77&page_size=3&prop=a%3Db&prop=c%3Dd",
            "exception=KeyError&prop=a%3Db&prop=c%3Dd",
        ),
        (PROTOCOLS, "?exception=KeyError&span=&before=7_x&shown=1&page_size=3", "exception=KeyError"),
    ],
    indirect=["of"],
    ids=["dead_letters", "protocols"],
)
def test_a_filter_is_saved_without_what_is_of_a_page(ann: User, of: Saving, query: str, saved: str) -> None:
    row = kept(of, "  my   faults ", query, ann)

    assert (row.list, row.name, row.query) == (of.filters.word, "my faults", saved)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.result, entry.by, entry.target) == (
        "saved_filter.save", "done", ann, f"filter:{row.pk}",
    )  # fmt: skip
    assert entry.detail == {"name": "my faults", "shared": False}, "what it looks for may be personal"


def test_own_ones_and_shared_ones_are_to_be_used_and_only_own_ones_changed(
    ann: User, bob: User, of: Saving
) -> None:
    own, shared = kept(of, "own", "server=srv-1", ann), kept(of, "shared", "server=srv-2", ann, shared=True)

    assert list(of.filters.usable(ann)) == [own, shared]
    assert list(of.filters.usable(bob)) == [shared]
    acts: list[tuple[Any, dict[str, Any]]] = [(ChangeFilter, {"name": "bob's"}), (DeleteFilter, {})]
    for operation, given in acts:
        with pytest.raises(NotAllowed, match="ann"):
            perform(operation, shared, bob, **given)
    assert list(of.filters.usable(bob)) == [shared]
    assert audited()[2:] == [
        ("saved_filter.change", "refused", "bob"),
        ("saved_filter.delete", "refused", "bob"),
    ]


def test_a_filter_is_of_its_list_alone(ann: User) -> None:
    one, other = kept(LETTERS, "keys", "exception=Key", ann), kept(PROTOCOLS, "keys", "exception=Key", ann)

    assert [list(each.filters.usable(ann)) for each in LISTS] == [[one], [other]]
    client = api_client(ann)
    assert client.get(f"{PROTOCOLS.rest}{one.pk}/").status_code == 404
    assert client.delete(f"{LETTERS.rest}{other.pk}/").status_code == 404
    assert client.get(f"{LETTERS.rest}{one.pk}/").json()["id"] == one.pk
    assert SavedFilter.objects.count() == 2


@pytest.mark.parametrize(
    ("name", "query", "code"),
    [
        (" ", "server=srv-1", "no_name"),
        ("x", "", "empty"),
        ("x", "before=7&page=2", "empty"),
        ("x", "span=9y", "bad_filter"),
        ("x", "nonsense=1", "bad_filter"),
        ("taken", "server=srv-1", "exists"),
    ],
)
def test_what_cannot_be_saved_says_why(ann: User, of: Saving, name: str, query: str, code: str) -> None:
    """What is only wrongly asked is no attempt that the audit keeps."""
    kept(of, "taken", "server=srv-9", ann)

    with pytest.raises(Refused) as refused:
        kept(of, name, query, ann)

    assert refused.value.code == code
    assert SavedFilter.objects.count() == 1
    attempts = [("saved_filter.save", "refused", "ann")] if code == "exists" else []
    assert audited()[1:] == attempts


@pytest.mark.parametrize("said", [{"name": "x" * 101}, {"query": "text=" + "s" * 5000}])
def test_what_is_too_long_is_saved_nowhere(world: World, of: Saving, said: dict[str, str]) -> None:
    said = {"name": "x", "query": "text=x"} | said
    page = signed_in(world, "viewer").post(f"{of.pages}save/", said, follow=True).content.decode()
    assert "at most" in page
    assert api_client(world.people["viewer"]).post(of.rest, said).status_code == 400
    assert not SavedFilter.objects.exists() and audited() == []


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("operation", "given"),
    [(SaveFilter, {"name": "b", "query": "server=a"}), (ChangeFilter, {"name": "b"}), (DeleteFilter, {})],
)
def test_what_cannot_be_recorded_is_not_done(
    ann: User, operation: Any, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = kept(LETTERS, "a", "server=a", ann)

    def dies(*_args: Any, **_about: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("console.operations.operation.audit.record", dies)
    obj = SavedFilter(list=saved.list, owner=ann) if operation is SaveFilter else saved
    with pytest.raises(OSError, match="full"):
        perform(operation, obj, ann, **given)
    assert list(SavedFilter.objects.values_list("pk", "name")) == [(saved.pk, "a")]


def test_what_was_deleted_meanwhile_is_not_saved_again(ann: User, of: Saving) -> None:
    saved = kept(of, "a", "server=a", ann)
    SavedFilter.objects.all().delete()

    acts: list[tuple[Any, dict[str, Any]]] = [(ChangeFilter, {"name": "b"}), (DeleteFilter, {})]
    for operation, given in acts:
        with pytest.raises(SavedFilter.DoesNotExist):
            perform(operation, saved, ann, **given)
    assert not SavedFilter.objects.exists()
    assert audited()[1:] == [
        ("saved_filter.change", "refused", "ann"),
        ("saved_filter.delete", "refused", "ann"),
    ]


def test_what_the_list_shows_anyway_is_no_filter(ann: User) -> None:
    with pytest.raises(Refused) as refused:
        kept(LETTERS, "x", "state=dead&page=2", ann)

    assert refused.value.code == "empty"


def test_nobody_saves_without_end(ann: User, of: Saving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.saved_filters.operations.MOST", 1)
    kept(of, "one", "server=srv-1", ann)

    with pytest.raises(Refused, match="reached the limit"):
        kept(of, "two", "server=srv-1", ann)
    other = next(each for each in LISTS if each is not of)
    assert kept(other, "two", "server=srv-1", ann).pk


def test_a_masked_value_is_not_told_to_others_by_a_shared_filter(setting: LaunchSetting) -> None:
    root = User.objects.create_superuser("root")
    LaunchSetting.objects.filter(pk=setting.pk).update(masked_properties=["card"])
    own = kept(LETTERS, "own", "prop=card%3D4111", root)

    with pytest.raises(Refused, match="masked"):
        kept(LETTERS, "shared", "prop=card%3D4111", root, shared=True)
    with pytest.raises(Refused, match="masked"):
        perform(ChangeFilter, own, root, shared=True)
    own.refresh_from_db()
    assert not own.shared


# -- pages ---------------------------------------------------------------------------------------------------


def test_a_filter_is_saved_from_a_list_used_renamed_and_deleted(world: World, of: Saving) -> None:
    client, operator = signed_in(world, "viewer"), signed_in(world, "operator")
    page = looked_at(client, f"{of.listed}&before=x")
    query = next(a["value"] for tag, a in page.found if tag == "input" and a.get("name") == "query")
    answer = client.post(f"{of.pages}save/", {"name": " all  keys ", "query": query, "next": of.listed})
    saved = SavedFilter.objects.get()

    assert answer.headers["Location"] == of.listed
    assert (saved.name, saved.query, saved.shared) == ("all keys", of.query, False)
    page = looked_at(client, of.turned)
    assert bar_of(page)[0] == of.listed and "Filter saved." in page.text
    text = looked_at(client, of.pages).text
    assert "all keys" in text and "Exception contains Key" in text and "yours only" in text
    assert of.words in text
    client.post(f"{of.pages}{saved.pk}/change/", {"name": "keys", "shared": "1"})
    assert "shared" in looked_at(client, of.pages).text
    assert "keys" in looked_at(operator, of.pages).text
    client.post(f"{of.pages}{saved.pk}/delete/")
    assert not SavedFilter.objects.exists()
    assert "No saved filters yet." in looked_at(client, of.pages).text
    assert audited() == [(f"saved_filter.{act}", "done", "viewer") for act in ("save", "change", "delete")]


def test_others_use_a_shared_one_and_do_not_change_it(world: World, of: Saving) -> None:
    owner, other = signed_in(world, "viewer"), signed_in(world, "operator")
    for name, shared in (("own", {}), ("shared", {"shared": "1"})):
        owner.post(f"{of.pages}save/", {"name": name, "query": f"text={name}"} | shared)
    own, shared_one = SavedFilter.objects.order_by("name")

    bar = bar_of(looked_at(other, of.plain))
    assert [url for url in bar if "text=" in url] == [f"{of.plain}?text=shared"]
    assert other.post(f"{of.pages}{shared_one.pk}/change/", {"name": "mine"}).status_code == 403
    assert other.post(f"{of.pages}{shared_one.pk}/delete/").status_code == 403
    assert other.post(f"{of.pages}{own.pk}/delete/").status_code == 404
    assert SavedFilter.objects.count() == 2
    refused = ("saved_filter.change", "saved_filter.delete", "saved_filter.delete")
    assert audited()[2:] == [(action, "refused", "operator") for action in refused]


def test_what_a_filter_of_letters_finds_is_listed(world: World) -> None:
    kept(LETTERS, "keys", LETTERS.query, world.people["viewer"])
    client = signed_in(world, "viewer")
    used = bar_of(looked_at(client, "/letters/"))[0]

    assert "in this list" in looked_at(client, used).text


def test_whoever_may_not_see_the_list_saves_nothing(world: World, of: Saving) -> None:
    client = signed_in(world, "outsider")

    assert client.get(of.pages).status_code == 403
    assert client.post(f"{of.pages}save/", {"name": "x", "query": "server=1"}).status_code == 403
    assert not SavedFilter.objects.exists()
    assert audited() == [("saved_filter.save", "refused", "outsider")]


def test_a_name_is_text(world: World, of: Saving) -> None:
    kept(of, "<script>alert(1)</script>\u202e", "server=%3Cb%3E", world.people["viewer"])
    client = signed_in(world, "viewer")

    for path in (of.pages, of.listed):
        html = client.get(path).content.decode()
        assert "alert(1)" in html and "<script>alert" not in html and "\u202e" not in html


def test_a_name_is_kept_whole_or_refused(world: World, of: Saving) -> None:
    client = signed_in(world, "viewer")
    client.post(f"{of.pages}save/", {"name": "x" * 100, "query": "text=x"})
    saved = SavedFilter.objects.get()
    page = client.post(f"{of.pages}{saved.pk}/change/", {"name": "y" * 500}, follow=True).content.decode()
    saved.refresh_from_db()

    assert saved.name == "x" * 100 and "at most 100 characters" in page


# -- REST ----------------------------------------------------------------------------------------------------


def test_rest_saves_lists_changes_and_deletes(ann: User, bob: User, of: Saving) -> None:
    client, other = api_client(ann), api_client(bob)
    made = client.post(of.rest, {"name": "keys", "query": "?exception=Key&page=3&span=", "shared": True})
    assert made.status_code == 201
    assert (made.json()["owner"], made.json()["query"]) == ("ann", "exception=Key")
    one = f"{of.rest}{made.json()['id']}/"

    assert client.post(of.rest, {"name": "keys", "query": "server=a"}).status_code == 409
    bad = client.post(of.rest, {"name": "bad", "query": "span=9y"})
    assert (bad.status_code, bad.json()["error"]) == (400, "bad_filter")
    assert client.post(of.rest, {"name": "nothing", "query": "page=2"}).json()["error"] == "empty"
    assert client.post(of.rest, {"name": "misspelt", "query": "server=a", "share": True}).status_code == 400
    assert [each["name"] for each in other.get(of.rest).json()["results"]] == ["keys"]
    assert other.patch(one, {"name": "mine"}).status_code == 403
    assert other.delete(one).status_code == 403
    changed = client.patch(one, {"shared": False, "query": "server=srv-2"}).json()
    assert (changed["shared"], changed["query"], changed["name"]) == (False, "server=srv-2", "keys")
    assert other.get(one).status_code == 404 and other.get(of.rest).json()["results"] == []
    assert client.delete(one).status_code == 204
    assert client.get(of.rest).json()["results"] == [] and not SavedFilter.objects.exists()
    assert audited() == [
        ("saved_filter.save", "done", "ann"),
        ("saved_filter.save", "refused", "ann"),
        ("saved_filter.change", "refused", "bob"),
        ("saved_filter.delete", "refused", "bob"),
        ("saved_filter.change", "done", "ann"),
        ("saved_filter.delete", "done", "ann"),
    ]


def test_rest_refuses_who_may_not_see_the_list(groups: None, of: Saving) -> None:
    outsider = api_client(make_person("nobody"))

    assert outsider.get(of.rest).status_code == 403
    assert outsider.post(of.rest, {"name": "x", "query": "server=1"}).status_code == 403
    assert outsider.patch(f"{of.rest}1/", {"name": "x"}).status_code == 403
    assert outsider.delete(f"{of.rest}1/").status_code == 403
    assert api_client().get(of.rest).status_code == 401
    acts = ("saved_filter.save", "saved_filter.change", "saved_filter.delete")
    assert audited() == [(action, "refused", "nobody") for action in acts]


def test_a_saved_filter_finds_for_each_what_they_may_see(ann: User) -> None:
    letters.dead("orders", 1)
    saved = kept(LETTERS, "all", "state=every", ann)

    assert api_client(ann).get(f"/api/v1/dead-letters/?{saved.query}").json()["count"] == 1
