"""Before letters move: the page that says what will happen, and begins only what was acknowledged."""

from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from console.audit.models import AuditEntry
from dlq.models import Action, DeadLetter, KnownFault, LetterState, ReplayJob, Scope
from dlq.replay import requests
from dlq.replay.preflight import rules
from tests.web.factories import World, make_letter
from tests.web.pages import Elements, broker_answers, broker_figures, looked_at, signed_in

KEY = "mail-send"
BACK = f"/dead-letters/{KEY}/give-back/"


@pytest.fixture
def client(world: World, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Mail is sent by agent version 2.4.1 on live servers, which consume; nothing waits."""
    broker_answers(monkeypatch, broker_figures(waiting=0, delayed=0, in_delivery=0))
    DeadLetter.objects.filter(queue=f"DLQ.{KEY}").delete()
    return signed_in(world, "operator")


def letters(world: World, count: int, **values: Any) -> list[int]:
    return [make_letter(world, KEY, "x", **values).pk for _ in range(count)]


def hidden(page: Elements) -> dict[str, str]:
    """What the form sends by itself."""
    fields = [
        attributes for tag, attributes in page.found if tag == "input" and attributes.get("type") == "hidden"
    ]
    return {str(each["name"]): str(each.get("value") or "") for each in fields if each.get("name") in KEPT}


KEPT = ("all", "match", "group", "query", "letters")


def ticks(page: Elements) -> list[str]:
    return [
        str(each["value"]) for tag, each in page.found if tag == "input" and each.get("name") == "acknowledge"
    ]


def jobs() -> list[ReplayJob]:
    return list(ReplayJob.objects.filter(setting_key=KEY))


def allow(world: World, *names: str) -> None:
    world.people["operator"].user_permissions.add(*Permission.objects.filter(codename__in=names))


def test_it_says_how_many_go_and_why_others_do_not(world: World, client: Client) -> None:
    letters(world, 3, fingerprint="v1:a")
    [gone] = letters(world, 1, state=LetterState.GONE)
    [known] = letters(world, 1, fingerprint="v1:known")
    KnownFault.objects.create(setting_key=KEY, fingerprint="v1:known")
    ids = DeadLetter.objects.filter(queue=f"DLQ.{KEY}").values_list("pk", flat=True)
    other = DeadLetter.objects.filter(queue="DLQ.orders-export").first()
    page = looked_at(client, f"{BACK}?letters={','.join(map(str, ids))},{other.pk}")  # type: ignore[union-attr]

    assert "Will be moved 3" in page.text
    assert f"1 : no longer in the queue ( {gone} )" in page.text
    assert f"1 : the error is marked as known ( {known} )" in page.text
    assert "1 : not from this setting" in page.text
    client.post(BACK, {**hidden(page), "acknowledge": ticks(page), "reason": "mended"})
    [job] = jobs()
    assert (job.scope, job.total, job.skipped, job.reason) == (
        Scope.SELECTION,
        3,
        {"gone": 1, "muted": 1},
        "mended",
    )


def test_nothing_begins_before_each_warning_is_ticked(world: World, client: Client) -> None:
    letters(world, 2, agent_version="2.4.1")
    world.settings[KEY].enabled = False
    world.settings[KEY].save()
    page = looked_at(client, f"{BACK}?all=1")
    assert set(ticks(page)) >= {"disabled", "same_version"}
    assert (
        "The agent version has not changed since the failure. Messages likely to fail again: 2 of 2."
    ) in page.text and (
        "The setting is disabled: the messages wait in its subscription until it is enabled. "
        "The usual order is to replay the messages first, then enable the setting."
    ) in page.text

    answer = client.post(BACK, {**hidden(page), "acknowledge": ["disabled"]})
    assert (
        answer.status_code == 200
        and "The job was not started: acknowledge the warnings below first." in answer.content.decode()
        and not jobs()
    )
    client.post(BACK, {**hidden(page), "acknowledge": ticks(page)})
    [job] = jobs()
    assert (job.scope, job.acknowledged) == (Scope.ALL, sorted(ticks(page)))


def test_many_are_confirmed_by_their_number(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlq.replay.preflight.rules.TYPED_ABOVE", 2)
    letters(world, 3)
    page = looked_at(client, f"{BACK}?all=1")
    sent = {**hidden(page), "acknowledge": ticks(page)}
    assert "Type 3 to confirm" in page.text
    for typed in ("", "2"):
        assert client.post(BACK, sent | {"confirm": typed}).status_code == 200 and not jobs()
    assert client.post(BACK, sent | {"confirm": "3"}).status_code == 302 and jobs()


def test_how_fast_when_and_step_by_step_are_kept_with_the_job(world: World, client: Client) -> None:
    letters(world, 30, fingerprint="v1:a")
    page = looked_at(client, f"{BACK}?all=1")
    assert "ladder_advised" in ticks(page)
    sent: dict[str, Any] = {
        **hidden(page),
        "acknowledge": [code for code in ticks(page) if code != "ladder_advised"],
    }
    sent |= {"ladder": "on", "ladder_percent": "20", "per_second": "2.5"}
    wrong = client.post(BACK, sent | {"window_from": "22:00"})
    assert "Set both ends of the time window, or neither." in wrong.content.decode() and not jobs()
    client.post(BACK, sent | {"window_from": "22:00", "window_until": "06:00"})
    [job] = jobs()
    assert (job.ladder, job.ladder_percent, job.per_second, str(job.window_from)) == (
        True,
        20,
        2.5,
        "22:00:00",
    )


def test_a_filter_and_a_group_are_asked_for_as_they_are(world: World, client: Client) -> None:
    letters(world, 2, exception_type="smtp.Refused", fingerprint="v1:r")
    letters(world, 1, exception_type="smtp.Slow", fingerprint="v1:s")
    page = looked_at(client, f"{BACK}?group=1&fingerprint=v1:r")
    assert (
        "All messages that match the filter: Fingerprint: v1:r" in page.text
        and "Will be moved 2" in page.text
    )
    client.post(BACK, {**hidden(page), "acknowledge": ticks(page)})
    [job] = jobs()
    assert (job.scope, job.query, job.total) == (Scope.GROUP, "fingerprint=v1%3Ar", 2)

    answer = client.get(f"{BACK}?match=1&span=9y", follow=True)
    assert (
        "Nothing was selected: the filter is invalid. Correct the filter and try again."
        in answer.content.decode()
    )


def test_letters_are_redirected_to_another_setting_of_the_destination(world: World, client: Client) -> None:
    letter = make_letter(world, "orders-export", "x").pk
    path = f"/dead-letters/orders-export/redirect/?letter={letter}"
    assert client.get(path).status_code == 403
    allow(world, "redirect")
    page = looked_at(client, path)
    sent = {**hidden(page), "acknowledge": ticks(page)}
    assert client.post(path, sent | {"target": "mail-send"}).status_code == 200  # of another destination
    client.post(path, sent | {"target": "orders-archive", "acknowledge": ["no_consumer", "ordered"]})
    job = ReplayJob.objects.get(action=Action.REDIRECT)
    assert (job.source_queue, job.target_queue, job.target_key) == (
        "DLQ.orders-export", "orders-archive", "orders-archive",
    )  # fmt: skip


def test_letters_are_discarded_with_a_reason(world: World, client: Client) -> None:
    [letter] = letters(world, 1)
    path = f"/dead-letters/{KEY}/discard/?letter={letter}"
    assert client.get(path).status_code == 403
    allow(world, "discard")
    page = looked_at(client, path)
    assert "Save a copy first?" in page.text and not ticks(page)
    assert client.post(path, hidden(page)).status_code == 200 and not jobs()
    client.post(path, hidden(page) | {"reason": "test data"})
    [job] = jobs()
    assert (job.action, job.target_queue, job.reason) == (Action.DISCARD, "DLQ.bin", "test data")
    assert AuditEntry.objects.get(action="dead_letters.discard", result="done").operation == job.pk


def test_above_the_limit_of_the_site_it_waits_for_another_person(
    world: World, client: Client, settings: Any
) -> None:
    settings.MA_SECOND_PERSON_ABOVE = 2
    few, many = letters(world, 2), letters(world, 3)
    allow(world, "discard", "approve")
    path = f"/dead-letters/{KEY}/discard/?letters="
    assert "Can approve requests of other users" not in looked_at(client, path + ",".join(map(str, few))).text
    page = looked_at(client, path + ",".join(map(str, many)))
    assert (
        "A job with more than 2 messages needs approval from a second person before it starts."
    ) in page.text
    client.post(path, hidden(page) | {"reason": "test data"})
    [job] = jobs()
    assert (job.state, job.needs_second) == ("awaiting", True)
    assert client.post(f"/replays/{job.pk}/approve/").status_code in (200, 302, 403)
    job.refresh_from_db()
    assert job.state == "awaiting", "never by who asked"


def test_what_is_more_than_was_looked_at_may_be_more_than_one_person_may_move(
    world: World, client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlq.replay.requests.COUNTED", 20)
    settings.MA_SECOND_PERSON_ABOVE = 25
    path = f"{BACK}?match=1&exception=Timeout"
    letters(world, 25, exception_type="Timeout", fingerprint="v1:t")
    assert "Can approve requests of other users" not in looked_at(client, path).text
    letters(world, 1, exception_type="Timeout", fingerprint="v1:t")
    page = looked_at(client, path)
    assert (
        "A job with more than 25 messages needs approval from a second person before it starts."
    ) in page.text
    client.post(BACK, {**hidden(page), "acknowledge": ticks(page), "confirm": "20"})
    [job] = jobs()
    assert (job.state, job.needs_second, job.total) == ("awaiting", True, 20)


def test_one_letter_and_a_list_lead_to_every_action(world: World, client: Client) -> None:
    [letter] = letters(world, 1)
    allow(world, "discard", "redirect")
    shown = client.get(f"/letters/{letter}/").content.decode()
    for action in ("give-back", "redirect", "discard"):
        assert f"/dead-letters/{KEY}/{action}/?letter={letter}" in shown, action
    shown = client.get(f"/dead-letters/{KEY}/").content.decode()
    for action in ("redirect", "discard"):
        assert f'formaction="/dead-letters/{KEY}/{action}/"' in shown, action
        assert f"/dead-letters/{KEY}/{action}/?all=1" in shown, action
    DeadLetter.objects.filter(pk=letter).update(queue="DLQ.bin", orig_queue=f"DLQ.{KEY}")
    shown = client.get(f"/letters/{letter}/").content.decode()
    assert f"/dead-letters/{KEY}/put-back/?letter={letter}" in shown and "/give-back/" not in shown


def test_a_confirmation_is_judged_once(world: World, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    letters(world, 3)
    page = looked_at(client, f"{BACK}?all=1")
    judged, fly = list[str](), requests.run_preflight

    def counted(asked: requests.ReplayRequest, by: Any, now: datetime) -> rules.PreflightResult:
        judged.append(asked.scope)
        return fly(asked, by, now)

    monkeypatch.setattr(requests, "run_preflight", counted)
    client.post(BACK, {**hidden(page), "acknowledge": ticks(page)})
    assert judged == [Scope.ALL] and [job.total for job in jobs()] == [3]


def test_what_is_refused_is_in_the_audit(world: World, client: Client) -> None:
    [letter] = letters(world, 1)
    client.post(f"/dead-letters/{KEY}/discard/", {"letter": str(letter), "reason": "no"})
    refused = AuditEntry.objects.get(result="refused")
    assert (refused.action, refused.setting_key, refused.by_name) == ("dead_letters.discard", KEY, "operator")
    client.post(BACK, {"letters": "999999"}, follow=True)
    assert AuditEntry.objects.filter(action="dead_letters.replay", result="refused").count() == 1
    assert not jobs()
