"""Notes, known faults and takings: who may, what they mute, when they end, and that they outlive replays."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.models import BreakerTrip, LaunchSetting
from console.audit.models import AuditEntry
from dlq import remarks
from dlq.models import DeadLetter, KnownFault, LetterState, Note, Taking
from dlq.remarks import About, RemarkRefused
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


def numbers(of: bool, now=NOW) -> list[int]:  # type: ignore[no-untyped-def]
    rows = (remarks.muted if of else remarks.not_muted)(DeadLetter.objects.all(), now)
    return sorted(rows.values_list("orig_message_id", flat=True))


@pytest.mark.parametrize(
    ("about", "muted"),
    [
        (About("orders"), [10, 11, 12]),
        (About("orders", fingerprint=FINGERPRINT), [10, 11]),
        (About("orders", message_key="ID:12"), [12]),
        (About("invoices"), []),
    ],
)
def test_a_known_fault_mutes_what_it_is_about(
    three: list[DeadLetter], operator: User, about: About, muted: list[int]
) -> None:
    remarks.mute(about, ticket="OPS-1", by=operator, now=NOW)

    assert numbers(True) == muted and numbers(False) == sorted({10, 11, 12} - set(muted))
    assert [letter.orig_message_id for letter in three if remarks.is_muted(letter, NOW)] == muted


def test_a_letter_without_key_and_fingerprint_is_muted_only_with_its_setting(
    orders: LaunchSetting, operator: User
) -> None:
    letter = letters.dead("orders", 10, "ID:10")
    DeadLetter.objects.update(message_key="", fingerprint="")
    letter.refresh_from_db()
    remarks.mute(About("orders", fingerprint=FINGERPRINT), by=operator, now=NOW)
    assert numbers(True) == [] and not remarks.is_muted(letter, NOW)
    remarks.mute(About("orders"), by=operator, now=NOW)
    assert numbers(True) == [10] and remarks.is_muted(letter, NOW)


def test_a_known_fault_ends_by_its_date_and_can_begin_again(three: list[DeadLetter], operator: User) -> None:
    about = About("orders")
    remarks.mute(about, until=LATER, by=operator, now=NOW)
    assert numbers(True, LATER - timedelta(seconds=1)) == [10, 11, 12] and numbers(True, LATER) == []

    second = remarks.mute(about, by=operator, now=LATER)
    assert numbers(True, LATER) == [10, 11, 12]
    assert KnownFault.objects.exclude(pk=second.pk).get().ended_at == LATER


def test_a_known_fault_is_known_once_and_ended_once(three: list[DeadLetter], operator: User) -> None:
    fault = remarks.mute(About("orders"), by=operator, now=NOW)
    with pytest.raises(RemarkRefused, match="known already"):
        remarks.mute(About("orders"), by=operator, now=NOW)
    remarks.end_fault(fault, by=operator, now=LATER)
    with pytest.raises(RemarkRefused, match="ended already"):
        remarks.end_fault(fault, by=operator, now=LATER)

    assert numbers(True, LATER) == []
    assert list(AuditEntry.objects.order_by("id").values_list("action", "result")) == [
        ("mute", "done"), ("unmute", "done"),
    ]  # fmt: skip


def test_notes_and_faults_outlive_a_replay(
    orders: LaunchSetting, three: list[DeadLetter], operator: User
) -> None:
    about = About("orders", message_key="ID:12")
    remarks.note(about, "the customer was told", by=operator, now=NOW)
    remarks.mute(about, by=operator, now=NOW)
    letters.given_back(orders, three[2])
    again = letters.dead("orders", 99, "ID:12")

    assert again.pk != three[2].pk
    assert [note.text for note in remarks.notes_of(again)] == ["the customer was told"]
    assert remarks.is_muted(again, NOW)
    assert DeadLetter.objects.get(pk=three[2].pk).state == LetterState.GIVEN_BACK


def test_a_letter_has_the_notes_of_its_case_its_fingerprint_and_its_setting(
    three: list[DeadLetter], operator: User
) -> None:
    for about in (About("orders"), About("orders", fingerprint=FINGERPRINT), About("orders",
        message_key="ID:10"),
                  About("orders", message_key="ID:11"), About("invoices")):  # fmt: skip
        remarks.note(about, about.target, by=operator, now=NOW)

    assert {note.text for note in remarks.notes_of(three[0])} == {
        "setting:orders", f"setting:orders fingerprint:{FINGERPRINT}", "setting:orders case:ID:10",
    }  # fmt: skip


def test_one_person_takes_it_and_hands_it_over(three: list[DeadLetter], operator: User) -> None:
    about, other = About("orders", fingerprint=FINGERPRINT), make_person("other", "operator")
    taken = remarks.take(about, text="reading the dump", by=operator, now=NOW)
    with pytest.raises(RemarkRefused, match="operator has taken it already"):
        remarks.take(about, by=other, now=NOW)
    given = remarks.hand_over(taken, other, by=operator, now=LATER)
    with pytest.raises(RemarkRefused, match="ended already"):
        remarks.hand_over(taken, other, by=operator, now=LATER)

    assert (given.by, given.text, given.at) == (other, "reading the dump", LATER)
    assert remarks.taking_of(about) == given
    remarks.end_taking(given, by=operator, now=LATER)
    assert remarks.taking_of(about) is None and Taking.objects.count() == 2


def test_a_trip_is_taken_beside_its_setting(orders: LaunchSetting, operator: User) -> None:
    trip = BreakerTrip.objects.create(setting=orders, reason="any_type", at=NOW)
    remarks.take(About("orders"), by=operator, now=NOW)
    taken = remarks.take(About(""), trip=trip, by=operator, now=NOW)

    assert taken.setting_key == "orders" and remarks.taking_of_trip(trip) == taken
    with pytest.raises(RemarkRefused, match="taken it already"):
        remarks.take(About(""), trip=trip, by=operator, now=NOW)


def test_it_is_handed_only_to_who_may_see_it(orders: LaunchSetting, operator: User, outsider: User) -> None:
    taken = remarks.take(About("orders"), by=operator, now=NOW)
    with pytest.raises(RemarkRefused, match="outsider may not see"):
        remarks.hand_over(taken, outsider, by=operator, now=LATER)
    assert remarks.taking_of(About("orders")) == taken


def test_who_may_only_look_is_refused_and_the_attempt_is_written_down(
    orders: LaunchSetting, viewer: User
) -> None:
    with pytest.raises(RemarkRefused) as refused:
        remarks.note(About("orders"), "hello", by=viewer, now=NOW)

    assert refused.value.code == "not_allowed" and not Note.objects.exists()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.result, entry.by_name, entry.setting_key) == (
        "note",
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


def test_rest_refuses_what_names_nothing(orders: LaunchSetting, operator: User) -> None:
    assert posted(operator, "notes", setting="nowhere", text="x")[0] == 400
    assert posted(operator, "notes", setting="orders", fingerprint="a", message_key="b", text="x")[0] == 400
    assert posted(operator, "takings", text="x")[0] == 400
    assert posted(operator, "takings", trip=7)[0] == 404
    assert posted(operator, "takings", setting="orders")[0] == 201
    assert posted(operator, "takings/9/hand-over", to="operator")[0] == 404


def test_rest_shows_each_person_what_is_of_their_pools(
    orders: LaunchSetting, operator: User, outsider: User
) -> None:
    remarks.note(About("orders"), "secret of the pool", by=operator, now=NOW)
    mate = teammate(orders.pool, rights=("see_letters", "give_back"))
    mate.groups.remove(*mate.groups.filter(name="viewer"))

    assert api_client(outsider).get("/api/v1/notes/").json()["results"] == []
    assert len(api_client(mate).get("/api/v1/notes/").json()["results"]) == 1
    assert posted(mate, "notes", setting="orders", text="mine")[0] == 201
    assert posted(outsider, "notes", setting="orders", text="mine")[0] == 403
