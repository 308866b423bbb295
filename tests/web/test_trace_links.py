"""Pages lead to the traces of a failure, a message and a case, where the site was told how."""

from dataclasses import replace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from broker.amqp.codec import decode, encode
from contract.typed import Typed, to_json
from dlq.models.content import LetterContent
from failures.models import FailureProtocol
from failures.pages.protocol_table import case_url
from kma.delivery.in_flight import InFlight
from kma.delivery.trace import context_of
from kma.sdk.encoding import encoded_message
from ma_site import env
from tests.environment import VALUES
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PRODUCER = f"00-{TRACE}-00f067aa0ba902b7-01"
WHERE = "https://jaeger.example.org/trace/{trace_id}?a=1&b=2"
LINK = WHERE.replace("{trace_id}", TRACE)


def links(page: Any, beginning: str = "https://jaeger.example.org/") -> list[str]:
    return [
        each["href"]
        for name, each in page.found
        if name == "a" and each.get("href", "").startswith(beginning)
    ]


@pytest.fixture
def protocol(world: World) -> FailureProtocol:
    found = next(each for each in world.protocols if each.message_key and not each.message_key_weak)
    FailureProtocol.objects.filter(pk=found.pk).update(traceparent=PRODUCER)
    return FailureProtocol.objects.get(pk=found.pk)


def test_a_failure_leads_to_the_producer_s_trace_and_to_that_of_its_attempt(
    world: World, protocol: FailureProtocol, settings: Any
) -> None:
    settings.MA_TRACE_URL = WHERE
    page = looked_at(signed_in(world, "viewer"), f"/protocols/{protocol.pk}/")
    producers, attempts = links(page)
    assert producers == LINK
    assert attempts.startswith("https://jaeger.example.org/trace/") and TRACE not in attempts


def test_without_an_address_no_page_has_a_link(world: World, protocol: FailureProtocol) -> None:
    page = looked_at(signed_in(world, "viewer"), f"/protocols/{protocol.pk}/")
    assert PRODUCER in page.text and "Open trace" not in page.text
    assert "Trace of this attempt" not in page.text
    assert links(looked_at(signed_in(world, "viewer"), case_url(protocol)), "http") == []


@pytest.mark.parametrize("text", ["", "00-none", 'javascript:"', f"00-{'0' * 32}-00f067aa0ba902b7-01"])
def test_what_is_no_trace_is_no_link(
    world: World, protocol: FailureProtocol, settings: Any, text: str
) -> None:
    settings.MA_TRACE_URL = WHERE
    FailureProtocol.objects.update(traceparent=text)
    page = looked_at(signed_in(world, "viewer"), f"/protocols/{protocol.pk}/")
    assert len(links(page)) == 1, "that of the attempt"


@pytest.mark.parametrize("attempt", [1, 3])
@pytest.mark.parametrize("letter", [None, 77])
@pytest.mark.parametrize("identity", ["ID:orders-1", ""])
def test_the_trace_of_an_attempt_is_the_one_that_its_kma_gave_it(
    world: World, protocol: FailureProtocol, settings: Any, attempt: int, letter: int | None, identity: str
) -> None:
    """The row as the intake stores it, and the context as the KMA derives it."""
    settings.MA_TRACE_URL = WHERE
    message = decode(encoded_message("x", {}, message_id=identity or "ID:x"))
    if not identity:
        message = replace(message, message_id=None)
    if letter:
        annotations = {
            "x-opt-ORIG-QUEUE": Typed("string", f"DLQ.{protocol.setting_key}"),
            "x-opt-ORIG-MESSAGE-ID": Typed("long", letter),
        }
        message = replace(message, annotations={**message.annotations, **annotations})
    work = InFlight(1, encode(message), attempt - 1, attempt, protocol.pk.bytes, 0, ())
    identified = work.identified
    assert identified.dead_letter_id == letter and identified.key.weak is not bool(identity)
    FailureProtocol.objects.filter(pk=protocol.pk).update(
        message_key=identified.key.text,
        message_key_weak=identified.key.weak,
        attempt=attempt,
        given_back=identified.replayed,
        letter_id=identified.dead_letter_id,
    )
    page = looked_at(signed_in(world, "viewer"), f"/protocols/{protocol.pk}/")
    expected = context_of(protocol.setting_key, work).trace_id
    assert links(page)[-1] == WHERE.replace("{trace_id}", expected)


def test_a_case_leads_to_the_producer_s_trace(world: World, protocol: FailureProtocol, settings: Any) -> None:
    settings.MA_TRACE_URL = WHERE
    assert links(looked_at(signed_in(world, "viewer"), case_url(protocol))) == [LINK]


def test_a_message_leads_to_the_producer_s_trace_unless_that_is_masked(world: World, settings: Any) -> None:
    settings.MA_TRACE_URL = WHERE
    letter = next(each for each in world.letters if each.setting is not None)
    properties = [{"name": "traceparent", **to_json(Typed("string", PRODUCER))}]
    LetterContent.objects.filter(letter=letter).update(properties=properties)
    page = looked_at(signed_in(world, "viewer"), f"/letters/{letter.pk}/")
    assert links(page) == [LINK]
    assert letter.setting is not None
    letter.setting.masked_properties = ["traceparent"]
    letter.setting.save()
    assert links(looked_at(signed_in(world, "viewer"), f"/letters/{letter.pk}/")) == []


# -- the environment -----------------------------------------------------------------------------------------


def test_the_address_has_a_place_for_the_id() -> None:
    assert env.read(VALUES | {"MA_TRACE_URL": WHERE}).monitoring.trace_url == WHERE
    assert env.read(VALUES).monitoring.trace_url == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MA_TRACE_URL", "https://jaeger.example.org/trace/"),
        ("MA_TRACE_URL", "javascript:alert({trace_id})"),
        ("MA_TRACE_URL", "jaeger/{trace_id}"),
        ("MA_METRICS_TOKEN", "short"),
        ("MA_METRICS_ADDRESS", "9464"),
        ("MA_METRICS_ADDRESS", "0.0.0.0:9464"),
    ],
)
def test_what_is_wrong_stops_the_start(name: str, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=name):
        env.read(VALUES | {name: text})


def test_others_read_metrics_with_a_token_alone() -> None:
    given = {"MA_METRICS_ADDRESS": "0.0.0.0:9464", "MA_METRICS_TOKEN": "a-token-of-some-length"}
    assert env.read(VALUES | given).monitoring.address is not None
    assert "a-token-of" not in repr(env.read(VALUES | given))
