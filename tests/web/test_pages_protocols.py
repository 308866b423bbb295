"""A protocol is read from the top: what, where in the user's own code, of which message."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from failures.models import FailureProtocol
from failures.pages.protocol import FrameKind, sections
from tests.web.factories import TRACEBACK, World, make_letter
from tests.web.pages import Elements, looked_at, signed_in


def test_the_users_frame_stands_out_and_library_frames_are_folded(world: World) -> None:
    page = looked_at(signed_in(world, "viewer"), f"/protocols/{world.protocols[0].pk}/")

    assert ("div", {"class": "own"}) in page.found
    assert "1 library frame" in page.text and "export.py:row_of" in page.text
    assert page.text.index("KeyError") < page.text.index("Traceback (most recent call last)")


def test_a_traceback_is_taken_apart() -> None:
    found = sections(TRACEBACK.format(kind="KeyError", text="'x'", key="x"))

    assert [section.part for section in found] == [
        FrameKind.TEXT,
        FrameKind.LIBRARY,
        FrameKind.OWN,
        FrameKind.TEXT,
    ]
    assert [frame.line for frame in found[2].frames] == [48, 71]
    assert found[2].raised and found[2].frames[1].code.startswith('return {"total"')


def test_chained_failures_highlight_the_last_of_the_users_frames() -> None:
    one = TRACEBACK.format(kind="KeyError", text="'x'", key="x")
    found = sections(f"{one}\nDuring handling of the above exception, another exception occurred:\n\n{one}")

    assert [section.raised for section in found if section.part is FrameKind.OWN] == [False, True]


def test_what_is_no_traceback_is_text() -> None:
    for text in ("", "Segmentation fault", '  File "x", line 99999999999999999999, in y', 'File "'):
        assert sections(text) is not None


def test_a_process_that_died_has_no_traceback_and_says_so(world: World) -> None:
    died = FailureProtocol.objects.filter(outcome="child_died").first()
    assert died

    assert (
        "No traceback: the agent process ended before it could report one. The text above gives the cause."
        in looked_at(signed_in(world, "viewer"), f"/protocols/{died.pk}/").text
    )


def test_the_list_filters_and_counts_what_it_shows(world: World) -> None:
    client = signed_in(world, "viewer")
    activation = world.activations["orders-export"].pk

    assert "69 total" in looked_at(client, "/protocols/?setting=orders-export").text
    assert "50 total" in looked_at(client, f"/protocols/?activation={activation}&temporary=false").text
    assert "46 total" in looked_at(client, f"/protocols/?fingerprint={world.protocols[0].fingerprint}").text
    assert "No results." in looked_at(client, "/protocols/?setting=stock-sync").text


def test_the_list_goes_on_where_it_ended(world: World) -> None:
    client = signed_in(world, "viewer")
    seen: list[str] = []
    path = "/protocols/"
    while path:
        page = looked_at(client, path)
        seen += dict.fromkeys(
            link.split("/")[2] for link in page.links() if len(link) == len("/protocols//") + 36
        )
        older = [a["href"] for tag, a in page.found if tag == "a" and a.get("rel") == "next"]
        path = f"/protocols/{older[0]}" if older else ""

    assert len(seen) == len(set(seen)) == FailureProtocol.objects.count()


def test_a_case_file_tells_everything_in_the_order_of_time(world: World) -> None:
    text = looked_at(signed_in(world, "viewer"), "/cases/?key=ID:orders-export-0&setting=orders-export").text

    assert "12 failures, dead-lettered 1 time, replayed 1 time" in text
    assert text.index("Dead-lettered to DLQ.orders-export") < text.index("Replayed to orders-export")
    assert text.index("Replayed to orders-export") < text.index("Processed successfully after the replay")


def test_a_case_file_of_nothing_is_empty(world: World) -> None:
    client = signed_in(world, "viewer")
    for query in ("", "?key=nothing", "?key=%F0%9F%98%80&setting=x"):
        assert "No other events for this message." in looked_at(client, f"/cases/{query}").text


def test_the_brokers_own_count_is_no_property_of_the_message(world: World) -> None:
    protocol = world.protocols[0]
    FailureProtocol.objects.filter(pk=protocol.pk).update(
        properties={"JMSXDeliveryCount": None, "region": "north"}
    )
    letter = make_letter(world, "mail-send", "x")
    letter.properties = [*letter.properties, {"name": "JMSXDeliveryCount", "type": "null", "value": None}]
    letter.content.save(update_fields=["properties"])
    client = signed_in(world, "viewer")
    for path in (f"/protocols/{protocol.pk}/", f"/letters/{letter.pk}/"):
        text = looked_at(client, path).text
        assert "region" in text and "JMSXDeliveryCount" not in text


def test_protocols_of_one_message_are_found_by_its_key(world: World) -> None:
    client = signed_in(world, "viewer")
    fields = [
        attributes.get("name") for tag, attributes in looked_at(client, "/protocols/").found if tag == "input"
    ]
    wanted = FailureProtocol.objects.filter(message_key="ID:mail-send-0").count()

    assert "message_key" in fields
    assert f"{wanted} total" in looked_at(client, "/protocols/?message_key=ID:mail-send-0").text


def test_the_list_goes_back_to_what_is_newer(world: World) -> None:
    client = signed_in(world, "viewer")
    first = looked_at(client, "/protocols/")
    older = next(a["href"] for tag, a in first.found if tag == "a" and a.get("rel") == "next")
    second = looked_at(client, f"/protocols/{older}")
    newer = next(a["href"] for tag, a in second.found if tag == "a" and a.get("rel") == "prev")

    assert not [a for tag, a in first.found if a.get("rel") == "prev"]
    assert _listed(looked_at(client, f"/protocols/{newer}")) == _listed(first) != _listed(second)


def _listed(page: Elements) -> list[str]:
    return list(dict.fromkeys(link for link in page.links() if len(link) == len("/protocols//") + 36))


def test_a_list_is_headed_by_what_it_is_of(world: World) -> None:
    client, protocol = signed_in(world, "viewer"), world.protocols[0]
    for query, heading in (
        ("", "Failures"),
        ("temporary=true", "Failures"),
        (f"server={protocol.server_name}", f"Failures on server {protocol.server_name}"),
        (
            f"server={protocol.server_name}&setting={protocol.setting_key}",
            "Failures of setting orders-export",
        ),
        (f"activation={protocol.activation_uuid}", "Failures in activation"),
        (f"fingerprint={protocol.fingerprint}", protocol.exception_type),
        ("fingerprint=v1:nothing", "Failures with fingerprint v1:nothing"),
        ("message_key=%E2%80%AEx", "Failures of message"),
    ):
        page = looked_at(client, f"/protocols/?{query}")
        assert heading in page.text and "\u202e" not in page.text, query


def test_a_filter_that_is_not_understood_finds_nothing(world: World) -> None:
    client = signed_in(world, "viewer")
    for query in ("nonsense=1", "since=never", "activation=7"):
        page = looked_at(client, f"/protocols/?{query}")
        assert "The search did not run." in page.text and not _listed(page), query


def test_fields_of_the_filter_are_named_in_russian(world: World) -> None:
    page = looked_at(signed_in(world, "viewer", headers={"accept-language": "ru"}), "/protocols/?since=never")

    assert "Временные" in page.text and "Временных" not in page.text
    assert "Начиная с: " in page.text


def test_a_list_that_ran_out_of_time_says_so_and_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("failures.protocols.search.BUDGET", -1.0)
    monkeypatch.setattr("failures.protocols.search.WINDOW", 20)
    page = looked_at(signed_in(world, "viewer"), "/protocols/?text=nowhere")

    assert (
        "; the next page continues from there. To search faster, filter by setting, server or time."
        in page.text
        and "No results so far." in page.text
    )
    assert [a for tag, a in page.found if a.get("rel") == "next"]


# -- what came since -----------------------------------------------------------------------------------------


def _news(page: Elements) -> str:
    return next(a["data-news"] or "" for tag, a in page.found if tag == "a" and "data-news" in a)


def _again(protocol: FailureProtocol, **fields: object) -> FailureProtocol:
    """Another one, later than everything."""
    protocol.pk, protocol.number = uuid4(), 10_000 + uuid4().int % 10**9
    protocol.occurred_at = protocol.received_at = timezone.now()
    for name, value in fields.items():
        setattr(protocol, name, value)
    protocol.save(force_insert=True)
    return protocol


def test_what_came_is_told_and_only_when_something_came(world: World) -> None:
    client = signed_in(world, "viewer")
    url = _news(looked_at(client, "/protocols/?setting=orders-export"))
    first = client.get(url)
    assert (first.status_code, first.content) == (200, b"")
    assert client.get(url, headers={"If-None-Match": first["ETag"]}).status_code == 304

    own = world.protocols[0]
    other = FailureProtocol.objects.exclude(setting_key="orders-export").first()
    assert other and own.setting_key == "orders-export"
    _again(other)
    assert client.get(url, headers={"If-None-Match": first["ETag"]}).status_code == 304, "of another setting"
    _again(own)
    told = client.get(url, headers={"If-None-Match": first["ETag"]})
    assert (told.status_code, told.content.decode()) == (200, "1 new · show")
    assert client.get(url, headers={"If-None-Match": told["ETag"]}).status_code == 304


def test_an_empty_list_tells_of_the_first_one(world: World) -> None:
    client, protocol = signed_in(world, "viewer"), world.protocols[0]
    url = _news(looked_at(client, "/protocols/?fingerprint=v1:new"))
    assert client.get(url).content == b""
    _again(protocol, fingerprint="v1:new")
    assert client.get(url).content.decode() == "1 new · show"


@pytest.mark.parametrize("ahead_by", [timedelta(minutes=20), None])
@pytest.mark.parametrize("size", [50, 1])
def test_a_clock_that_is_ahead_hides_nothing_new(
    world: World, monkeypatch: pytest.MonkeyPatch, ahead_by: timedelta | None, size: int
) -> None:
    occurred_at = timezone.now() + ahead_by if ahead_by else datetime(9999, 12, 31, tzinfo=UTC)
    monkeypatch.setattr("failures.pages.protocols.PAGE", size)
    client, protocol = signed_in(world, "viewer"), world.protocols[0]
    ahead = _again(protocol, occurred_at=occurred_at, clock_skew_seconds=0.0)
    page = looked_at(client, "/protocols/")
    url = _news(page)

    assert _listed(page)[0] == f"/protocols/{ahead.pk}/" and "clock ahead" in page.text
    assert client.get(url).content == b"", "it is shown already"
    _again(protocol)
    assert client.get(url).content.decode() == "1 new · show"
    _again(protocol, occurred_at=occurred_at)
    assert client.get(url).content.decode() == "2 new · show"


def test_an_older_page_does_not_ask_for_news(world: World) -> None:
    client = signed_in(world, "viewer")
    older = next(a["href"] for tag, a in looked_at(client, "/protocols/").found if a.get("rel") == "next")
    assert not [a for tag, a in looked_at(client, f"/protocols/{older}").found if "data-news" in a]


def test_news_are_counted_up_to_a_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failures.pages.protocols.MOST_NEW", 3)
    assert signed_in(world, "viewer").get("/protocols/news/").content.decode() == "3+ new · show"


def test_news_are_for_who_may_see_protocols(world: World) -> None:
    assert signed_in(world, "outsider").get("/protocols/news/").status_code == 403
