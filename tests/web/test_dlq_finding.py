"""The one filter of dead letters: what it finds, for whom, and what it refuses."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.utils import timezone

from agents.models import Destination, LaunchSetting, Pool
from contract.typed import Typed
from dlq.models import DeadLetter, KnownFault, LetterState
from dlq.search.visibility import found, letters_for
from tests.web import letters, reports
from tests.web.reports import AT
from tests.web.rows import api_client, make_person, make_setting
from tests.web.teams import teammate

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


def numbers(query: str | QueryDict, user: User) -> list[int]:
    """The broker's ids of what is found, each letter's own here."""
    filters, rows = found(query, user)
    assert filters.problem == "", filters.problem
    return sorted(rows.values_list("orig_message_id", flat=True))


def letter(
    number: int,
    body: str = "{}",
    key: str = "orders",
    properties: dict[str, str] | None = None,
    **columns: Any,
) -> DeadLetter:
    typed = {name: Typed("string", value) for name, value in (properties or {}).items()}
    row = letters.dead(key, number, f"ID:{number}", body=Typed("string", body), properties=typed)
    if columns:
        DeadLetter.objects.filter(pk=row.pk).update(**columns)
    return row


def test_each_field_finds_its_letters_and_together_they_narrow(orders: LaunchSetting, root: User) -> None:
    cause: dict[str, Any] = {"exception_type": "shop.KeyError", "fingerprint": "f1", "server_name": "srv-1"}
    activation = "00000000-0000-0000-0000-000000000007"
    letter(1, **cause, activation_uuid=activation, delivery_count=3)
    letter(2, **cause, chapter=3)
    letter(3, exception_type="shop.ValueError", fingerprint="f2", server_name="srv-2", state=LetterState.GONE)
    letter(4, key="other")

    asked = {
        "": [1, 2, 4],
        "state=every": [1, 2, 3, 4],
        "setting=orders": [1, 2],
        "queue=DLQ.other": [4],
        "exception=key": [1, 2],
        "exception=nothing": [],
        "exception=error&state=every": [1, 2, 3],
        "exception_type=shop.KeyError": [1, 2],
        "fingerprint=f1": [1, 2],
        "server=srv-2&state=gone": [3],
        f"activation={activation}": [1],
        "delivered_from=1": [1],
        "delivered_to=0": [2, 4],
        "replays_from=1": [2],
        "replays_from=2&replays_to=2": [2],
        "replays_to=0&setting=orders": [1],
        f"since={AT.isoformat().replace('+', '%2B')}": [1, 2, 4],
        "since=2030-01-01": [],
        "until=2000-01-01T00:00": [],
        "message_key=ID:2": [2] if DeadLetter.objects.get(orig_message_id=2).message_key == "ID:2" else [],
        "exception=key&server=srv-1&replays_to=0": [1],
    }
    assert {query: numbers(query, root) for query in asked} == asked


def test_a_destination_is_the_queues_of_its_settings(setting: LaunchSetting, root: User) -> None:
    letter(1, key=setting.key)
    letter(2, key="other")
    name = setting.destination.name if setting.destination else ""
    Destination.objects.create(name="empty")

    assert numbers(f"destination={name}", root) == [1]
    assert numbers("destination=empty", root) == []
    assert numbers(f"destination={name}&setting=other", root) == []


def test_words_are_found_in_body_and_properties(orders: LaunchSetting, root: User) -> None:
    letter(1, '{"order": 70003, "customer": "Ann & Söhne"}', properties={"region": "north west"})
    letter(2, '{"order": 70004}', properties={"region": "north", "kind": "a=b"})
    letter(3, "привет МИР")

    asked = {
        "text=70003": [1],
        "text=ORDER": [1, 2],
        "text=order 70003": [1],
        "text=s%C3%96hne": [1],
        "text=7000*": [1, 2],
        "text=мир": [3],
        "text=north": [1, 2],
        "text=7000": [],
        "prop=region=north": [2],
        "prop=region=north west": [1],
        "prop=region=north&prop=kind=a%3Db": [2],
        "prop=region=North": [],
        "text=order&prop=region=north": [2],
    }
    assert {query: numbers(query, root) for query in asked} == asked


@pytest.mark.parametrize(
    "text",
    [
        '"',
        "a OR b",
        "NEAR(a b)",
        "a'b",
        "x\\y",
        "(((",
        "^abc",
        "a:b",
        "words:order",
        "-a",
        "order* AND NOT 7",
    ],
)
def test_nothing_that_people_write_is_a_language(orders: LaunchSetting, root: User, text: str) -> None:
    letter(1, "order")
    query = QueryDict(mutable=True)
    query["text"] = text

    filters, rows = found(query, root)

    assert list(rows) == []
    assert filters.is_valid() or filters.problem


@pytest.mark.parametrize(
    "query",
    [
        "state=no", "span=2y", "since=tomorrow", "delivered_from=-1", "delivered_from=x", "activation=7",
        "prop=region",
        "exeption=typo", "muted=perhaps", "text=%2A%2A", "text=ab%2A", "delivered_from=3&delivered_to=2",
        "since=2026-02-30",
        "until=0001-01-01&since=2026-01-01", "replays_from=99999999999",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_said_and_finds_nothing(
    orders: LaunchSetting, root: User, query: str
) -> None:
    letter(1)

    filters, rows = found(query, root)

    assert not filters.is_valid()
    assert filters.problem
    assert list(rows) == []


def test_muted_ones_can_be_left_out(orders: LaunchSetting, root: User) -> None:
    letter(1, fingerprint="known")
    letter(2, fingerprint="new")
    fault = KnownFault.objects.create(setting_key="orders", fingerprint="known", by_name="a")

    assert (numbers("muted=yes", root), numbers("muted=no", root)) == ([1], [2])
    KnownFault.objects.filter(pk=fault.pk).update(until=timezone.now())
    assert (numbers("muted=yes", root), numbers("muted=no", root)) == ([], [1, 2])


def test_who_may_see_one_pool_finds_its_letters_and_no_others(
    groups: None, setting: LaunchSetting, pool: Pool
) -> None:
    elsewhere = Pool.objects.create(name="elsewhere")
    hidden = make_setting(elsewhere, "hidden")
    letter(1, "word", key=setting.key)
    letter(2, "word", key=hidden.key)
    letter(3, "word", key="removed")
    mate = teammate(pool, rights=("see_letters",))
    mate.groups.remove(*mate.groups.filter(name="viewer"))
    mate = User.objects.get(pk=mate.pk)
    stranger = User.objects.create_user("stranger", is_staff=True)

    assert [row.orig_message_id for row in letters_for(mate)] == [1]
    for query in ("", "text=word", f"queue=DLQ.{setting.key}", "state=every"):
        assert numbers(query, mate) == [1], query
    assert numbers("setting=hidden", mate) == []
    assert list(letters_for(stranger)) == []


# -- REST ----------------------------------------------------------------------------------------------------

LETTERS = "/api/v1/dead-letters/"


def test_rest_takes_the_same_filter_and_says_what_is_wrong_with_it(orders: LaunchSetting, root: User) -> None:
    letter(1, "pear", exception_type="shop.KeyError", properties={"region": "north"})
    letter(2, "apple pear", exception_type="shop.KeyError", properties={"region": "north"}, chapter=2)
    letter(3, "apple", exception_type="shop.ValueError")
    client = api_client(root)

    def numbers_of(query: str) -> list[int]:
        answer = client.get(f"{LETTERS}?{query}")
        assert answer.status_code == 200, answer.json()
        return [row["orig_message_id"] for row in answer.json()["results"]]

    assert numbers_of("text=pear") == [2, 1]
    assert numbers_of("text=pear&exception=key&replays_from=1") == [2]
    assert numbers_of("prop=region%3Dnorth&text=apple") == [2]
    assert numbers_of("exception=value") == [3]
    for wrong in ("span=9y", "nonsense=1", "before=x", "page_size=501", "text=%2A"):
        assert client.get(f"{LETTERS}?{wrong}").status_code == 400, wrong


def test_rest_pages_go_on_where_the_last_one_stopped(orders: LaunchSetting, root: User) -> None:
    for number in range(5):
        letter(number, "pear")
    client, seen, url = api_client(root), [], f"{LETTERS}?page_size=2&text=pear"
    while url:
        answer = client.get(url).json()
        assert answer["count"] == 5 and not answer["more"]
        seen += [row["orig_message_id"] for row in answer["results"]]
        url = answer["next"]

    assert seen == [4, 3, 2, 1, 0]


def test_rest_shows_a_teammate_the_letters_of_the_pool_only(
    groups: None, setting: LaunchSetting, pool: Pool
) -> None:
    hidden = make_setting(Pool.objects.create(name="elsewhere"), "hidden")
    mine, others = letter(1, key=setting.key), letter(2, key=hidden.key)
    mate = teammate(pool, rights=("see_letters",))
    mate.groups.remove(*mate.groups.filter(name="viewer"))
    client = api_client(User.objects.get(pk=mate.pk))

    assert [row["id"] for row in client.get(LETTERS).json()["results"]] == [mine.pk]
    assert client.get(f"{LETTERS}?setting=hidden").json() == {
        "next": None, "count": 0, "more": False, "about": None, "results": [],
    }  # fmt: skip
    assert client.get(f"{LETTERS}{mine.pk}/").status_code == 200
    assert client.get(f"{LETTERS}{others.pk}/").status_code == 404
    assert api_client(make_person("nobody")).get(LETTERS).status_code == 403


def test_rest_tells_of_the_case_only_what_is_of_settings_of_the_pool(
    groups: None, setting: LaunchSetting, pool: Pool
) -> None:
    """A letter may say that it is of another setting than its queue's."""
    make_setting(Pool.objects.create(name="elsewhere"), "hidden")
    other, row = letters.dead("hidden", 10, "ID:1"), letters.dead("hidden", 11, "ID:1")
    DeadLetter.objects.filter(pk=row.pk).update(queue=f"DLQ.{setting.key}")
    mate = teammate(pool, rights=("see_letters",))
    mate.groups.remove(*mate.groups.filter(name="viewer"))
    client = api_client(User.objects.get(pk=mate.pk))
    assert client.get(f"{LETTERS}{other.pk}/").status_code == 404
    chapters = client.get(f"{LETTERS}{row.pk}/").json()["case"]["chapters"]
    assert [chapter["id"] for chapter in chapters] == [row.pk]


def test_letters_of_which_nothing_is_known_are_found(orders: LaunchSetting, root: User) -> None:
    letter(1, fingerprint="f1", exception_type="shop.KeyError", server_name="srv-1")
    letter(2, fingerprint="f1", activation_uuid="00000000-0000-0000-0000-000000000007")

    asked = {
        "without=fingerprint": [],
        "without=exception_type": [2],
        "without=server": [2],
        "without=activation": [1],
    }
    assert {query: numbers(query, root) for query in asked} == asked
