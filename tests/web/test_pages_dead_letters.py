"""Dead letters on pages: counts of the broker and of the index, one letter whole, giving back after a
question."""

import re

import pytest

from broker.amqp.codec import encode
from broker.port import BodyKind, Message
from console.lists import keyset
from contract.names import BYTES_IN_STREAM, NOT_CONVERTIBLE
from contract.typed import Typed
from dlq.dead_letters.rules.body import BodyFormat, body_of, pretty, render_body
from dlq.models import DeadLetter, ItemState, LetterState, ReplayItem, ReplayJob, Scope
from tests.web.factories import World, make_letter
from tests.web.pages import Elements, broker_answers, broker_figures, looked_at, signed_in

KEY = "orders-export"


def dead(world: World) -> list[DeadLetter]:
    return list(DeadLetter.objects.filter(setting_key=KEY, state=LetterState.DEAD).order_by("pk"))


def test_the_overview_shows_the_brokers_count_and_where_the_index_differs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_answers(monkeypatch, broker_figures(dead=1102))
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 1)
    text = looked_at(signed_in(world, "viewer"), "/dead-letters/").text

    assert re.search(r"1,102 index: 4", text)
    assert "KeyError 100 %" in text
    assert "DLQ.unknown unassigned dead letters 1 · oldest 3 h ago" in text


def test_without_the_broker_the_index_counts_and_says_so(world: World) -> None:
    text = looked_at(signed_in(world, "viewer"), "/dead-letters/").text

    assert "The broker is not responding: the counts below" in text and "? index: 4 " in text


def test_the_list_goes_on_by_key_and_never_counts_a_whole_table(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlq.pages.dead_letters.dead_letter_list.PAGE", 8)
    monkeypatch.setattr(keyset, "COUNTED", 10)
    monkeypatch.setattr("dlq.pages.dead_letters.dead_letter_list.page_of.__defaults__", (8,))
    client, path, seen = signed_in(world, "viewer"), f"/dead-letters/{KEY}/?state=every", []
    while path:
        page = looked_at(client, path)
        seen += [int(link.split("/")[2]) for link in page.links() if re.fullmatch(r"/letters/\d+/", link)][
            ::2
        ]
        assert "10+ in this list" in page.text
        older = [
            attributes["href"]
            for tag, attributes in page.found
            if tag == "a" and attributes.get("rel") == "next"
        ]
        path = f"/dead-letters/{KEY}/{older[0]}" if older else ""

    assert seen == sorted((letter.pk for letter in DeadLetter.objects.filter(setting_key=KEY)), reverse=True)


@pytest.mark.parametrize(
    "query", ["before=x", "before=²", "before=99999999999999999999", "span=9y", "state=no", "page=2"]
)
def test_nonsense_in_the_address_of_a_list_is_no_error(world: World, query: str) -> None:
    client = signed_in(world, "viewer")
    for path in (f"/dead-letters/{KEY}/", "/protocols/", "/replays/", f"/replays/{world.job.pk}/"):  # type: ignore[union-attr]
        assert client.get(f"{path}?{query}").status_code == 200, path


def test_filters_find_by_body_exception_and_state(world: World) -> None:
    client = signed_in(world, "viewer")

    assert "1 in this list" in looked_at(client, f"/dead-letters/{KEY}/?state=every&text=70003").text
    assert "No results." in looked_at(client, f"/dead-letters/{KEY}/?exception=Nothing").text
    given = DeadLetter.objects.filter(setting_key=KEY, state=LetterState.GIVEN_BACK).count()
    assert f"{given} in this list" in looked_at(client, f"/dead-letters/{KEY}/?state=given_back").text


def test_a_letter_is_shown_whole_with_types_and_its_case_file(world: World) -> None:
    page = looked_at(signed_in(world, "viewer"), f"/letters/{world.letters[0].pk}/")

    assert '"order": 70000' in page.text and "TextMessage" in page.text
    assert "traced uuid 0b5c1a52-8d5c-4bb8-9a40-3b1f3c0e1d11" in page.text
    for words in ("Failed on attempt 1: KeyError", "Dead-lettered to DLQ.orders-export",
                  "Replayed to orders-export",
                  "Processed successfully after the replay"):  # fmt: skip
        assert words in page.text


def test_every_way_to_look_at_a_body_is_an_address_of_its_own(world: World) -> None:
    client = signed_in(world, "viewer")
    url = f"/letters/{world.letters[0].pk}/"

    assert "7b 22 6f 72 64 65 72" in looked_at(client, f"{url}?body=hex").text
    assert '{"order": 70000, "customer": "Ann & Söhne"' in looked_at(client, f"{url}?body=text").text
    assert looked_at(client, f"{url}?body=nonsense").text.count('"order": 70000')


def test_a_letter_that_is_no_message_is_shown_as_bytes(world: World) -> None:
    letter = make_letter(
        world, KEY, "x", encoded=b"\x00\x53no message", problem="not an AMQP message: too short"
    )
    page = looked_at(signed_in(world, "viewer"), f"/letters/{letter.pk}/")

    assert "not an AMQP message" in page.text and "00 53 6e 6f" in page.text


def test_a_letter_that_is_cut_or_not_durable_says_so(world: World) -> None:
    letter = make_letter(world, KEY, "x", truncated=True, durable=False)
    text = looked_at(signed_in(world, "viewer"), f"/letters/{letter.pk}/").text

    assert (
        "The message is too large to store here in full, so only the beginning of its body is "
        "stored. The broker has the whole message."
    ) in text and "The message is non-persistent: a broker restart deletes it." in text


def test_the_download_is_never_shown_by_the_browser(world: World) -> None:
    letter = make_letter(world, KEY, "<script>alert(1)</script>")
    answer = signed_in(world, "viewer").get(f"/letters/{letter.pk}/body/")

    assert answer.content == b"<script>alert(1)</script>"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["Content-Type"] == "application/octet-stream"


def test_bodies_of_every_type_are_shown() -> None:
    for body, kind in [
        (Typed("null", None), BodyKind.VALUE),
        (Typed("ulong", 7), BodyKind.VALUE),
        (Typed("map", ((Typed("string", "a"), Typed("binary", b"\x00")),)), BodyKind.VALUE),
        (Typed("list", (Typed("char", "x"), Typed("double", float("nan")))), BodyKind.SEQUENCE),
        (Typed("binary", b"\xff\xfe"), BodyKind.DATA),
        (Typed("string", "\ud800 lone"), BodyKind.VALUE),
    ]:
        found = body_of(Message(body=body, body_kind=kind), None)
        for look in found.formats:
            assert isinstance(render_body(found, look), str)


def test_indenting_changes_no_token_and_grows_within_bounds() -> None:
    text = '{"price":1.10,"same":1,"same":2,"t":"a\\u0041 {\\"x\\"","e":{},"l":[]}'
    assert "".join((pretty(text, BodyFormat.JSON) or "").split()) == text.replace(" ", "")
    deep = "[" * 900 + "1" + "]" * 900
    assert len(pretty(deep, BodyFormat.JSON) or "") < 200_000
    assert pretty("[" * 100_000, BodyFormat.JSON) is None
    assert pretty("<a>" * 50_000 + "<!--" * 20_000 + " >", BodyFormat.XML) is None
    assert pretty("<a>" + "<!DOCTYPE x [" * 50_000 + "</a>", BodyFormat.XML) is None
    assert pretty('<!DOCTYPE x [<!ENTITY e "boom">]><x>&e;</x>', BodyFormat.XML).count("boom") == 1  # type: ignore[union-attr]


def test_a_setting_that_is_off_is_warned_of(world: World) -> None:
    make_letter(world, "stock-sync", "x")
    text = looked_at(signed_in(world, "operator"), "/dead-letters/stock-sync/give-back/?all=1").text

    assert "The setting is disabled: the messages wait in its subscription until it is enabled." in text


def test_confirming_begins_the_job_with_its_reason(world: World) -> None:
    client = signed_in(world, "operator")
    letter = make_letter(
        world,
        KEY,
        ("Properties not shown: one. They stay unchanged. To change one, enter its name in an empty row."),
    )
    answer = client.post(f"/dead-letters/{KEY}/give-back/", {"letter": [str(letter.pk)], "reason": "mended"})

    job = ReplayJob.objects.exclude(pk=world.job.pk).get()  # type: ignore[union-attr]
    assert answer.headers["Location"] == f"/replays/{job.pk}/"
    assert (job.scope, job.reason, job.by, job.total) == (Scope.ONE, "mended", world.people["operator"], 1)
    assert (
        "The queue is no longer monitored. Its messages stay on the broker."
        in looked_at(client, f"/replays/{job.pk}/").text
        or "1 message" in looked_at(client, f"/replays/{job.pk}/").text
    )


def test_confirming_all_twice_makes_one_job(world: World) -> None:
    client = signed_in(world, "operator")
    make_letter(world, KEY, "one more")
    first = client.post(f"/dead-letters/{KEY}/give-back/", {"all": "1"}).headers["Location"]
    second = client.post(f"/dead-letters/{KEY}/give-back/", {"all": "1"}).headers["Location"]

    assert first == second
    assert ReplayJob.objects.filter(scope=Scope.ALL).count() == 1


def test_a_letter_on_its_way_is_refused_whole(world: World) -> None:
    client = signed_in(world, "operator")
    assert world.job is not None
    on_its_way = world.job.items.filter(state="planned")[0]
    answer = client.post(
        f"/dead-letters/{KEY}/give-back/", {"letter": str(on_its_way.letter_id)}, follow=True
    )

    assert "The job was not started, because none of these messages can be moved:" in answer.content.decode()
    assert ReplayJob.objects.count() == 1


def test_nothing_selected_is_said(world: World) -> None:
    answer = signed_in(world, "operator").get(f"/dead-letters/{KEY}/give-back/", follow=True)

    assert "Select at least one message first." in answer.content.decode()


def test_a_replay_is_shown_by_what_became_of_its_letters(world: World) -> None:
    page = looked_at(signed_in(world, "viewer"), f"/replays/{world.job.pk}/")  # type: ignore[union-attr]

    text = page.text
    for words in ("replayed 17", "processed 11", "failed again, will be retried 2", "dead-lettered again 1",
                  "waiting for processing 3", "not moved yet 3"):  # fmt: skip
        assert words in text
    assert f"/replays/{world.job.pk}/?show=handled" in page.links()  # type: ignore[union-attr]


def test_letters_of_a_setting_that_is_gone_are_still_found(world: World) -> None:
    make_letter(world, "mail-send", "x")
    letter = DeadLetter.objects.filter(setting_key="mail-send").last()
    DeadLetter.objects.filter(pk=letter.pk).update(setting=None, setting_key="old", queue="DLQ.old")  # type: ignore[union-attr]
    client = signed_in(world, "viewer")

    assert "/dead-letters/old/" in looked_at(client, "/dead-letters/").links()
    assert "1 in this list" in looked_at(client, "/dead-letters/old/").text


def letters_of(world: World, count: int, **values: object) -> list[int]:
    return [make_letter(world, "mail-send", "x", **values).pk for _ in range(count)]


def button(page: Elements, path: str) -> list[str]:
    return [url for url in page.links() if url.startswith(path)]


def test_without_a_filter_the_button_says_that_it_gives_all_of_the_setting_back(world: World) -> None:
    letters_of(world, 3)
    client = signed_in(world, "operator")
    listed = looked_at(client, "/dead-letters/mail-send/")

    assert "Replay all 4…" in listed.text
    assert button(listed, "/dead-letters/mail-send/give-back/") == [
        "/dead-letters/mail-send/give-back/?all=1"
    ]
    asked = looked_at(client, "/dead-letters/mail-send/give-back/?all=1").text
    assert "All dead letters of the setting, regardless of the error." in asked


def test_a_whole_selection_fits_into_one_form(world: World) -> None:
    ids = ",".join(str(number) for number in range(10_000_000, 10_005_000))
    client = signed_in(world, "operator")
    answer = client.post("/dead-letters/mail-send/give-back/", {"letters": ids}, follow=True)

    assert "The request was refused: some messages do not belong to this setting." in answer.content.decode()


def test_a_letter_that_is_gone_says_so_and_what_of_it_is_kept(world: World) -> None:
    letter = dead(world)[0]
    DeadLetter.objects.filter(pk=letter.pk).update(state=LetterState.GONE)
    text = looked_at(signed_in(world, "viewer"), f"/letters/{letter.pk}/").text

    assert (
        "The message is no longer in its queue:" in text
        and "it was consumed, moved or removed outside this console." in text
    )


def test_a_list_of_several_settings_names_them_and_offers_no_selection(world: World) -> None:
    client = signed_in(world, "operator")
    several, one = looked_at(client, "/letters/"), looked_at(client, f"/dead-letters/{KEY}/")

    assert f"/dead-letters/{KEY}/" in several.links() and not ticks(several) and ticks(one)
    assert {"setting", "destination"} <= inputs(several) and not {"setting", "destination"} & inputs(one)


def ticks(page: Elements) -> bool:
    return any(attrs.get("name") == "letter" for _tag, attrs in page.found)


def inputs(page: Elements) -> set[str | None]:
    return {attrs.get("name") for tag, attrs in page.found if tag == "input"}


def test_what_is_seldom_asked_for_is_folded_until_it_is_set(world: World) -> None:
    client = signed_in(world, "viewer")

    def folds(path: str) -> list[bool]:
        found = looked_at(client, path).found
        return ["open" in attrs for tag, attrs in found if tag == "details" and attrs.get("class") == "rare"]

    assert folds(f"/dead-letters/{KEY}/") == [False]
    assert folds(f"/dead-letters/{KEY}/?delivered_from=1") == [True]
    assert folds("/replays/") == [] and "setting" in inputs(looked_at(client, "/replays/"))


def test_a_letter_leads_to_its_editing_and_the_navigation_to_the_audit(world: World) -> None:
    letter = dead(world)[-1]
    links = looked_at(signed_in(world, "chief"), f"/letters/{letter.pk}/").links()

    assert f"/letters/{letter.pk}/edit/" in links and "/audit/" in links


def test_letters_of_a_job_that_discards_are_not_said_to_be_given_back(world: World) -> None:
    assert world.job
    ReplayJob.objects.filter(pk=world.job.pk).update(action="discard")
    text = looked_at(signed_in(world, "viewer"), f"/replays/{world.job.pk}/").text

    assert "moved to the trash" in text and "replayed" not in text


def test_the_list_tells_how_often_a_message_was_given_back_as_its_filter_means_it(world: World) -> None:
    again = make_letter(world, "stock-sync", "again", chapter=3)
    left_out = make_letter(world, "stock-sync", "skipped")
    for state in (ItemState.SKIPPED, ItemState.CANCELLED):
        job = ReplayJob.objects.create(
            setting_key="stock-sync", scope="selection", state="done", action="discard"
        )
        ReplayItem.objects.create(job=job, letter=left_out, state=state)
    client = signed_in(world, "viewer")

    def replays(query: str) -> list[str]:
        page = client.get(f"/dead-letters/stock-sync/?{query}").context["table"]
        return [row.get_cell("replays") for row in page.rows]

    assert replays("") == ["0", "2"]
    assert (replays("replays_from=1"), replays("replays_to=0")) == (["2"], ["0"])
    assert (
        "How many times this message was replayed" in client.get("/dead-letters/stock-sync/").content.decode()
    )
    assert again.pk < left_out.pk


def test_a_message_that_was_replayed_once_counts_one_replay_also_while_it_has_not_come_back(
    world: World,
) -> None:
    for chapter, state in ((1, "given_back"), (1, "dead"), (1, "discarded"), (2, "given_back"), (2, "dead")):
        make_letter(world, "stock-sync", "x", chapter=chapter, state=state)
    client = signed_in(world, "viewer")

    def replays(query: str) -> str:
        page = client.get(f"/dead-letters/stock-sync/?state=every&{query}").context["table"]
        return " ".join(reversed([row.get_cell("replays") for row in page.rows]))

    assert replays("") == "1 0 0 2 1"
    assert replays("replays_from=1") == "1 2 1"
    assert replays("replays_from=2") == "2"
    assert replays("replays_to=0") == "0 0"
    assert replays("replays_from=1&replays_to=1") == "1 1"


@pytest.mark.parametrize("path", [f"/dead-letters/{KEY}/", "/letters/", "/protocols/"])
def test_keys_find_the_rows_of_a_list_and_in_each_a_link(world: World, path: str) -> None:
    found = looked_at(signed_in(world, "operator"), path).found
    begin = next(place for place, (tag, attrs) in enumerate(found) if tag == "div" and "data-rows" in attrs)
    inside = [tag for tag, _attrs in found[begin:]]

    assert inside.index("table") == 1
    assert "a" in inside[inside.index("tbody") :]


def test_the_fingerprint_of_a_letter_is_shown_whole(world: World) -> None:
    fingerprint = "v1:" + "0123456789abcdef" * 3
    letter = make_letter(world, KEY, "x", fingerprint=fingerprint)

    assert (
        f"Fingerprint {fingerprint} " in looked_at(signed_in(world, "viewer"), f"/letters/{letter.pk}/").text
    )


def test_a_letter_that_the_broker_cannot_deliver_says_so_and_what_to_do(world: World) -> None:
    stream = Message(
        body=Typed("list", (Typed("binary", b"\x00\xff"),)),
        annotations={NOT_CONVERTIBLE: Typed("string", BYTES_IN_STREAM)},
    )
    letter, other = dead(world)[:2]
    letter.encoded = encode(stream)
    letter.save()
    client = signed_in(world, "viewer")
    text = looked_at(client, f"/letters/{letter.pk}/").text
    assert (
        "The broker cannot deliver this message to agents: it is a JMS StreamMessage that contains bytes."
    ) in text
    assert (
        "If replayed unchanged, the message returns to the DLQ. Edit and replay it, or read "
        "it with a JMS (Core) client."
    ) in text
    assert (
        "The broker cannot deliver this message to agents: its body does not match its JMS message type."
    ) not in looked_at(client, f"/letters/{other.pk}/").text
