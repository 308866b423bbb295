"""People look at protocols: filtered, page by page, with the permission."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.models import Run
from failures.intake.batch import accept_batch
from tests.web import reports
from tests.web.reports import AT, Spool

pytestmark = pytest.mark.django_db
URL = "/api/v1/protocols/"


@pytest.fixture
def run() -> Run:
    return reports.run(reports.setting(), reports.server())


@pytest.fixture
def stored(run: Run) -> list[str]:
    """Ids, oldest first."""
    of = reports.run_of(run)
    contents = [
        reports.protocol(of, reports.message(f"ID:{n}"), occurred_at=AT + timedelta(minutes=n))
        for n in range(3)
    ]
    contents.append(reports.protocol(of, temporary=True, occurred_at=AT + timedelta(minutes=2)))
    batch = Spool().batch(*contents)
    accept_batch(run.server, batch, AT)
    return [str(record.id) for record in batch.records]


@pytest.fixture
def viewer() -> User:
    return reports.person("viewer", "failures.view_failureprotocol")


def client(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(user)["Authorization"])
    return client


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


def test_the_newest_come_first_page_by_page(viewer: User, stored: list[str]) -> None:
    seen, url = [], f"{URL}?page_size=1"
    while url:
        answer = client(viewer).get(url)
        seen += ids(answer)
        url = answer.json()["next"]
    assert len(seen) == 4 and set(seen) == set(stored)
    assert seen[2:] == [stored[1], stored[0]]


def test_the_way_back_is_the_way_there(viewer: User, stored: list[str]) -> None:
    second = client(viewer).get(client(viewer).get(f"{URL}?page_size=1").json()["next"]).json()
    back = client(viewer).get(second["previous"]).json()

    assert (second["count"], second["more"], second["looked_back_to"]) == (4, False, None)
    assert back["results"] != second["results"] and back["previous"] is None


def test_a_search_that_ran_out_of_time_says_how_far_it_got(
    viewer: User, stored: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("failures.protocols.search.BUDGET", -1.0)
    monkeypatch.setattr("failures.protocols.search.WINDOW", 2)
    url, steps = f"{URL}?text=nowhere", 0
    while url:
        answer = client(viewer).get(url).json()
        assert answer["results"] == [] and (answer["looked_back_to"] is None) is (answer["next"] is None)
        url, steps = answer["next"], steps + 1

    assert steps == 3


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("setting=orders", [0, 1, 2, 3]),
        ("setting=other", []),
        ("server=srv-1&temporary=true", [3]),
        ("temporary=false&message_key=ID:1", [1]),
        ("since=2026-03-01T12:01:00Z&until=2026-03-01T12:02:00Z", [1]),
        ("exception_type=builtins.KeyError&fingerprint=v1:0123456789abcdef&outcome=raised", [0, 1, 2, 3]),
        ("activation=00000000-0000-0000-0000-000000000000", []),
        ("text=%27SUM&exception=key&counted=true", [0, 1, 2, 3]),
        ("text=nowhere", []),
        ("counted=false", []),
    ],
)
def test_filters_narrow_the_list(viewer: User, stored: list[str], query: str, found: list[int]) -> None:
    assert sorted(ids(client(viewer).get(f"{URL}?{query}"))) == sorted(stored[n] for n in found)


@pytest.mark.parametrize(
    "query", ["activation=x", "since=yesterday", "temporary=perhaps", "nonsense=1", "before=x", "page_size=0"]
)
def test_a_filter_that_means_nothing_is_400(viewer: User, query: str) -> None:
    answer = client(viewer).get(f"{URL}?{query}")
    assert answer.status_code == 400 and "__all__" not in answer.content.decode()


@pytest.mark.parametrize(
    "query", ["message_key=", "fingerprint=%20", "span=&setting=orders", "setting=a&setting=b"]
)
def test_what_a_script_left_empty_or_says_twice_finds_nothing_at_all(
    viewer: User, stored: list[str], query: str
) -> None:
    name = query.partition("=")[0]
    answer = client(viewer).get(f"{URL}?{query}")
    assert answer.status_code == 400 and name in answer.content.decode()
    exporter = reports.person("exporter", "failures.view_failureprotocol", "failures.can_export_protocols")
    assert client(exporter).get(f"{URL}export/?{query}").status_code == 400


def test_one_protocol_comes_whole(viewer: User, stored: list[str]) -> None:
    row = client(viewer).get(f"{URL}{stored[0]}/").json()
    assert row["traceback"].startswith("Traceback") and row["properties"] == {}
    assert (row["setting_key"], row["server_name"], row["attempt"]) == ("orders", "srv-1", 1)


def test_who_may_look(viewer: User, stored: list[str], run: Run) -> None:
    outsider = reports.person("outsider")
    assert client(viewer).get(URL).status_code == 200
    assert client(outsider).get(URL).status_code == 403
    assert client(outsider).get(f"{URL}{stored[0]}/").status_code == 403
    assert APIClient().get(URL).status_code == 401
    assert APIClient().get(URL, headers=reports.bearer_of_server(run.server)).status_code == 401
