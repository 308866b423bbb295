"""What a pre-flight showed is what moves: dead letters that come between look and confirmation stay."""

import json
import sys
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from dlq.cli import jobs
from dlq.models import DeadLetter, ReplayItem, ReplayJob
from dlq.replay.preflight.rules import CODES
from dlq.replay.worker.planner import Planner
from tests.web.factories import NODE, World, make_letter
from tests.web.pages import broker_answers, broker_figures, looked_at, signed_in
from tests.web.test_pages_edit_letter import fields

KEY = "mail-send"
BACK = f"/dead-letters/{KEY}/give-back/"
SCOPES = ["group=1&fingerprint=v1:a", "match=1&exception=Timeout", "all=1"]


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Three dead letters of one error, and nothing else."""
    broker_answers(monkeypatch, broker_figures(waiting=0, delayed=0, in_delivery=0))
    DeadLetter.objects.filter(queue=f"DLQ.{KEY}").delete()
    die(world, 1, 2, 3)
    return signed_in(world, "chief")


@pytest.fixture
def rest(world: World, client: Client) -> APIClient:
    rest = APIClient()
    rest.force_authenticate(world.people["chief"])
    return rest


def die(world: World, *numbers: int) -> list[int]:
    values: dict[str, Any] = {"exception_type": "Timeout", "fingerprint": "v1:a"}
    return [make_letter(world, KEY, "x", orig_message_id=number, **values).pk for number in numbers]


def form_in(html: str) -> dict[str, Any]:
    return fields(html) | {"acknowledge": CODES, "in_order": ""}


def confirmed(client: Client, html: str, **more: Any) -> ReplayJob:
    answer = client.post(BACK, form_in(html) | more)
    assert answer.status_code == 302, answer.content.decode()
    return ReplayJob.objects.get(setting_key=KEY)


def planned(job: ReplayJob) -> list[int]:
    """The ids at the broker of what the job moves."""
    while Planner(job, NODE).step(timezone.now()):
        pass
    numbers = ReplayItem.objects.filter(job=job, state="planned").values_list(
        "letter__orig_message_id", flat=True
    )
    return sorted(numbers)


@pytest.mark.parametrize("scope", SCOPES)
def test_what_dies_after_the_page_was_shown_stays(world: World, client: Client, scope: str) -> None:
    shown = client.get(f"{BACK}?{scope}").content.decode()
    die(world, 4, 5)
    job = confirmed(client, shown)
    assert job.total == 3 and planned(job) == [1, 2, 3]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_page_that_is_shown_once_more_keeps_its_end(world: World, client: Client, scope: str) -> None:
    shown = client.get(f"{BACK}?{scope}").content.decode()
    die(world, 4, 5)
    again = client.post(BACK, form_in(shown) | {"window_from": "22:00"})
    assert again.status_code == 200 and "Replay: 3" in again.content.decode()
    die(world, 6)
    assert planned(confirmed(client, again.content.decode(), window_from="")) == [1, 2, 3]


def test_where_fewer_are_left_than_shown_these_move(world: World, client: Client) -> None:
    shown = client.get(f"{BACK}?{SCOPES[0]}").content.decode()
    die(world, 4, 5)
    DeadLetter.objects.filter(queue=f"DLQ.{KEY}", orig_message_id=3).update(state="gone")
    job = confirmed(client, shown)
    assert job.total == 2 and planned(job) == [1, 2]


def test_of_more_than_were_counted_those_up_to_the_newest_move(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlq.replay.requests.COUNTED", 2)
    shown = client.get(f"{BACK}?{SCOPES[0]}").content.decode()
    assert "Replay: 2+" in shown
    die(world, 4)
    job = confirmed(client, shown, confirm="2")
    assert not job.is_counted and planned(job) == [1, 2, 3]


def test_a_form_without_an_end_takes_what_is_there_now(world: World, client: Client) -> None:
    shown = client.get(f"{BACK}?{SCOPES[0]}").content.decode()
    die(world, 4)
    assert planned(confirmed(client, shown, up_to="")) == [1, 2, 3, 4]


def test_a_rule_edits_what_its_trial_counted(world: World, client: Client) -> None:
    path = f"/dead-letters/{KEY}/edit/"
    rule = {"o-0-op": "set_property", "o-0-place": "region", "o-0-value": "south"}
    shown = client.post(path, {"step": "look", "all": "1", **rule}).content.decode()
    die(world, 4, 5)
    answer = client.post(path, fields(shown) | {"step": "confirm", "acknowledge": CODES, "reason": "x"})
    assert answer.status_code == 302, answer.content.decode()
    assert planned(ReplayJob.objects.get(setting_key=KEY)) == [1, 2, 3]
    again = client.post(path, fields(shown) | {"step": "again"}).content.decode()
    assert "up_to" not in fields(again), "another rule is tried on what is there then"


@pytest.mark.parametrize("scope", [{"all": True}, {"query": "exception=Timeout"}])
def test_the_job_over_rest_may_end_where_its_preflight_did(
    world: World, rest: APIClient, scope: dict[str, Any]
) -> None:
    asked = {"setting": KEY, "acknowledge": CODES, "reason": "x", **scope}
    newest = rest.post("/api/v1/preflight/", asked, format="json").json()["newest"]
    assert newest == DeadLetter.objects.get(queue=f"DLQ.{KEY}", orig_message_id=3).pk
    die(world, 4, 5)
    bounded = asked | {"up_to": newest}
    assert rest.post("/api/v1/preflight/", bounded, format="json").json()["going"] == 3
    job = rest.post("/api/v1/replays/", bounded, format="json").json()
    assert job["total"] == 3 and planned(ReplayJob.objects.get(pk=job["id"])) == [1, 2, 3]


def test_a_list_has_no_end_besides(rest: APIClient) -> None:
    letter = DeadLetter.objects.filter(queue=f"DLQ.{KEY}").latest("pk").pk
    asked = {"setting": KEY, "acknowledge": CODES, "letters": [letter], "up_to": letter}
    answer = rest.post("/api/v1/replays/", asked, format="json")
    assert answer.status_code == 400 and "up_to" in str(answer.json())


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("dlq", *arguments, "--setting", KEY, "--as", "chief", stdout=out, stderr=StringIO())
    return out.getvalue()


HOW = ("replay", "--query", "exception=Timeout", "--reason", "x", "--acknowledge", "all")


def test_the_command_may_end_where_its_preflight_did(world: World, client: Client) -> None:
    text = told("preflight", "--query", "exception=Timeout")
    newest = DeadLetter.objects.get(queue=f"DLQ.{KEY}", orig_message_id=3).pk
    assert f"newest     message {newest}: to leave out later ones, add --up-to {newest}" in text
    die(world, 4, 5)
    job = json.loads(told(*HOW, "--up-to", str(newest), "--json"))
    assert planned(ReplayJob.objects.get(pk=job["id"])) == [1, 2, 3]


def test_who_types_the_number_moves_that_many(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "TYPED_ABOVE", 2)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)

    def typed(_prompt: str) -> str:
        die(world, 4, 5)
        return "3"

    monkeypatch.setattr("builtins.input", typed)
    job = json.loads(told(*HOW, "--json"))
    assert planned(ReplayJob.objects.get(pk=job["id"])) == [1, 2, 3]


def test_the_list_that_somebody_chose_is_what_was_chosen(client: Client) -> None:
    letter = DeadLetter.objects.get(queue=f"DLQ.{KEY}", orig_message_id=2).pk
    shown = looked_at(client, f"{BACK}?letter={letter}")
    assert not [each for _tag, each in shown.found if each.get("name") == "up_to"]
