"""What pages say of trouble: each state of tests/web/trouble_rows.py is told where people look, with what to
do."""

from datetime import timedelta

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone, translation

from agents.models import Server
from ma_site.requests import middleware, sign_in
from ma_site.requests.sign_in import TooManyFailures
from tests.web.factories import World
from tests.web.kept_rows import kept
from tests.web.pages import Elements, broker_answers, broker_figures, looked_at, signed_in
from tests.web.trouble_rows import make_trouble

RUSSIAN = {"accept-language": "ru"}


@pytest.fixture
def pages(world: World, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    broker_answers(monkeypatch, broker_figures(consumers=2))
    return kept("trouble", lambda: make_trouble(world))


@pytest.fixture
def client(world: World, pages: dict[str, str]) -> Client:
    heard = Server.objects.filter(last_seen_at__gt=timezone.now() - timedelta(minutes=1))
    heard.update(last_seen_at=timezone.now() + timedelta(minutes=5))
    return signed_in(world, "chief")


def test_a_server_that_lost_the_broker_says_so_wherever_it_is_shown(
    client: Client, pages: dict[str, str]
) -> None:
    lost = "ot connected to the broker: 1 instance is not receiving messages"
    for path in (pages["server kma-without-broker"], "/servers/", "/health/", "/"):
        assert lost in looked_at(client, path).text, path
    assert "KMA_AMQP_URL" in looked_at(client, pages["server kma-without-broker"]).text


def test_a_kma_of_another_version_is_told_on_every_page_that_calls_it_silent(
    client: Client, pages: dict[str, str]
) -> None:
    for path in (pages["server kma-too-old"], "/servers/", "/health/", "/"):
        assert "The KMA on kma-too-old is too old for this site" in looked_at(client, path).text, path


def test_a_silent_server_s_page_says_what_to_do(client: Client) -> None:
    assert (
        "Check whether the KMA on this server is running. While it cannot reach the site, the "
        "KMA keeps its records and the instances continue. If the server is gone for good, "
        "delete it."
    ) in looked_at(client, "/servers/srv-4/").text


def test_a_setting_that_is_not_sent_is_never_called_running(
    client: Client, pages: dict[str, str], world: World
) -> None:
    """Its runs of before are reported as running until their servers have ended them."""
    assert "mail-send running" not in looked_at(client, pages["setting that is withheld"]).text
    world.runs["mail-send", "srv-1"].withheld_because = "parameters_too_deep"
    world.runs["mail-send", "srv-1"].save()

    text = looked_at(client, pages["setting that is withheld"]).text
    assert text.index("not sent to its servers") < text.index("Not sent to the servers.")
    attention = looked_at(client, "/").text.partition("Needs attention")[2].partition("Settings")[0]
    assert "mail-send not sent to its servers" in attention


def test_the_page_of_a_setting_tells_what_an_alert_of_its_subscription_tells(
    client: Client, pages: dict[str, str]
) -> None:
    stalled = looked_at(client, pages["setting whose subscription stalled"]).text
    unfed = looked_at(client, pages["setting that nobody consumes"]).text
    assert (
        "no acknowledgement for 17 min" in stalled
        and (
            "Open the setting. If one message normally takes this long, set a sufficiently long "
            "processing timeout. If the agent hangs or nothing is in progress, disable and "
            "re-enable the setting: its servers reconnect, and the messages are delivered again."
        )
        in stalled
    )
    assert (
        "has had no consumer for 17 min" in unfed
        and (
            "No messages are lost: they wait in the queue. Open the setting and check that its "
            "pool has a server that is in service and offers the agent. Check that the KMA of "
            "this server is connected to the broker."
        )
        in unfed
    )


def test_a_disabled_setting_says_who_may_still_process_its_messages(
    client: Client, pages: dict[str, str]
) -> None:
    text = looked_at(client, pages["setting that is stopping"]).text
    assert "2 consumers of its subscription are still open and may process messages" in text
    listed = looked_at(client, "/settings/").text
    assert "stock-sync stopping, 2 consumers open" in listed


def test_what_was_changed_on_the_broker_is_told_beside_what_could_not_be_made(client: Client) -> None:
    text = looked_at(client, "/health/").text
    assert "not created: prices-import" in text
    assert "not in sync: shop.orders" in text


def test_the_page_of_retention_promises_nothing_that_it_deletes(client: Client) -> None:
    text = looked_at(client, "/retention/").text
    assert "Counts of failures and dead letters stay." not in text
    assert (
        "Rules for deleting failure protocols, dead letters that have left the DLQ, and other "
        "records. Failure counts and messages still in the DLQ are kept in full."
    ) in text


def test_an_alert_shows_no_number_that_says_nothing(client: Client, pages: dict[str, str]) -> None:
    assert "Value" not in looked_at(client, pages["alert setting_withheld"]).text
    assert "Value 5 min" in looked_at(client, pages["alert broker_away"]).text


def test_a_sentence_of_an_alert_begins_as_a_sentence(
    client: Client, pages: dict[str, str], world: World
) -> None:
    russian = signed_in(world, "chief", headers=RUSSIAN)
    for path in (path for name, path in pages.items() if name.startswith("alert ")):
        for reader in (client, russian):
            crumbs = looked_at(reader, path).text
            says = crumbs.partition("› Alerts › ")[2] or crumbs.partition("› Оповещения › ")[2]
            first = says.strip("“«")[0]
            assert first.isupper() or says.startswith(("“", "«", "srv-")), (path, says[:60])


def test_a_job_that_waits_for_consumers_never_promises_that_messages_wait(
    client: Client, pages: dict[str, str]
) -> None:
    promise = "The setting is disabled: replayed messages wait in its subscription until it is enabled."
    for name in (
        "paused by consumers",
        "waiting for consumers",
    ):
        text = looked_at(client, pages[f"job {name}"]).text
        assert promise not in text, name
    assert promise in looked_at(client, pages["job failed on what others hold"]).text


def test_a_job_that_others_hold_up_says_what_to_do(client: Client, pages: dict[str, str]) -> None:
    text = looked_at(client, pages["job failed on what others hold"]).text
    assert "Close that consumer, then replay the messages again." in text


def test_a_letter_that_is_in_its_queue_again_is_not_told_as_taken(
    client: Client, pages: dict[str, str]
) -> None:
    row = pages["job of every end, taken_elsewhere"]
    listed = looked_at(client, row).text.partition("Messages")[2]
    assert "taken elsewhere" in listed
    assert (
        "not moved, back in its queue" in listed
        and "another consumer took the message and returned it to the queue" in listed
    )

    case = looked_at(client, pages["letter that came back"]).text
    assert "another consumer took the message and returned it to the queue" in case
    assert "Taken by another consumer before the move (" not in case


def test_why_a_letter_stayed_is_told_in_words(client: Client, pages: dict[str, str]) -> None:
    listed = looked_at(client, pages["job of every end"]).text
    assert "the broker left the message in the queue on every attempt" in listed and "stuck" not in listed
    case = looked_at(client, pages["letter that stayed"]).text
    assert "the broker left the message in the queue on every attempt" in case and "stuck" not in case


def test_pages_without_a_menu_say_times_and_sizes_in_words_and_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_early(*_args: object) -> None:
        raise TooManyFailures(timedelta(minutes=15))

    monkeypatch.setattr(sign_in, "begin_attempt", too_early)
    for language, wait, back in (
        ("en", "Try again in 15 min.", "Back to sign-in"),
        ("ru", "Повторите через 15 мин.", "Вернуться ко входу"),
    ):
        answer = Client().post("/login/", {"username": "anna"}, headers={"accept-language": language})
        page = Elements(answer.content.decode())
        assert answer.status_code == 429 and answer.headers["Retry-After"] == "900"
        assert wait in page.text.replace("\xa0", " ") and back in page.text and "/login/" in page.links()
        assert "admin/js/theme" in answer.content.decode(), "dark for who chose it"

    with translation.override("en"):
        too_large = middleware.refusal(RequestFactory().post("/login/", {}, CONTENT_LENGTH="9000000"))
    assert isinstance(too_large, HttpResponse) and too_large.status_code == 413
    assert "This page accepts requests of up to 1 MiB." in Elements(too_large.content.decode()).text.replace(
        "\xa0", " "
    )
