"""The navigation holds every entry that a person may see, in groups, and marks where they are."""

import re

import pytest
from django.test import Client

from tests.web.factories import World
from tests.web.pages import Elements, looked_at, signed_in

GROUPS = {
    "Dead letters": ["/dead-letters/", "/letters/", "/replays/", "/dead-letters/bin/"],
    "Failures": ["/fingerprints/", "/protocols/", "/trips/"],
    "Settings": ["/settings/", "/groups/", "/destinations/", "/activations/", "/freezes/"],
    "Insights": ["/timeline/", "/insights/"],
    "System": ["/health/", "/retention/", "/audit/", "/api/v1/docs/", "/records/"],
}


def navigation(client: Client, path: str = "/") -> str:
    html = client.get(path).content.decode()
    found = re.search(r'<nav class="console-nav".*?</nav>', html, re.DOTALL)
    assert found
    return found.group()


def test_it_has_every_group_with_its_entries_in_order(world: World) -> None:
    html = navigation(signed_in(world, "chief"))

    menus = re.findall(r"<details.*?<summary[^>]*>(.*?)</summary>(.*?)</details>", html, re.DOTALL)
    assert {label: re.findall(r'href="([^"]+)"', inside) for label, inside in menus} == GROUPS
    alone = re.sub(r"<details.*?</details>", "", html, flags=re.DOTALL)
    assert re.findall(r'href="([^"]+)"', alone) == ["/", "/alerts/", "/servers/"]


@pytest.mark.parametrize(
    "path", ["/letters/", "/dead-letters/bin/", "/retention/", "/destinations/", "/groups/"]
)
def test_the_entry_of_a_page_and_its_group_are_marked(world: World, path: str) -> None:
    html = navigation(signed_in(world, "chief"), path)

    assert re.findall(r'<a href="([^"]+)"(?: data-go="\w")? aria-current="page"', html) == [path]
    label = next(name for name, inside in GROUPS.items() if path in inside)
    assert re.findall(r'<summary aria-current="true">(.*?)</summary>', html) == [label]


def test_what_a_person_may_not_see_is_left_out(world: World) -> None:
    """Of a group with one entry left only that entry stands there."""
    links = Elements(navigation(signed_in(world, "outsider"))).links()

    assert links == ["/", "/api/v1/docs/", "/records/"]


def test_the_glossary_explains_the_terms_in_both_languages(world: World) -> None:
    client = signed_in(world, "viewer")
    assert "Moves dead letters back to the subscription" in looked_at(client, "/glossary/").text

    client.cookies["django_language"] = "ru"
    assert "Перемещает недоставленные сообщения обратно в подписку" in looked_at(client, "/glossary/").text
