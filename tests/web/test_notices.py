"""Each target is told once of a trip, again until it arrives, and signed."""

import email
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from agents.models import BreakerTrip, LaunchSetting, Pool
from alerts.models import Notice, NoticeTarget
from alerts.notices import delivery
from alerts.notices.delivery import MOST_ATTEMPTS, PAUSES, deliver, send_due, send_test
from alerts.notices.operations import save_target
from alerts.notices.recipients import create_notices
from tests.web.listeners import Hook, Mailbox, listening_hook, listening_mailbox
from tests.web.rows import NOW
from tests.web.test_failures_intake_at_once import at_once, insistent

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hook() -> Iterator[Hook]:
    with listening_hook() as hook:
        yield hook


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with listening_mailbox() as box:
        settings.MA_EMAIL_READY = True
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", box.port
        settings.DEFAULT_FROM_EMAIL = "ma@example.org"
        yield box


def target_of(owner: LaunchSetting | Pool, address: str, channel: str = "webhook") -> NoticeTarget:
    field = "pool" if isinstance(owner, Pool) else "setting"
    target = NoticeTarget(channel=channel, address=address, **{field: owner})
    target.full_clean()
    save_target(target)
    return target


def tripped(setting: LaunchSetting) -> BreakerTrip:
    quorum = {"needed": 1, "interrupted": ["srv-1"], "live": [], "rule": "any"}
    trip = BreakerTrip.objects.create(
        setting=setting, reason="same_type", exception_type="KeyError", quorum=quorum, at=NOW
    )
    create_notices(trip, NOW)
    return trip


def test_a_webhook_gets_a_signed_body_once(setting: LaunchSetting, hook: Hook) -> None:
    target = target_of(setting, hook.url)
    trip = tripped(setting)

    assert (send_due(NOW), send_due(NOW + timedelta(days=2))) == (1, 0)

    ((path, headers, body),) = hook.heard
    assert path == "/told/"
    assert json.loads(body) == {
        "version": 1, "event": "trip", "setting": "orders", "group": None, "trip": trip.pk,
        "at": NOW.isoformat(),
        "reason": "same_type", "exception_type": "KeyError", "servers": ["srv-1"],
        "link": f"http://testserver/trips/{trip.pk}/",
    }  # fmt: skip
    signed = headers["MA-Timestamp"].encode() + b"." + body
    wanted = hmac.new(target.secret.encode(), signed, hashlib.sha256).hexdigest()
    assert (headers["MA-Signature"], headers["MA-Event"]) == (f"v1={wanted}", "trip")
    assert target.secret not in str(hook.heard)
    notice = Notice.objects.get()
    assert (notice.state, notice.attempts, notice.problem) == ("sent", 1, "")
    assert notice.sent_at is not None


def test_the_targets_of_the_setting_and_of_its_pool_are_told_each_address_once(
    setting: LaunchSetting, pool: Pool, hook: Hook
) -> None:
    for owner in (setting, pool):
        target_of(owner, hook.url)
    target_of(pool, hook.url + "pool/")
    target_of(Pool.objects.create(name="other"), hook.url + "other/")
    tripped(setting)

    send_due(NOW)

    assert sorted(path for path, _, _ in hook.heard) == ["/told/", "/told/pool/"]


def test_what_does_not_arrive_is_tried_again_with_growing_pauses(setting: LaunchSetting, hook: Hook) -> None:
    target_of(setting, hook.url)
    tripped(setting)
    hook.answers = [500, 302]

    assert send_due(NOW) == 0
    notice = Notice.objects.get()
    assert (notice.state, notice.attempts, notice.problem) == ("pending", 1, "answered 500")
    assert send_due(NOW + PAUSES[0] - timedelta(seconds=1)) == 0
    second = NOW + PAUSES[0]
    assert send_due(second) == 0
    notice.refresh_from_db()
    assert "redirects are not followed" in notice.problem
    assert [path for path, _, _ in hook.heard] == ["/told/"] * 2
    assert send_due(second + PAUSES[1]) == 1


def test_it_is_given_up_after_the_last_attempt_about_a_day_later(setting: LaunchSetting, hook: Hook) -> None:
    target_of(setting, hook.url)
    tripped(setting)
    hook.answers = [503] * 20
    at = NOW
    for pause in (*PAUSES, timedelta(days=3)):
        send_due(at)
        last, at = at, at + pause
    send_due(at)

    notice = Notice.objects.get()
    assert (notice.state, notice.attempts, len(hook.heard)) == ("failed", MOST_ATTEMPTS, MOST_ATTEMPTS)
    assert timedelta(hours=24) < last - NOW < timedelta(hours=25)


def test_two_workers_that_found_the_same_notice_do_not_send_it_twice(
    setting: LaunchSetting, hook: Hook
) -> None:
    target_of(setting, hook.url)
    tripped(setting)
    both_found_it, notice = threading.Barrier(2), Notice.objects.select_related("target__setting").get()

    def attempt_together() -> bool:
        both_found_it.wait(30)
        return insistent(lambda: delivery._attempt(notice, NOW)) is True

    sent = at_once(*[attempt_together] * 2)

    assert (sum(sent), len(hook.heard)) == (1, 1)


def test_a_worker_that_is_killed_while_sending_costs_a_pause_not_the_notice(
    setting: LaunchSetting, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    target_of(setting, hook.url)
    tripped(setting)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
        dying.setattr(delivery, "deliver", killed)
        send_due(NOW)

    assert send_due(NOW) == 0
    assert send_due(NOW + PAUSES[0]) == 1


def test_nobody_there_is_a_problem_that_is_shown(setting: LaunchSetting) -> None:
    target_of(setting, "http://127.0.0.1:9/nobody/")
    tripped(setting)

    send_due(NOW)

    assert "Connection" in Notice.objects.get().problem


def test_a_target_that_was_removed_is_not_told(setting: LaunchSetting, hook: Hook) -> None:
    target_of(setting, hook.url)
    tripped(setting)
    NoticeTarget.objects.all().delete()

    send_due(NOW)

    assert (hook.heard, Notice.objects.get().problem) == ([], "the target was deleted")


def test_an_email_says_what_was_switched_off_and_where_to_look(
    setting: LaunchSetting, mailbox: Mailbox
) -> None:
    target_of(setting, "ops@example.org", "email")
    trip = tripped(setting)

    assert send_due(NOW) == 1

    letter = email.message_from_string(mailbox.letters[0])
    assert (letter["To"], letter["From"], letter["Subject"]) == (
        "ops@example.org", "ma@example.org", "Disabled: orders",
    )  # fmt: skip
    text = letter.get_payload(decode=True)
    assert isinstance(text, bytes)
    assert f"/trips/{trip.pk}/" in text.decode() and "KeyError" in text.decode() and "srv-1" in text.decode()


def test_a_mailbox_that_refuses_is_tried_again(setting: LaunchSetting, mailbox: Mailbox) -> None:
    mailbox.refuse = True
    target_of(setting, "ops@example.org", "email")
    tripped(setting)

    send_due(NOW)

    notice = Notice.objects.get()
    assert (notice.state, mailbox.letters) == ("pending", [])
    assert "no such box" in notice.problem


def test_without_a_mail_server_an_email_target_is_refused_with_the_reason(setting: LaunchSetting) -> None:
    with pytest.raises(ValidationError, match="MA_EMAIL_URL"):
        target_of(setting, "ops@example.org", "email")


def test_a_test_tells_at_once_how_it_went_and_is_not_repeated(pool: Pool, hook: Hook) -> None:
    target = target_of(pool, hook.url)
    hook.answers = [500]

    failed, sent = send_test(target, None, NOW), send_test(target, None, NOW)

    assert (failed.state, failed.problem, sent.state, sent.problem) == ("failed", "answered 500", "sent", "")
    assert json.loads(hook.heard[0][2])["event"] == "test"
    assert send_due(NOW + timedelta(days=2)) == 0


def test_a_slow_address_holds_no_locks(
    setting: LaunchSetting, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    target_of(setting, hook.url)
    tripped(setting)
    seen: list[bool] = []

    def watched(notice: Notice, now: datetime) -> None:
        seen.append(connection.in_atomic_block)
        deliver(notice, now)

    monkeypatch.setattr(delivery, "deliver", watched)
    send_due(NOW)
    assert seen == [False]
