"""The latest failures of a server are on its page, for who may see protocols."""

import pytest

from agents.models import Server
from failures.models import FailureProtocol
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.reports import person
from tests.web.retention_rows import protocols

pytestmark = pytest.mark.django_db


@pytest.fixture
def failed(world: World) -> Server:
    FailureProtocol.objects.all().delete()
    server = Server.objects.get(name="srv-1")
    for number in range(12):
        protocols(
            None, 1, number, server=server, exception_type=f"Odd{number}",
            exception_text=f"<b>text {number}</b>",
            setting_key=f"key-{number}",
        )  # fmt: skip
    protocols(
        None, 1, 0, server=Server.objects.get(name="srv-2"), server_name="srv-2", exception_type="Elsewhere"
    )
    return server


def test_the_newest_are_listed_with_their_setting_and_a_link_to_all(world: World, failed: Server) -> None:
    page = looked_at(signed_in(world, "viewer"), "/servers/srv-1/")

    assert "Latest failures" in page.text and "All failures on this server: 12" in page.text
    assert "Odd0" in page.text and "key-0" in page.text and "<b>text 0</b>" in page.text
    assert page.text.index("Odd0") < page.text.index("Odd1")
    assert "Odd11" not in page.text and "Elsewhere" not in page.text
    links = [a.get("href") for tag, a in page.found if tag == "a"]
    newest = FailureProtocol.objects.filter(exception_type="Odd0").get()
    assert f"/protocols/{newest.pk}/" in links and "/protocols/?server=srv-1" in links


def test_without_any_it_says_so(world: World) -> None:
    FailureProtocol.objects.all().delete()
    assert "No failures yet." in looked_at(signed_in(world, "viewer"), "/servers/srv-1/").text


def test_who_sees_no_protocols_sees_none_of_them(world: World, failed: Server) -> None:
    client = signed_in(world, "viewer")
    client.force_login(person("looker", "agents.view_server"))
    text = looked_at(client, "/servers/srv-1/").text
    assert "Latest failures" not in text and "Odd0" not in text
