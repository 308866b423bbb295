"""Kinds of failures over REST: as the pages have them, with the same rights and refusals."""

from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from failures.error_groups import merges
from failures.models import Fingerprint, KnownError
from tests.web import reports
from tests.web.factories import World

pytestmark = pytest.mark.django_db
URL = "/api/v1/fingerprints/"


def client(world: World, name: str) -> APIClient:
    made = APIClient()
    made.credentials(HTTP_AUTHORIZATION=reports.bearer_of(world.people[name])["Authorization"])
    return made


def one(world: World) -> Fingerprint:
    return Fingerprint.objects.order_by("-count")[0]


def listed(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["fingerprint"] for row in answer.json()["results"]]


def test_the_most_recent_come_first_page_by_page(world: World) -> None:
    seen, url = [], f"{URL}?page_size=3"
    while url:
        answer = client(world, "viewer").get(url)
        seen += listed(answer)
        url = answer.json()["next"]

    assert seen == [row.pk for row in Fingerprint.objects.order_by("-recent_at", "-fingerprint")]


def test_the_list_is_narrowed_and_refuses_what_it_does_not_know(world: World) -> None:
    reader = client(world, "viewer")

    assert listed(reader.get(f"{URL}?exception=keyerror")) == [one(world).pk]
    assert listed(reader.get(f"{URL}?setting=nobody")) == []
    assert one(world).pk in listed(reader.get(f"{URL}?setting=orders-export"))
    for query in ("?colour=red", "?merged=perhaps"):
        assert reader.get(URL + query).status_code == 400


def test_one_has_its_trend_its_book_and_its_history(world: World) -> None:
    row, writer = one(world), client(world, "operator")
    said = {"cause": "the currency", "ticket": "OPS-1", "advice": "give_back"}
    answer = writer.post(f"{URL}{row.pk}/known/", said, format="json")

    assert answer.status_code == 200 and answer.json()["known"]["by"] == "operator"
    whole = client(world, "viewer").get(f"{URL}{row.pk}/").json()
    assert sum(whole["hours"]) == row.count == whole["count"] and len(whole["hours"]) == 168
    assert whole["known"] | said == whole["known"] and [each["what"] for each in whole["history"]] == [
        "wrote"
    ]
    assert (
        writer.post(f"{URL}{row.pk}/fixed/", {"version": "2"}, format="json").json()["known"]["fixed_in"]
        == "2"
    )
    assert writer.post(f"{URL}{row.pk}/not-fixed/").json()["known"]["fixed_at"] is None


def test_an_entry_of_which_nothing_is_left_is_none(world: World) -> None:
    row, writer = one(world), client(world, "operator")
    writer.post(f"{URL}{row.pk}/fixed/")
    writer.post(f"{URL}{row.pk}/not-fixed/")
    assert writer.get(f"{URL}{row.pk}/").json()["known"] is None
    writer.post(f"{URL}{row.pk}/known/", {"ticket": "OPS-1"}, format="json")
    writer.post(f"{URL}{row.pk}/known/", {}, format="json")
    whole = writer.get(f"{URL}{row.pk}/").json()
    assert whole["known"] is None and len(whole["history"]) == 4
    writer.post(f"{URL}{row.pk}/known/", {"ticket": "OPS-2"}, format="json")
    assert writer.get(f"{URL}{row.pk}/").json()["known"]["ticket"] == "OPS-2"


def test_merged_and_split(world: World) -> None:
    row, writer = one(world), client(world, "operator")
    other = Fingerprint.objects.order_by("-count")[1].pk

    assert writer.post(f"{URL}{row.pk}/merge/", {"other": other}, format="json").json()["merged"] == [other]
    assert other not in listed(writer.get(URL)) and other in listed(writer.get(f"{URL}?merged=true"))
    third = Fingerprint.objects.order_by("-count")[2].pk
    assert writer.post(f"{URL}{third}/split/", {"other": other}, format="json").status_code == 409
    assert writer.post(f"{URL}{row.pk}/split/", {"other": other}, format="json").json()["merged"] == []


def test_one_is_found_by_the_settings_of_those_merged_into_it(world: World) -> None:
    reader = client(world, "viewer")
    in_setting = set(listed(reader.get(f"{URL}?setting=orders-export")))
    elsewhere = next(pk for pk in listed(reader.get(URL)) if pk not in in_setting)
    merges.merge(one(world).pk, elsewhere, by=world.people["operator"], now=timezone.now())

    assert set(listed(reader.get(f"{URL}?setting=orders-export"))) == in_setting - {one(world).pk} | {
        elsewhere
    }


def test_refusals_say_why(world: World) -> None:
    row, writer = one(world), client(world, "operator")
    refused = writer.post(f"{URL}{row.pk}/merge/", {"other": row.pk}, format="json")

    assert (
        refused.status_code == 409
        and refused.json()["detail"]
        == "Cannot merge a group with itself. Enter the fingerprint of another group."
    )
    assert writer.post(f"{URL}{row.pk}/known/", {"runbook_url": "ftp://x"}, format="json").status_code == 409
    assert writer.post(f"{URL}{row.pk}/known/", {"advice": "explode"}, format="json").status_code == 400
    assert writer.post(f"{URL}nobody/fixed/").status_code == 404
    # A misspelt name would blank what is written.
    assert writer.post(f"{URL}{row.pk}/known/", {"tickets": "OPS-2"}, format="json").status_code == 400
    assert writer.post(f"{URL}{row.pk}/not-fixed/", {"version": "2"}, format="json").status_code == 400
    assert not KnownError.objects.exists()


def test_rights_are_those_of_the_pages(world: World) -> None:
    row = one(world)
    for name in ("known", "fixed", "not-fixed", "merge", "split"):
        assert (
            client(world, "viewer").post(f"{URL}{row.pk}/{name}/", {"other": "x"}, format="json").status_code
            == 403
        )
    assert client(world, "outsider").get(URL).status_code == 403
    assert not KnownError.objects.exists()
