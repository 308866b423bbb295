"""Notes, known faults and takings: who may, what they mute, when they end, and that they outlive replays."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Exists
from rest_framework.test import APIClient

from agents.models import BreakerTrip, LaunchSetting
from console.audit.models import AuditEntry
from console.operations.operation import perform
from console.operations.refusals import NotAllowed, Refused, WronglyAsked
from dlq.annotations import AddNote, EndTaking, HandOver, MuteLetters, Take, Unmute
from dlq.models import DeadLetter, KnownFault, LetterState, Note, Taking
from dlq.models.annotation import fault_of_row, open_takings
from tests.web import letters, reports
from tests.web.rows import NOW, api_client, make_person
from tests.web.teams import teammate

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(hours=1)
FINGERPRINT = "f" * 64


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def three(orders: LaunchSetting) -> list[DeadLetter]:
    """The first two died of the same."""
    found = [letters.dead("orders", number, f"ID:{number}") for number in (10, 11, 12)]
    DeadLetter.objects.filter(orig_message_id__lt=12).update(fingerprint=FINGERPRINT)
    return list(DeadLetter.objects.filter(pk__in=[each.pk for each in found]).order_by("orig_message_id"))


def muted(now: Any = NOW) -> list[int]:
    rows = DeadLetter.objects.filter(Exists(fault_of_row(now)))
    return sorted(rows.values_list("orig_message_id", flat=True))


def about(model: Any, **named: Any) -> Any:
    return model(**{"setting_key": "orders"} | named)


def mute(by: User, now: Any = NOW, until: Any = None, **named: Any) -> KnownFault:
    fault: KnownFault = perform(MuteLetters, about(KnownFault, **named), by, now, until=until).made
    return fault


def take(by: User, text: str = "", **named: Any) -> Taking:
    taking: Taking = perform(Take, about(Taking, **named), by, NOW, text=text).made
    return taking


@pytest.mark.parametrize(
    ("named", "letters"),
    [
        ({}, [10, 11, 12]),
        ({"fingerprint": FINGERPRINT}, [10, 11]),
        ({"message_key": "ID:12"}, [12]),
        ({"setting_key": "invoices"}, []),
    ],
)
def test_a_known_fault_mutes_what_it_is_about(
    three: list[DeadLetter], operator: User, named: dict[str, str], letters: list[int]
) -> None:
    mute(operator, **named)

    assert muted() == letters


def test_a_letter_without_key_and_fingerprint_is_muted_only_with_its_setting(
    orders: LaunchSetting, operator: User
) -> None:
    letters.dead("orders", 10, "ID:10")
    DeadLetter.objects.update(message_key="", fingerprint="")
    mute(operator, fingerprint=FINGERPRINT)
    assert muted() == []
    mute(operator)
    assert muted() == [10]


def test_a_known_fault_ends_by_its_date_and_can_begin_again(three: list[DeadLetter], operator: User) -> None:
    mute(operator, until=LATER)
    assert muted(LATER - timedelta(seconds=1)) == [10, 11, 12] and muted(LATER) == []

    second = mute(operator, LATER)
    assert muted(LATER) == [10, 11, 12]
    assert KnownFault.objects.exclude(pk=second.pk).get().ended_at == LATER


def test_a_known_fault_is_known_once_and_ended_once(three: list[DeadLetter], operator: User) -> None:
    fault = mute(operator)
    with pytest.raises(Refused, match="The error is already marked as known."):
        mute(operator)
    perform(Unmute, fault, operator, LATER)
    with pytest.raises(Refused, match="This entry is already closed."):
        perform(Unmute, fault, operator, LATER)

    assert muted(LATER) == []
    assert list(AuditEntry.objects.order_by("id").values_list("action", "result")) == [
        ("dead_letters.mute", "done"), ("dead_letters.mute", "refused"),
        ("dead_letters.unmute", "done"), ("dead_letters.unmute", "refused"),
    ]  # fmt: skip


def test_a_fault_outlives_a_replay(orders: LaunchSetting, three: list[DeadLetter], operator: User) -> None:
    mute(operator, message_key="ID:12")
    letters.given_back(orders, three[2])
    again = letters.dead("orders", 99, "ID:12")

    assert again.pk != three[2].pk and 99 in muted()
    assert DeadLetter.objects.get(pk=three[2].pk).state == LetterState.GIVEN_BACK


@pytest.mark.parametrize(
    ("named", "target"),
    [
        ({}, "setting:orders"),
        ({"fingerprint": FINGERPRINT}, f"setting:orders fingerprint:{FINGERPRINT}"),
        ({"message_key": "ID:10"}, "setting:orders case:ID:10"),
    ],
)
def test_the_audit_names_what_a_note_is_about_and_not_what_it_says(
    orders: LaunchSetting, operator: User, named: dict[str, str], target: str
) -> None:
    note = perform(AddNote, about(Note, **named), operator, NOW, text=" told Ann ").made

    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target, entry.setting_key) == ("note.add", target, "orders")
    assert (entry.reason, entry.detail) == ("", {"note": note.pk})
    assert (note.text, note.by, note.by_name, note.at) == ("told Ann", operator, "operator", NOW)


def test_the_audit_says_why_it_is_muted(orders: LaunchSetting, operator: User) -> None:
    given = {"ticket": "OPS-1", "text": "the dump is read", "until": LATER}
    fault = perform(MuteLetters, about(KnownFault), operator, NOW, **given).made

    entry = AuditEntry.objects.get()
    assert entry.reason == "OPS-1 · the dump is read"
    assert entry.detail == {"fault": fault.pk, "until": LATER.isoformat()}


def test_one_person_takes_it_and_hands_it_over(three: list[DeadLetter], operator: User) -> None:
    other = make_person("other", "operator")
    taken = take(operator, "reading the dump", fingerprint=FINGERPRINT)
    with pytest.raises(Refused, match="Already assigned to operator."):
        take(other, fingerprint=FINGERPRINT)
    given = perform(HandOver, taken, operator, LATER, to="other").made
    with pytest.raises(Refused, match="This entry is already closed."):
        perform(HandOver, taken, operator, LATER, to="other")

    assert (given.by, given.text, given.at) == (other, "reading the dump", LATER)
    assert open_takings().get() == given
    entry = AuditEntry.objects.get(action="assignment.hand_over", result="done")
    assert (entry.reason, entry.detail) == ("reading the dump", {"to": "other", "taking": given.pk})
    perform(EndTaking, given, operator, LATER)
    assert not open_takings().exists() and Taking.objects.count() == 2


@pytest.mark.parametrize(("text", "kept"), [(None, "mine"), ("", ""), ("yours", "yours")])
def test_another_note_replaces_the_one_that_is_handed_over(
    orders: LaunchSetting, operator: User, text: str | None, kept: str
) -> None:
    make_person("other", "operator")
    given = perform(HandOver, take(operator, "mine"), operator, LATER, to="other", text=text).made
    assert given.text == kept


def test_a_trip_is_taken_beside_its_setting(orders: LaunchSetting, operator: User) -> None:
    trip = BreakerTrip.objects.create(setting=orders, reason="any_type", at=NOW)
    take(operator)
    taken = take(operator, trip=trip.pk)

    assert open_takings().get(trip=trip.pk) == taken
    with pytest.raises(Refused, match="Already assigned to"):
        take(operator, trip=trip.pk)
    details = AuditEntry.objects.filter(result="done").order_by("-pk").values_list("detail", flat=True)
    assert details[0] == {"trip": trip.pk, "taking": taken.pk}


def test_it_is_handed_only_to_who_may_see_it(orders: LaunchSetting, operator: User, outsider: User) -> None:
    taken = take(operator)
    for name, why in (
        (
            "outsider",
            (
                "Cannot reassign to outsider: they have no permission to view these "
                "messages. Choose another assignee."
            ),
        ),
        ("nobody", "User “nobody” not found. Check the name."),
    ):
        with pytest.raises(WronglyAsked, match=why):
            perform(HandOver, taken, operator, LATER, to=name)
    assert open_takings().get() == taken


@pytest.mark.parametrize("named", [{"setting_key": ""}, {"fingerprint": "a", "message_key": "b"}])
@pytest.mark.parametrize(("operation", "model"), [(AddNote, Note), (MuteLetters, KnownFault), (Take, Taking)])
def test_nothing_is_kept_of_what_is_about_nothing_or_two_things(
    orders: LaunchSetting, operator: User, operation: Any, model: Any, named: dict[str, str]
) -> None:
    with pytest.raises(WronglyAsked) as refused:
        perform(operation, about(model, **named), operator, NOW)
    assert refused.value.code == "nothing_named"
    assert not model.objects.exists() and not AuditEntry.objects.exists()


def test_who_may_only_look_is_refused_and_the_attempt_is_written_down(
    orders: LaunchSetting, viewer: User
) -> None:
    with pytest.raises(NotAllowed, match="Can replay dead letters"):
        perform(AddNote, about(Note), viewer, NOW, text="hello")

    assert not Note.objects.exists()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.result, entry.by_name, entry.setting_key) == (
        "note.add",
        "refused",
        "viewer",
        "orders",
    )


# -- REST ----------------------------------------------------------------------------------------------------


def posted(person: User, path: str, **data: object) -> tuple[int, dict[str, object]]:
    client: APIClient = api_client(person)
    answer = client.post(f"/api/v1/{path}/", data, format="json")
    return answer.status_code, answer.json()


def test_rest_writes_and_lists_what_people_know(
    three: list[DeadLetter], operator: User, viewer: User
) -> None:
    code, note = posted(operator, "notes", setting="orders", message_key="ID:10", text="told")
    assert code == 201 and (note["text"], note["by_name"]) == ("told", "operator")
    code, fault = posted(operator, "known-faults", setting="orders", fingerprint=FINGERPRINT, ticket="OPS-7")
    assert (
        code == 201 and posted(operator, "known-faults", setting="orders", fingerprint=FINGERPRINT)[0] == 409
    )
    code, taking = posted(operator, "takings", setting="orders", text="mine")
    assert code == 201

    reading = api_client(viewer)
    for path, count in (("notes/?setting=orders", 1), ("notes/?message_key=ID:11", 0), ("takings/?open=true",
        1),
                        ("known-faults/?open=true", 1), ("known-faults/?open=false", 0)):  # fmt: skip
        assert len(reading.get(f"/api/v1/{path}").json()["results"]) == count, path
    assert posted(viewer, f"known-faults/{fault['id']}/end")[0] == 403
    assert posted(operator, f"known-faults/{fault['id']}/end")[1]["ended_by"] == "operator"
    assert posted(operator, f"known-faults/{fault['id']}/end")[0] == 409
    make_person("other", "operator")
    code, given = posted(operator, f"takings/{taking['id']}/hand-over", to="other")
    assert code == 200 and (given["by_name"], given["text"]) == ("other", "mine")
    assert posted(operator, f"takings/{given['id']}/end")[1]["ended_at"]
    assert posted(operator, f"takings/{given['id']}/end")[0] == 409


def test_rest_refuses_what_names_nothing(orders: LaunchSetting, operator: User) -> None:
    assert posted(operator, "notes", setting="nowhere", text="x")[0] == 400
    assert posted(operator, "notes", setting="orders", fingerprint="a", message_key="b", text="x")[0] == 400
    assert posted(operator, "takings", text="x")[0] == 400
    assert posted(operator, "takings", trip=7)[0] == 404
    assert posted(operator, "takings", setting="orders")[0] == 201
    assert posted(operator, "takings/9/hand-over", to="operator")[0] == 404
    taking = Taking.objects.get()
    for said in ({"to": "nobody"}, {"to": ""}, {}, {"to": "operator", "note": "x"}):
        assert posted(operator, f"takings/{taking.pk}/hand-over", **said)[0] == 400, said
    past = (NOW - timedelta(days=1)).isoformat()
    code, answer = posted(operator, "known-faults", setting="orders", until=past)
    assert (code, answer["error"]) == (400, "past")
    assert open_takings().get() == taking and not KnownFault.objects.exists()


def test_rest_shows_each_person_what_is_of_their_pools(
    orders: LaunchSetting, operator: User, outsider: User
) -> None:
    perform(AddNote, about(Note), operator, NOW, text="secret of the pool")
    mate = teammate(orders.pool, rights=("see_letters", "give_back"))
    mate.groups.remove(*mate.groups.filter(name="viewer"))

    assert api_client(outsider).get("/api/v1/notes/").json()["results"] == []
    assert len(api_client(mate).get("/api/v1/notes/").json()["results"]) == 1
    assert posted(mate, "notes", setting="orders", text="mine")[0] == 201
    assert posted(outsider, "notes", setting="orders", text="mine")[0] == 403
