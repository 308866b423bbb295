"""One search box finds what a text names or occurs in, and never more than the person may see."""

import pytest
from django.contrib.auth.models import Permission

from dlq.search.word_index import catch_up
from tests.web.factories import World, make_letter
from tests.web.pages import looked_at, signed_in


def goes_to(world: World, text: str, name: str = "viewer") -> str:
    answer = signed_in(world, name).get("/search/", {"q": text})
    return answer.headers.get("Location", "")


def hits(world: World, text: str, name: str = "viewer") -> list[str]:
    page = looked_at(signed_in(world, name), f"/search/?q={text}")
    menu = {"/", "/search/"}
    return [url for url in page.links() if url not in menu]


def test_a_name_or_an_id_leads_straight_to_its_page(world: World) -> None:
    activation, protocol = world.activations["orders-export"], world.protocols[0]
    assert world.job

    assert goes_to(world, "orders-export") == "/settings/orders-export/"
    assert goes_to(world, "srv-1") == "/servers/srv-1/"
    assert goes_to(world, str(activation.pk)) == f"/activations/{activation.pk}/"
    assert goes_to(world, str(world.job.pk)) == f"/replays/{world.job.pk}/"
    assert goes_to(world, str(activation.pk)[:13]) == f"/activations/{activation.pk}/"
    assert goes_to(world, str(protocol.pk)) == f"/protocols/{protocol.pk}/"


def test_a_part_of_a_name_lists_what_has_it(world: World) -> None:
    found = hits(world, "orders")

    assert "/settings/orders-export/" in found


def test_a_message_is_found_by_number_key_word_and_property(world: World) -> None:
    letter = make_letter(world, "orders-export", "order of Zwetschge-77")
    catch_up(10)
    url = f"/letters/{letter.pk}/"

    assert url in hits(world, str(letter.pk))
    assert url in hits(world, letter.message_key)
    assert url in hits(world, "Zwetschge")
    assert url in hits(world, "region%3Dnorth")


def test_a_failure_is_found_by_its_message_key_and_its_text(world: World) -> None:
    failed = next(each for each in world.protocols if each.exception_type == "KeyError")

    assert f"/protocols/{failed.pk}/" in hits(world, failed.message_key)
    assert any(url.startswith("/protocols/") for url in hits(world, failed.exception_text[:20]))


@pytest.mark.parametrize("text", ["orders-export", "srv-1", "KeyError", "Zwetschge"])
def test_who_may_see_nothing_finds_nothing(world: World, text: str) -> None:
    make_letter(world, "orders-export", "order of Zwetschge-77")
    catch_up(10)
    assert not world.people["outsider"].has_perm("agents.view_launchsetting")

    page = looked_at(signed_in(world, "outsider"), f"/search/?q={text}")

    assert "No results." in page.text
    shut = ("/settings/", "/servers/", "/letters/", "/protocols/")
    assert not [url for url in page.links() if url.startswith(shut)]


def test_who_may_see_servers_alone_finds_only_servers(world: World) -> None:
    person = world.people["outsider"]
    person.user_permissions.add(Permission.objects.get(codename="view_server"))

    assert goes_to(world, "srv-1", "outsider") == "/servers/srv-1/"
    assert goes_to(world, "orders-export", "outsider") == ""


def test_an_empty_or_hostile_text_finds_nothing_and_breaks_nothing(world: World) -> None:
    for text in ("", "%25", "'", "a" * 5000, "%3Cscript%3Ealert(1)%3C/script%3E", "%3D", "order%3D"):
        page = looked_at(signed_in(world, "chief"), f"/search/?q={text}")
        assert page.inline_scripts == 0
    assert signed_in(world, "chief").get("/search/?q=%00").status_code == 400
