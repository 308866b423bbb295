"""The bin: who discarded what and why, putting back, and removing for good what lay there long enough."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as site
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from agents.models import LaunchSetting, Pool, PoolGrant
from broker.port import BrokerError, BrokerUnavailable
from console.audit.models import AuditEntry
from console.jobs import crash
from dlq.index.broker import LetterQueues
from dlq.models import DeadLetter, ItemState, JobState, LetterState, ReplayItem, ReplayJob
from dlq.trash import removal
from dlq.trash.removal import expires_at
from tests.web import letters, reports

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


class Broker:
    """The bin of a broker: ids by the queue that they were in before."""

    def __init__(self) -> None:
        self.lying: dict[str, set[int]] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.away = False
        self.before: Callable[[], None] = lambda: None

    def attribute(self, resource: str, name: str) -> str:
        assert (resource, name) == ("broker", "NodeID")
        return letters.NODE

    def call(self, *arguments: Any) -> int:
        self.before()
        if self.away:
            raise BrokerUnavailable("no connection")
        resource, operation, _flush, selector = arguments
        assert (resource, operation) == ("queue.DLQ.bin", "removeMessages")
        self.calls.append(arguments)
        origin, named = selector.split("'")[1], selector.rpartition("(")[2].rstrip(")")
        ids = {int(term.rpartition("= ")[2]) for term in named.split(" OR ")}
        gone = self.lying.get(origin, set()) & ids
        self.lying[origin] -= gone
        return len(gone)


@pytest.fixture
def broker() -> Broker:
    return Broker()


def binned(broker: Broker, key: str, number: int, *, days: float = 0, **fields: Any) -> DeadLetter:
    """A letter that was discarded so many days ago."""
    row = letters.dead(key, number, f"ID:{key}-{number}")
    row.queue, row.orig_queue, row.seen_at = "DLQ.bin", f"DLQ.{key}", timezone.now() - timedelta(days=days)
    for name, value in fields.items():
        setattr(row, name, value)
    row.save()
    broker.lying.setdefault(row.orig_queue, set()).add(number)
    return row


def expire(broker: Broker) -> int:
    return removal.expire(LetterQueues(broker, None, "MA.DLA"), timezone.now())  # type: ignore[arg-type]


def states() -> dict[int, str]:
    return dict(DeadLetter.objects.order_by("pk").values_list("orig_message_id", "state"))


def test_what_lay_there_long_enough_is_removed_and_the_rest_stays(broker: Broker) -> None:
    reports.setting()
    old = [binned(broker, "orders", number, days=site.MA_BIN_DAYS + 1) for number in (10, 11)]
    binned(broker, "orders", 12, days=site.MA_BIN_DAYS - 1)
    letters.dead("orders", 13)
    assert (expire(broker), expire(broker)) == (2, 0)
    assert broker.lying == {"DLQ.orders": {12}} and len(broker.calls) == 1
    assert states() == {10: "gone", 11: "gone", 12: "dead", 13: "dead"}
    told = AuditEntry.objects.filter(action="trash.purged")
    assert [entry.letter for entry in told.order_by("pk")] == [None, old[0].pk, old[1].pk]
    assert told.get(letter=None).counts == {"letters": 2} and len({entry.operation for entry in told}) == 1


def test_a_step_is_bounded_and_of_one_setting(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "SLICE", 2)
    for number in (10, 11, 12):
        binned(broker, "orders", number, days=100)
    binned(broker, "invoices", 20, days=99)
    assert [expire(broker) for _ in range(4)] == [2, 1, 1, 0]
    assert not any(broker.lying.values())


def test_letters_of_another_broker_and_without_an_id_are_left_alone(broker: Broker) -> None:
    binned(broker, "orders", 10, days=100, node_id="another")
    binned(broker, "orders", -7, days=100)
    assert expire(broker) == 0 and not broker.calls


def test_nothing_is_removed_while_a_job_takes_letters_out(broker: Broker) -> None:
    setting = reports.setting()
    row = binned(broker, "orders", 10, days=100)
    job = ReplayJob.objects.create(
        setting=setting, setting_key="orders", action="put_back", scope="all", source_queue="DLQ.bin",
        state=JobState.RUNNING,
    )  # fmt: skip
    assert expire(broker) == 0
    ReplayJob.objects.update(state=JobState.PAUSED, lease_until=timezone.now() + timedelta(minutes=1))
    assert expire(broker) == 0, "its worker is still at it"
    ReplayItem.objects.create(job=job, letter=row, state=ItemState.PLANNED)
    ReplayJob.objects.update(lease_until=None)
    assert expire(broker) == 0, "the paused job holds it"
    ReplayItem.objects.update(state=ItemState.CANCELLED)
    assert expire(broker) == 1


def test_what_the_broker_did_not_do_is_tried_again(broker: Broker) -> None:
    binned(broker, "orders", 10, days=100)
    broker.away = True
    with pytest.raises(BrokerError):
        expire(broker)
    assert states() == {10: "dead"}
    assert AuditEntry.objects.filter(action="trash.purged", result="failed").count() == 1
    broker.away = False
    assert expire(broker) == 1 and not broker.lying["DLQ.orders"]


class Killed(BaseException):
    """In place of a kill: nothing after it is done."""


@pytest.mark.parametrize("point", ["bin: marked", "bin: removed"])
def test_a_kill_leaves_what_the_sweep_and_the_next_step_bring_to_its_end(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    binned(broker, "orders", 10, days=100)

    def die(name: str) -> None:
        if name == point:
            raise Killed

    monkeypatch.setattr(crash, "point", die)
    with pytest.raises(Killed):
        expire(broker)
    monkeypatch.undo()
    if broker.lying["DLQ.orders"]:  # a walk finds it
        DeadLetter.objects.filter(state=LetterState.GONE).update(state=LetterState.DEAD)
        assert expire(broker) == 1
    assert (states(), broker.lying) == ({10: "gone"}, {"DLQ.orders": set()})


# -- the page ------------------------------------------------------------------------------------------------


def page(person: Any, url: str) -> Any:
    client = Client()
    client.force_login(person)
    return client.get(url)


def discarded(broker: Broker, number: int, by: Any, **job: Any) -> DeadLetter:
    """A letter with the job that put it into the bin."""
    setting = LaunchSetting.objects.get(key="orders")
    original = letters.dead("orders", number, f"ID:orders-{number}")
    done = letters.given_back(setting, original)
    now = timezone.now() - timedelta(days=2)
    ReplayJob.objects.filter(pk=done.pk).update(
        **({"action": "discard", "target_queue": "DLQ.bin", "started_at": now, "by": by} | job)
    )
    DeadLetter.objects.filter(pk=original.pk).update(state=LetterState.DISCARDED)
    return binned(broker, "orders", number + 1000, days=1, message_key=original.message_key)


@pytest.fixture
def anna() -> Any:
    return reports.person("anna", "dlq.view_deadletter", "dlq.view_replayjob", "dlq.discard")


def test_it_says_who_discarded_what_and_why_and_until_when(broker: Broker, anna: Any) -> None:
    reports.setting()
    row = discarded(broker, 10, anna, reason="test <b>data</b>")
    binned(broker, "invoices", 20, days=3)
    shown = page(anna, "/dead-letters/bin/").content.decode()
    assert (
        "anna" in shown
        and "test &lt;b&gt;data&lt;/b&gt;" in shown
        and "unknown: not moved by this console" in shown
    )
    until = row.seen_at + timedelta(days=site.MA_BIN_DAYS)
    assert until.strftime("%Y-%m-%dT%H:%M") in shown
    assert "/dead-letters/invoices/bin/" in shown and 'name="letter"' not in shown


def test_a_producer_may_have_said_an_earlier_end(broker: Broker) -> None:
    row = binned(broker, "orders", 10, days=1)
    assert expires_at(row) == row.seen_at + timedelta(days=site.MA_BIN_DAYS)
    row.expires_at = row.seen_at + timedelta(hours=1)
    assert expires_at(row) == row.expires_at


def test_letters_of_a_setting_are_put_back_whole_selected_or_by_a_filter(
    broker: Broker, anna: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.jobs.engine.send", lambda *_, **__: None)
    reports.setting()
    rows = [binned(broker, "orders", number, exception_type=f"{number}Error") for number in (10, 11, 12)]
    binned(broker, "invoices", 20)
    shown = page(anna, "/dead-letters/orders/bin/").content.decode()
    assert shown.count('type="checkbox" name="letter"') == 3 and "put-back/?all=1" in shown
    narrowed = page(anna, "/dead-letters/orders/bin/?exception=10Err").content.decode()
    assert "put-back/?match=1&amp;exception=10Err" in narrowed and narrowed.count('name="letter"') == 1

    client = Client()
    client.force_login(anna)
    url = "/dead-letters/orders/put-back/"
    assert "DLQ.orders" in client.get(f"{url}?letter={rows[2].pk}").content.decode()
    client.post(url, {"letters": f"{rows[1].pk},{rows[2].pk}"})
    client.post(url, {"match": "1", "query": "exception=10Err"})
    client.post(url, {"all": "1"})
    jobs = ReplayJob.objects.order_by("created_at")
    assert [(job.scope, job.total, job.source_queue, job.target_queue) for job in jobs] == [
        ("selection", 2, "DLQ.bin", "DLQ.orders"), ("matching", 1, "DLQ.bin", "DLQ.orders"),
        ("all", 1, "DLQ.bin", "DLQ.orders"),
    ]  # fmt: skip


def test_who_may_not_discard_may_look_only(broker: Broker) -> None:
    reports.setting()
    row = binned(broker, "orders", 10)
    viewer, outsider = reports.person("viewer", "dlq.view_deadletter"), reports.person("outsider")
    shown = page(viewer, "/dead-letters/orders/bin/").content.decode()
    assert "Can discard dead letters" in shown and "Put the selected back" not in shown
    put_back = f"/dead-letters/orders/put-back/?letter={row.pk}"
    urls = ("/dead-letters/bin/", "/dead-letters/orders/bin/", put_back)
    assert [page(outsider, url).status_code for url in urls] == [403, 403, 403]
    assert [page(viewer, url).status_code for url in urls] == [200, 200, 403]
    assert page(viewer, "/dead-letters/nowhere/bin/").status_code == 404


def test_in_a_pool_one_sees_what_was_discarded_there(broker: Broker) -> None:
    orders = reports.setting()
    reports.setting("invoices", pool=Pool.objects.create(name="other"))
    binned(broker, "orders", 10)
    binned(broker, "invoices", 20)
    mate = reports.person("mate")
    mate.groups.add(Group.objects.create(name="team"))
    PoolGrant.objects.create(pool=orders.pool, group=Group.objects.get(name="team"), may_see_letters=True)
    shown = page(mate, "/dead-letters/bin/").content.decode()
    assert "/dead-letters/orders/bin/" in shown and "/dead-letters/invoices/bin/" not in shown
    assert page(mate, "/dead-letters/invoices/bin/").status_code == 404


def put_back(row: DeadLetter, number: int) -> DeadLetter:
    """The letter that this one of the bin became, with the job that did it."""
    setting = LaunchSetting.objects.get(key="orders")
    done = letters.given_back(setting, row)
    ReplayJob.objects.filter(pk=done.pk).update(
        action="put_back", source_queue="DLQ.bin", target_queue="DLQ.orders"
    )
    DeadLetter.objects.filter(pk=row.pk).update(state=LetterState.GONE)
    again = letters.dead("orders", number, row.message_key)
    DeadLetter.objects.filter(pk=again.pk).update(orig_queue="DLQ.bin")
    return again


def test_what_was_put_back_says_so_in_the_bin_and_at_its_original(broker: Broker, anna: Any) -> None:
    reports.setting()
    row = discarded(broker, 10, anna)
    original = DeadLetter.objects.get(orig_message_id=10)
    still = "The message was discarded. You can restore it from the trash."
    assert still in page(anna, f"/letters/{original.pk}/").content.decode()

    again = put_back(row, 2000)
    job = ReplayJob.objects.get(action="put_back")
    for number in (row.pk, original.pk):
        shown = page(anna, f"/letters/{number}/").content.decode()
        assert "Restored from the trash:" in shown and f"/replays/{job.pk}/" in shown
        assert (
            f"as message {again.pk}" in shown
            and still not in shown
            and "it was consumed, moved or removed outside this console." not in shown
        )
    assert "restored from the trash:" not in page(anna, f"/letters/{again.pk}/").content.decode()


def test_a_letter_of_the_bin_that_nobody_of_us_put_back_is_gone(broker: Broker, anna: Any) -> None:
    reports.setting()
    row = discarded(broker, 10, anna)
    DeadLetter.objects.filter(pk=row.pk).update(state=LetterState.GONE)
    assert (
        "it was consumed, moved or removed outside this console."
        in page(anna, f"/letters/{row.pk}/").content.decode()
    )


def test_a_weak_key_does_not_tell_which_original_was_put_back(broker: Broker, anna: Any) -> None:
    reports.setting()
    row = discarded(broker, 10, anna)
    original = DeadLetter.objects.get(orig_message_id=10)
    put_back(row, 2000)
    DeadLetter.objects.update(message_key_weak=True)
    assert "You can restore it from the trash" in page(anna, f"/letters/{original.pk}/").content.decode()
    shown = page(anna, f"/letters/{row.pk}/").content.decode()
    assert "Restored from the trash:" in shown and "as message" not in shown
