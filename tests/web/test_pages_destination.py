"""The page of a destination: what its policy means, before it is saved and for whoever may only look."""

from typing import Any

from agents.destinations import redelivery
from agents.models import Destination
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in

QUERY = "max_attempts=3&delay_ms=5000&multiplier=2&max_delay_ms=&collision_avoidance=0&expiry_ms="


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def page_of(world: World, who: str, destination: Destination) -> str:
    return plain(looked_at(signed_in(world, who), f"/agents/destination/{destination.pk}/change/").text)


def test_the_preview_tells_each_delay_and_the_time_until_dead(world: World) -> None:
    text = plain(looked_at(signed_in(world, "operator"), f"/previews/destination/?{QUERY}").text)

    assert "1 — immediately 2 5 s 5 s 3 10 s 15 s" in text
    assert "The message is dead-lettered 15 s after its first failure, plus processing time." in text


def test_a_policy_without_end_is_warned_of(world: World) -> None:
    client = signed_in(world, "operator")
    endless = QUERY.replace("attempts=3", "attempts=-1")

    text = looked_at(client, f"/previews/destination/?{endless}").text
    assert (
        "A message whose processing always fails is retried without limit and never reaches "
        "the dead-letter queue."
    ) in text and "and so on" in text
    text = looked_at(client, f"/previews/destination/?{endless}60000").text
    assert (
        "A message that always fails is retried until it expires. Only then is it dead-lettered." in text
        and "for ever" not in text
    )


def test_an_expiry_shorter_than_the_schedule_is_warned_of(world: World) -> None:
    client = signed_in(world, "operator")

    short = plain(looked_at(client, f"/previews/destination/?{QUERY}12000").text)
    assert (
        "The expiry (12 s) is shorter than the redelivery schedule: a failing "
        "message may expire before attempt"
    ) in short and "before attempt 3" in short
    assert (
        ". It is then dead-lettered at the time of its next attempt, and the remaining attempts are skipped."
        not in looked_at(client, f"/previews/destination/?{QUERY}16000").text
    )


def test_attempts_beyond_all_numbers_are_previewed_too() -> None:
    assert redelivery.preview(Destination(name="a", max_attempts=5000)).attempts[-1].number == 5000
    many = redelivery.preview(Destination(name="a", max_attempts=1_000_000))
    assert many.total.startswith("more than")


def test_who_may_only_look_sees_the_schedule_too(world: World) -> None:
    destination = world.settings["orders-export"].subscribed

    text = page_of(world, "viewer", destination)
    assert ("The message is dead-lettered 30 s – 40 s after its first failure, plus processing time.") in text
    assert (
        "All settings that receive from this destination share its address policy. A change "
        "also applies to waiting messages, starting with their next failure. A message that "
        "is already delayed keeps its current delay. A message with more failures than the "
        "new maximum is dead-lettered on its next failure. A new expiry applies to messages "
        "that arrive later, including replayed ones."
    ) in text


def test_without_scripts_a_button_shows_the_schedule_of_what_was_typed_and_saves_nothing(
    world: World,
) -> None:
    client, destination = signed_in(world, "operator"), world.settings["orders-export"].subscribed
    url = f"/agents/destination/{destination.pk}/change/"
    typed: dict[str, Any] = {
        "max_attempts": 2, "delay_ms": 7000, "multiplier": 1, "max_delay_ms": "", "collision_avoidance": 0,
        "expiry_ms": "", "description": "typed", "settings-TOTAL_FORMS": 0, "settings-INITIAL_FORMS": 0,
    }  # fmt: skip
    before = Destination.objects.filter(pk=destination.pk).values().get()
    assert "<noscript>" in client.get(url).content.decode()

    answer = client.post(url, typed | {"_preview": "1"})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert (
        "The message is dead-lettered 7" in page
        and 'value="7000"' in page
        and "typed" in page
        and "errornote" not in page
    )
    assert Destination.objects.filter(pk=destination.pk).values().get() == before

    wrong = client.post(url, typed | {"_preview": "1", "delay_ms": "x"}).content.decode()
    assert "errornote" in wrong and "The preview appears when all fields are filled in." in wrong
    assert client.post(url, typed).status_code == 302
    assert Destination.objects.get(pk=destination.pk).delay_ms == 7000


def test_a_setting_says_with_whom_it_shares_its_policy(world: World) -> None:
    setting, other = world.settings["orders-export"], world.settings["invoices"]
    client = signed_in(world, "viewer")
    assert "Shared with no other setting" in looked_at(client, "/settings/invoices/").text
    assert "Shared with orders-archive" in looked_at(client, "/settings/orders-export/").text

    type(other).objects.filter(pk=other.pk).update(destination=setting.destination)
    assert setting.destination_id is not None
    Destination.objects.filter(pk=setting.destination_id).update(expiry_ms=60_000)
    text = plain(looked_at(client, "/settings/orders-export/").text)
    assert "Shared with invoices, orders-archive" in text and "Expiry 1 min" in text


def test_where_a_message_goes_at_last_is_said_of_dead_letters_alone(world: World) -> None:
    client, setting = signed_in(world, "viewer"), world.settings["orders-export"]
    kept = "After the last attempt, the message goes to DLQ.orders-export."
    assert kept in looked_at(client, "/settings/orders-export/").text

    type(setting).objects.filter(pk=setting.pk).update(after_last="discard")
    assert kept not in looked_at(client, "/settings/orders-export/").text
