"""What the search box shows of what it found: no foreign message, one row per message, its state now."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dlq.models import DeadLetter
from dlq.search import newest
from dlq.search.word_index import catch_up
from failures.models import FailureProtocol
from failures.protocols.messages import MessageState, message_states
from tests.web.factories import World, make_letter
from tests.web.pages import Elements, looked_at, signed_in
from tests.web.searched_rows import KEY, ORDER, edited_and_replayed, failed_with_id


def searched(world: World, text: str) -> Elements:
    return looked_at(signed_in(world, "chief"), f"/search/?q={text}")


def found(world: World, text: str) -> list[str]:
    page = searched(world, text)
    return [url for url in page.links() if re.fullmatch(r"/(letters|protocols)/[-0-9a-f]+/", url)]


# -- a text with a hyphen, a dot, a slash or a colon in it is one --------------------------------------------


@pytest.mark.parametrize("text", ["A-424", "A.424", "A/424", "A:424", "a@424", "A=424"])
def test_an_order_number_finds_no_other_order_of_its_parts(world: World, text: str) -> None:
    make_letter(world, KEY, "a second order, of customer C-424")
    make_letter(world, KEY, f"about {text}1")
    catch_up(200)
    failed_with_id(world, "ID:other", timezone.now(), properties={}, exception_text=f"no total in {text}0")

    assert found(world, text.replace("/", "%2F")) == []
    its_own = make_letter(world, KEY, f"about {text}, in the text")
    catch_up(200)
    assert found(world, text.replace("/", "%2F")) == [f"/letters/{its_own.pk}/"]


def test_of_several_words_an_order_number_is_one(world: World) -> None:
    its_own = make_letter(world, KEY, "order A-424 came late")
    make_letter(world, KEY, "a late order, of customer C-424")
    catch_up(200)

    assert found(world, "late A-424") == [f"/letters/{its_own.pk}/"]


def test_what_has_the_exact_value_comes_first_and_words_say_that_they_are_words(world: World) -> None:
    exact = make_letter(world, KEY, "nothing", properties=[ORDER[0] | {"value": "quince"}])
    by_word = make_letter(world, KEY, "about a Quince")
    by_words = make_letter(world, KEY, "a late order of a quince")
    catch_up(200)

    assert found(world, "quince") == [f"/letters/{each.pk}/" for each in (exact, by_words, by_word)]
    assert searched(world, "quince").text.count("contains this text") == 2
    assert "contains these words" in searched(world, "quince late").text


def test_a_search_that_ran_out_of_time_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    make_letter(world, KEY, "about A-424, in the text")
    for _number in range(newest.TOGETHER):
        make_letter(world, KEY, "a second order, of customer C-424")
    catch_up(200)
    monkeypatch.setattr(newest, "BUDGET", -1)

    page = searched(world, "A-424")

    assert "The search did not cover all messages." in page.text
    assert any(url.startswith("/letters/?text=%22A-424%22&state=every") for url in page.links())


# -- the original of an edited message, which is in the trash ------------------------------------------------


def test_the_original_of_an_edited_message_is_in_the_trash_and_its_copy_was_replayed(world: World) -> None:
    rows = edited_and_replayed(world)
    client = signed_in(world, "chief")

    page = looked_at(client, f"/letters/{rows['trash'].pk}/")
    html = client.get(f"/letters/{rows['trash'].pk}/").content.decode()
    title = html[html.index("<h1>") : html.index("</h1>")]

    assert "in trash" in title and "dead-lettered" not in title and "state pill bad" not in title
    assert "An edited copy of this message was replayed" in page.text and "processed" in page.text
    assert f"/replays/{rows['job'].pk}/" in page.links()


def test_a_search_says_that_it_is_in_the_trash(world: World) -> None:
    rows = edited_and_replayed(world)
    only_discarded = make_letter(
        world, KEY, "nothing", queue="DLQ.bin", orig_queue=f"DLQ.{KEY}", properties=ORDER
    )
    catch_up(200)

    page = searched(world, ORDER[0]["value"])

    assert "Messages: in trash" in page.text and "Messages: dead-lettered" not in page.text
    for row in (rows["trash"], only_discarded):
        assert f"/letters/{row.pk}/" in page.links()
    assert page.text.count("an edited copy was replayed") == 1
    assert f"/replays/{rows['job'].pk}/" in page.links()


def test_a_failure_of_an_edited_or_discarded_message_is_not_called_dead_lettered(world: World) -> None:
    """Each has a row in the trash that is newer than its own."""
    edited_and_replayed(world)
    failed = [failed_with_id(world, "ID:edited", world.now - timedelta(hours=9), last_attempt=True)]
    same: dict[str, Any] = {"message_key": "ID:thrown away", "properties": ORDER}
    make_letter(world, KEY, "", state="discarded", **same)
    make_letter(world, KEY, "", queue="DLQ.bin", orig_queue=f"DLQ.{KEY}", **same)
    failed.append(failed_with_id(world, "ID:thrown away", world.now - timedelta(hours=9), last_attempt=True))

    assert message_states(failed) == {
        (KEY, "ID:edited"): MessageState.REPLAYED,
        (KEY, "ID:thrown away"): MessageState.IN_TRASH,
    }
    DeadLetter.objects.filter(queue="DLQ.bin").update(state="gone")
    assert message_states(failed) == {
        (KEY, "ID:edited"): MessageState.REPLAYED,
        (KEY, "ID:thrown away"): MessageState.DISCARDED,
    }


# -- failures: one row per message ---------------------------------------------------------------------------


def test_a_message_that_fails_often_is_one_row_with_time_attempt_outcome_and_case(world: World) -> None:
    now = timezone.now()
    for weak in (False, True):
        for attempt in (1, 2, 3):
            failed_with_id(
                world, f"ID:often-{weak}", now - timedelta(minutes=9 - attempt), attempt=attempt,
                message_key_weak=weak,
            )  # fmt: skip
    newest_ones = [
        FailureProtocol.objects.filter(message_key=f"ID:often-{weak}").latest("occurred_at")
        for weak in (False, True)
    ]

    page = searched(world, ORDER[0]["value"])

    assert found(world, ORDER[0]["value"]) == [f"/protocols/{each.pk}/" for each in newest_ones]
    assert page.text.count("attempt 3") == 2 and "attempt 2" not in page.text
    assert page.text.count("6 min ago") == 2 and "being retried" in page.text
    cases = [url for url in page.links() if url.startswith("/cases/")]
    assert len(cases) == 2 and "often-False" in cases[0] and "often-True" in cases[1]


def test_more_messages_take_no_more_statements(world: World) -> None:
    client = signed_in(world, "chief")

    def statements() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert client.get("/search/", {"q": ORDER[0]["value"]}).status_code == 200
        return len(asked)

    edited_and_replayed(world)
    failed_with_id(world, "ID:one", timezone.now())
    statements()
    few = statements()
    for number in range(6):
        failed_with_id(world, f"ID:more-{number}", timezone.now())
        make_letter(world, KEY, "", properties=ORDER)
        make_letter(world, KEY, "", queue="DLQ.bin", orig_queue=f"DLQ.{KEY}", properties=ORDER)
    catch_up(200)
    assert statements() <= few
