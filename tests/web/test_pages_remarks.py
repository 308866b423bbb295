"""Notes, known faults and takings on pages: what stands there, who may add to it, and that nothing of it is
markup."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import BreakerTrip
from console.operations.operation import perform
from dlq.annotations import MuteLetters, Take, why_not_annotate
from dlq.models import DeadLetter, KnownFault, Note, Taking
from dlq.models.annotation import active_faults, open_takings
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.rows import NOW

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture
def letter(world: World) -> DeadLetter:
    found = (
        DeadLetter.objects.filter(setting_key="orders-export", state="dead").exclude(fingerprint="").first()
    )
    assert found and found.message_key
    return found


def about(letter: DeadLetter, of: str, **more: str) -> dict[str, str]:
    named = {
        "setting": letter.setting_key,
        "fingerprint": letter.fingerprint,
        "message_key": letter.message_key,
    }
    return named | {"of": of, "next": f"/letters/{letter.pk}/"} | more


def test_whether_somebody_may_annotate_asks_for_the_setting_once(world: World, letter: DeadLetter) -> None:
    with CaptureQueriesContext(connection) as asked:
        refusals = {name: why_not_annotate(user, letter.setting_key) for name, user in world.people.items()}
    settings = [each for each in asked.captured_queries if 'FROM "agents_launchsetting"' in each["sql"]]
    assert not refusals["operator"] and refusals["viewer"] and refusals["outsider"]
    assert len(settings) == len(refusals)


def test_a_note_is_shown_as_text_and_in_the_case_file(world: World, letter: DeadLetter) -> None:
    client = signed_in(world, "operator")
    answer = client.post("/remarks/note/", about(letter, "case", text=f"told Ann {HOSTILE}"), follow=True)

    assert answer.request["PATH_INFO"] == f"/letters/{letter.pk}/"
    page = looked_at(client, f"/letters/{letter.pk}/")
    assert page.inline_scripts == 0 and "Note by operator" in page.text
    assert page.text.count("told Ann <script>alert(1)</script>") == 2 and "\u202e" not in page.text
    assert re.search(r"operator [^·]{1,40} · this message", page.text), "who wrote it, when, and about what"
    assert Note.objects.get().message_key == letter.message_key


def test_what_is_known_mutes_until_its_date_and_can_be_ended(world: World, letter: DeadLetter) -> None:
    client = signed_in(world, "operator")
    client.post("/remarks/mute/", about(letter, "fingerprint", ticket="OPS-7", until="4h"))
    fault = KnownFault.objects.get()

    assert (fault.fingerprint, fault.message_key) == (letter.fingerprint, "")
    assert fault.until and (fault.until - fault.at).total_seconds() == 4 * 3600
    text = looked_at(client, f"/letters/{letter.pk}/").text
    assert "Known error · OPS-7 · the whole error group" in text
    assert re.search(r"the whole error group operator [^·]{1,40} · until ", text), "who said it, and when"
    client.post(f"/remarks/faults/{fault.pk}/end/", {"next": "/"})
    assert not active_faults(fault.at).exists()


def test_who_takes_it_stands_there_and_hands_it_over(world: World, letter: DeadLetter) -> None:
    client = signed_in(world, "operator")
    client.post("/remarks/take/", about(letter, "fingerprint", text="reading the dump"))
    taking = Taking.objects.get()
    assert "Assigned to operator" in looked_at(client, f"/letters/{letter.pk}/").text

    again = signed_in(world, "chief").post("/remarks/take/", about(letter, "fingerprint"), follow=True)
    assert "Already assigned to" in again.content.decode()
    client.post(f"/remarks/takings/{taking.pk}/hand-over/", {"to": "chief", "next": "/"})
    assert "Assigned to chief" in looked_at(client, f"/letters/{letter.pk}/").text


def test_a_trip_is_taken_on_its_page(world: World) -> None:
    assert world.launches
    trip: BreakerTrip = world.launches.trip
    client = signed_in(world, "operator")
    data = {"setting": trip.setting.key, "of": "setting", "trip": str(trip.pk), "next": f"/trips/{trip.pk}/"}
    client.post("/remarks/take/", data)

    assert open_takings().filter(trip=trip.pk)
    assert "Assigned to operator" in looked_at(client, f"/trips/{trip.pk}/").text
    assert "Assigned to operator" in looked_at(signed_in(world, "viewer"), f"/trips/{trip.pk}/").text
    assert "Assigned to operator" in looked_at(signed_in(world, "viewer"), "/trips/").text


@pytest.mark.parametrize("name", ["viewer", "outsider"])
def test_only_who_may_give_back_writes(world: World, letter: DeadLetter, name: str) -> None:
    operator = world.people["operator"]
    taking = perform(Take, Taking(setting_key="orders-export"), operator, NOW).made
    fault = perform(MuteLetters, KnownFault(setting_key="orders-export"), operator, NOW).made
    client = signed_in(world, name)

    for path in ("note", "mute", "take"):
        answer = client.post(f"/remarks/{path}/", about(letter, "case", text="x"))
        assert answer.status_code == 403, path
    for path in (f"takings/{taking.pk}/end", f"faults/{fault.pk}/end"):
        assert client.post(f"/remarks/{path}/", {}).status_code == 403, path
    assert client.post(f"/remarks/takings/{taking.pk}/hand-over/", {"to": "chief"}).status_code == 403
    assert Note.objects.count() == 0 and open_takings().get() == taking


def test_a_form_of_another_site_or_a_look_writes_nothing(world: World, letter: DeadLetter) -> None:
    strict: Client = signed_in(world, "operator", enforce_csrf_checks=True)

    assert strict.post("/remarks/note/", about(letter, "case", text="x")).status_code == 403
    assert strict.get("/remarks/note/", about(letter, "case", text="x")).status_code == 405
    assert not Note.objects.exists()


def test_it_never_leads_to_another_site_and_never_mutes_more_than_was_meant(
    world: World, letter: DeadLetter
) -> None:
    client = signed_in(world, "operator")
    away = client.post("/remarks/note/", about(letter, "case", text="x") | {"next": "https://evil.example/"})
    assert away.headers["Location"] == "/dead-letters/"

    for of, part in (("case", "message_key"), ("fingerprint", "fingerprint")):
        assert client.post("/remarks/mute/", about(letter, of) | {part: ""}).status_code == 404
    assert not KnownFault.objects.exists()
