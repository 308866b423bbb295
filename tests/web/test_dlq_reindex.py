"""The index of words, built again: emptied, damaged, killed in the middle, while letters come and go."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from agents.models import LaunchSetting
from console.jobs import crash
from dlq.models import DeadLetter
from dlq.search import rebuild
from dlq.search import rebuild as forgetting
from dlq.search.word_index import catch_up
from tests.web.reports import setting as make_orders
from tests.web.test_dlq_words_lost import EMPTY, found, letter, manage, run_sql

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def orders(db: None) -> LaunchSetting:
    return make_orders()


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


@pytest.mark.process
def test_killed_in_the_middle_of_a_piece_it_goes_on(orders: LaunchSetting, root: User) -> None:
    for number in range(5):
        letter(number, "parcel")
    run_sql(EMPTY)
    killed = manage("reindex", MA_CRASH_AT="reindex: put", MA_TEST_CRASHES="1")
    assert killed.returncode == crash.EXIT_CODE
    rebuilt = rebuild.open_rebuild()
    assert rebuilt is not None and rebuilt.position == 0 and found(root, "parcel") == []

    assert manage("reindex").returncode == 0
    assert found(root, "parcel") == [0, 1, 2, 3, 4] and rebuild.open_rebuild() is None


def test_one_that_nobody_drives_any_more_is_gone_on_with(
    orders: LaunchSetting, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "PIECE", 2)
    for number in range(5):
        letter(number, "parcel")
    run_sql(EMPTY)
    rebuild.begin_rebuild(timezone.now())
    rebuild.step(timezone.now())
    assert found(root, "parcel") == [0, 1]

    from dlq.tasks import index_missing_words

    index_missing_words()
    assert found(root, "parcel") == [0, 1, 2, 3, 4] and rebuild.open_rebuild() is None


def test_what_is_stored_and_forgotten_meanwhile_is_right(
    orders: LaunchSetting, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "PIECE", 2)
    rows = [letter(number, "parcel secret") for number in range(6)]
    DeadLetter.objects.filter(pk=rows[5].pk).update(words_without="")
    run_sql(EMPTY)
    rebuild.begin_rebuild(timezone.now())
    rebuild.step(timezone.now())
    letter(10, "parcel")
    assert catch_up() == (0 if connection.vendor == "sqlite" else 1)
    # One that is in the index already, and one that the rebuild has not reached.
    for row in (rows[0], rows[4]):
        _forget(row)
    while rebuild.step(timezone.now()):
        pass

    assert found(root, "parcel") == [1, 2, 3, 5, 10] and found(root, "secret") == [1, 2, 3, 5]
    assert catch_up() == 0


def _forget(row: DeadLetter) -> None:
    with transaction.atomic():
        fresh = DeadLetter.objects.select_related("content").get(pk=row.pk)
        forgetting.forget_words([fresh])
        fresh.content.encoded, fresh.content.body_text = b"", ""
        fresh.content.save()


def test_the_list_says_that_words_are_missing_until_it_is_done(
    orders: LaunchSetting, root: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "PIECE", 2)
    for number in range(3):
        letter(number, "parcel")
    client.force_login(root)

    def says_so() -> bool:
        return (
            "The text index of older messages is still being built. Until it is complete, word "
            "search may miss these messages."
        ) in client.get("/letters/?text=parcel").content.decode()

    assert not says_so()
    rebuild.begin_rebuild(timezone.now())
    assert says_so()
    call_command("reindex", stdout=_Nowhere())
    assert not says_so()


class _Nowhere:
    def write(self, *_: Any) -> None:
        """Nobody reads it."""


def test_a_large_letter_is_a_piece_of_its_own(
    orders: LaunchSetting, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "PIECE_BYTES", 100)
    for number in range(3):
        letter(number, f"parcel {number} " + "x" * 90)
    letter(3, "parcel small")
    rebuild.begin_rebuild(timezone.now(), again=True)
    seen = 0
    while rebuild.step(timezone.now()):
        seen += 1
    assert seen == 4 and found(root, "parcel") == [0, 1, 2, 3]
