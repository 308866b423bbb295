"""Addresses that accept and never answer: they hold one worker for a while, and nobody else waits for
them."""

import socket
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError

from agents.models import LaunchSetting, Pool
from alerts.models import Notice, NoticeTarget
from alerts.models.notice import MOST_TARGETS
from alerts.notices import delivery, http
from alerts.notices.delivery import PAUSES, send_due
from console.processes import lock
from tests.web.listeners import Hook, listening_hook
from tests.web.rows import NOW
from tests.web.test_notices import target_of, tripped

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hook() -> Iterator[Hook]:
    with listening_hook() as hook:
        yield hook


@pytest.fixture
def hole(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Takes connections and answers nothing; a sender waits two seconds for it, within which others
    answer."""
    monkeypatch.setattr(http, "ANSWER_SECONDS", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"


def attempts() -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for notice in Notice.objects.order_by("pk"):
        found.setdefault(notice.address, []).append(notice.attempts)
    return found


def test_one_sends_at_a_time(setting: LaunchSetting, hook: Hook) -> None:
    target_of(setting, hook.url)
    tripped(setting)

    with lock("notices", timedelta(seconds=60)) as taken:
        assert taken and send_due(NOW) == 0
    assert not hook.heard
    assert send_due(NOW) == 1


def test_an_address_that_hangs_is_waited_for_once_and_the_others_are_told(
    setting: LaunchSetting, hole: str, hook: Hook
) -> None:
    target_of(setting, hole)
    trip = tripped(setting)
    trip.ended_at = NOW
    trip.save()
    tripped(setting)
    target_of(setting, hook.url)
    Notice.objects.create(trip=trip, target=NoticeTarget.objects.last(), channel="webhook", address=hook.url)
    Notice.objects.update(next_at=NOW)

    assert send_due(NOW) == 1

    assert attempts() == {hole: [1, 0], hook.url: [1]}


def test_an_address_that_just_hung_comes_after_the_others(
    setting: LaunchSetting, hole: str, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    target_of(setting, hole)
    trip = tripped(setting)
    send_due(NOW)
    trip.ended_at = NOW
    trip.save()
    target_of(setting, hook.url)
    tripped(setting)
    monkeypatch.setattr(delivery, "BUDGET_SECONDS", 0.05)

    send_due(NOW + PAUSES[0] / 2)

    assert (attempts()[hook.url], len(hook.heard)) == ([1], 1)


def test_a_call_ends_when_its_time_is_over(
    setting: LaunchSetting, hole: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MOST_TARGETS):
        target_of(setting, f"{hole}{number}")
    tripped(setting)
    monkeypatch.setattr(delivery, "BUDGET_SECONDS", 0.15)

    send_due(NOW)

    assert 1 <= Notice.objects.filter(attempts=1).count() <= 2


def test_more_addresses_than_can_be_told_in_time_are_refused(setting: LaunchSetting, pool: Pool) -> None:
    for number in range(MOST_TARGETS):
        target_of(setting, f"http://127.0.0.1:9/{number}")

    with pytest.raises(
        ValidationError,
        match=(
            "Recipient not saved: the limit is 10 recipients. Remove one first, or use an address "
            "that forwards to several people."
        ),
    ):
        target_of(setting, "http://127.0.0.1:9/more")

    target_of(pool, "http://127.0.0.1:9/more")
    first = NoticeTarget.objects.first()
    assert first is not None
    first.full_clean()
