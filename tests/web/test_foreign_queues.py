"""Who may name and forget foreign dead-letter queues, on the page and over REST, and what the audit keeps of
it."""

import os

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from agents.models import LaunchSetting
from broker.management.desired_topology import Queue, base_topology
from broker.management.topology import apply
from broker.memory.broker import MemoryBroker
from console import broker as broker_service
from console.audit.models import AuditEntry
from console.reasons import said
from dlq.models import LetterQueue
from tests.web import letters
from tests.web.rows import api_client

OLD = "old <b>&\u202edlq"


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryBroker:
    """With a foreign queue of a hostile name."""
    broker = MemoryBroker()
    monkeypatch.setattr(broker_service, "_connection", broker.management())
    monkeypatch.setattr(broker_service, "_process", os.getpid())
    apply(broker.management(), base_topology("MA.DLA"))
    for name in ("old", OLD):
        broker.management().call("broker", "createAddress", f"at.{name}", "MULTICAST")
        apply(broker.management(), [Queue(name, f"at.{name}")])
    return broker


@pytest.fixture
def keeper(viewer: User) -> User:
    """May see every letter and manage foreign queues."""
    viewer.user_permissions.add(Permission.objects.get(codename="manage_foreign"))
    return User.objects.get(pk=viewer.pk)


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def results(action: str) -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.filter(action=action).order_by("pk")
    return list(rows.values_list("by_name", "result", "target"))


def test_a_queue_is_named_and_forgotten_on_its_page(keeper: User) -> None:
    client = signed_in(keeper)
    text = client.post(
        "/foreign-queues/", {"queue": "old", "note": "<i>theirs"}, follow=True
    ).content.decode()
    assert (
        "The queue is now monitored. Its messages appear in the lists after its next scan." in text
        and "&lt;i&gt;theirs" in text
        and "not counted yet" in text
    )
    row = LetterQueue.objects.get(queue="old")
    assert (row.foreign, row.address, row.added_by) == (True, "at.old", keeper)
    LetterQueue.objects.filter(pk=row.pk).update(broker_count=1204, indexed=1198)
    text = client.get("/foreign-queues/").content.decode()
    assert "broker 1,204 · index 1,198 · catching up" in text and "queue=old" in text
    assert (
        "The queue was not added: it is already monitored."
        in client.post("/foreign-queues/", {"queue": "old"}, follow=True).content.decode()
    )
    text = client.post(f"/foreign-queues/{row.pk}/forget/", follow=True).content.decode()
    assert (
        "The queue is no longer monitored. Its messages stay on the broker." in text
        and not LetterQueue.objects.filter(foreign=True).exists()
    )
    done, refused = ("viewer", "done", "queue:old"), ("viewer", "refused", "queue:old")
    assert results("foreign_queue.follow") == [done, refused]
    assert results("foreign_queue.unfollow") == [done]


def test_a_hostile_name_is_shown_as_text(keeper: User) -> None:
    LetterQueue.objects.create(queue=OLD, foreign=True, problem=said("<script>"))
    text = signed_in(keeper).get("/foreign-queues/").content.decode()
    assert "<b>&" not in text and "\u202e" not in text and "<script>" not in text.replace("<script src", "")


@pytest.mark.parametrize(
    ("queue", "word"),
    [("nowhere", "unknown"), ("orders", "subscription"), ("DLQ.bin", "own"), ("x\0", "invalid")],
)
def test_what_cannot_be_followed_is_refused_with_what_to_do(
    keeper: User, setting: LaunchSetting, memory: MemoryBroker, queue: str, word: str
) -> None:
    assert setting.destination
    memory.management().call("broker", "createAddress", setting.destination.name, "MULTICAST")
    apply(memory.management(), [Queue("orders", setting.destination.name)])
    answer = api_client(keeper).post("/api/v1/foreign-queues/", {"queue": queue}, format="json")
    assert answer.status_code in (400, 409)
    assert answer.json()["error"] == word or "\0" in queue
    assert not LetterQueue.objects.exists()


def test_rest_names_lists_and_forgets(keeper: User) -> None:
    client = api_client(keeper)
    made = client.post("/api/v1/foreign-queues/", {"queue": "old", "note": "theirs"}, format="json")
    assert made.status_code == 201 and made.json()["broker"] is None
    assert client.get("/api/v1/foreign-queues/").json() == [made.json()]
    assert client.get(f"/api/v1/foreign-queues/{made.json()['id']}/").json() == made.json()
    assert client.post("/api/v1/foreign-queues/", {"queue": "old"}, format="json").status_code == 409
    assert client.delete(f"/api/v1/foreign-queues/{made.json()['id']}/").status_code == 204
    assert client.get("/api/v1/foreign-queues/").json() == []
    assert [result for _, result, _ in results("foreign_queue.follow")] == ["done", "refused"]


def test_others_may_look_at_most_and_their_attempts_are_kept(operator: User, outsider: User) -> None:
    row = LetterQueue.objects.create(queue="old", foreign=True)
    for person, looks in ((operator, 200), (outsider, 403)):
        client, rest = signed_in(person), api_client(person)
        assert client.get("/foreign-queues/").status_code == looks
        assert rest.get("/api/v1/foreign-queues/").status_code == looks
        assert client.post("/foreign-queues/", {"queue": OLD}).status_code == 403
        assert client.post(f"/foreign-queues/{row.pk}/forget/").status_code == 403
        assert rest.post("/api/v1/foreign-queues/", {"queue": OLD}, format="json").status_code == 403
        assert rest.delete(f"/api/v1/foreign-queues/{row.pk}/").status_code == 403
    assert LetterQueue.objects.get(foreign=True) == row
    assert {result for _, result, _ in results("foreign_queue.follow")} == {"refused"}
    assert {name for name, _, _ in results("foreign_queue.follow")} == {"operator"} | {"outsider"}


def test_no_new_setting_gets_the_name_of_a_followed_queue_as_its_key(
    keeper: User, setting: LaunchSetting
) -> None:
    """Its subscription could never be made: the queue of that name has another address."""
    signed_in(keeper).post("/foreign-queues/", {"queue": "old"})
    chief = User.objects.create_superuser("chief", password="not-a-secret-in-tests")
    asked = {"key": "old", "agent": "demo.orders", "destination": "demo.orders", "pool": setting.pool.name}
    answer = api_client(chief).post("/api/v1/settings/", asked, format="json")
    assert answer.status_code == 400 and "Other dead-letter queues" in answer.content.decode(), answer.content
    assert not LaunchSetting.objects.filter(key="old").exists()


def test_the_broker_being_away_changes_nothing(keeper: User, memory: MemoryBroker) -> None:
    memory.crash()
    assert (
        api_client(keeper).post("/api/v1/foreign-queues/", {"queue": "old"}, format="json").status_code == 503
    )
    text = signed_in(keeper).post("/foreign-queues/", {"queue": "old"}, follow=True).content.decode()
    assert "The broker is not responding:" in text and not LetterQueue.objects.exists()


def test_letters_of_a_foreign_queue_are_listed_like_others(keeper: User, setting: LaunchSetting) -> None:
    LetterQueue.objects.create(queue="old", foreign=True)
    letter = letters.dead("orders", 10, "ID:10")
    type(letter).objects.filter(pk=letter.pk).update(queue="old", seen_at=timezone.now())
    client = signed_in(keeper)
    page = client.get("/foreign-queues/").content.decode()
    address = next(part.split('"')[0] for part in page.split('href="') if "queue=old" in part.split('"')[0])
    assert f"/letters/{letter.pk}/" in client.get(address).content.decode()
    text = client.get(f"/letters/{letter.pk}/").content.decode()
    assert 'href="/dead-letters/old/' not in text and address in text
