"""The engine over real rows: one alert per cause, each transition a row, each told once per target."""

import email
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import Pool
from alerts import evaluation, operations, recording
from alerts.evaluation import MOST_OPENED, evaluate_all, late_kinds
from alerts.kinds import MORE
from alerts.models import (
    Alert,
    AlertEvaluation,
    AlertRule,
    AlertTransition,
    Notice,
    NoticeTarget,
)
from alerts.notices import delivery
from alerts.notices.delivery import PAUSES, send_due
from alerts.queries import closed_alerts, narrowed, open_alerts, open_count
from alerts.rules import REMINDERS, SAME, Thresholds
from console.operations.refusals import Refused
from tests.web.alerts import Heat, heat
from tests.web.listeners import Hook, Mailbox, listening_hook, listening_mailbox
from tests.web.rows import NOW
from tests.web.test_failures_intake_at_once import at_once
from tests.web.test_notices import target_of

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
MINUTE = timedelta(minutes=1)
AT_ONCE = Thresholds(80.0, 60.0)


@pytest.fixture
def oven(pool: Pool) -> Iterator[Heat]:
    with heat(pool) as oven:
        yield oven


@pytest.fixture
def quick(pool: Pool) -> Iterator[Heat]:
    """Opens and closes at once."""
    with heat(pool, AT_ONCE) as oven:
        yield oven


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


def steps(subject: str = "oven") -> list[str]:
    return list(
        AlertTransition.objects.filter(alert__subject=subject).order_by("pk").values_list("step", flat=True)
    )


def looks(oven: Heat, values: list[float | None], begin: datetime = NOW) -> datetime:
    """One value a minute; the instant after the last."""
    for minute, value in enumerate(values):
        oven.values = {"oven": value}
        oven.look(begin + minute * MINUTE)
    return begin + len(values) * MINUTE


def heard(hook: Hook) -> list[dict[str, Any]]:
    return [json.loads(body) for _path, _headers, body in hook.heard]


def test_an_alert_opens_after_its_time_and_closes_by_itself_with_every_transition_kept(oven: Heat) -> None:
    looks(oven, [90, 90])
    assert (Alert.objects.get().state, steps()) == ("calm", [])
    looks(oven, [91], NOW + 2 * MINUTE)
    alert = Alert.objects.get()
    assert (alert.state, alert.value, alert.opened_at, steps()) == (
        "open",
        91.0,
        NOW + 2 * MINUTE,
        ["opened"],
    )
    looks(oven, [70, 10, 10, 10, 10], NOW + 3 * MINUTE)
    alert.refresh_from_db()
    assert (alert.state, alert.closed_at, alert.by_hand) == ("closed", NOW + 7 * MINUTE, False)
    assert steps() == ["opened", "closed"]


def test_what_was_hot_for_a_moment_leaves_nothing(oven: Heat) -> None:
    looks(oven, [90, 90, 70])
    assert not Alert.objects.exists()


def test_what_the_source_does_not_name_any_more_has_gone(quick: Heat) -> None:
    looks(quick, [90])
    quick.values = {}
    quick.look(NOW + MINUTE)
    alert = Alert.objects.get()
    assert (alert.state, alert.facts, alert.value) == ("closed", {"name": "oven"}, 90.0)


def test_what_nobody_knows_changes_nothing(quick: Heat) -> None:
    looks(quick, [90, None, None])
    alert = Alert.objects.get()
    assert (alert.state, alert.value, steps()) == ("open", 90.0, ["opened"])


def test_a_webhook_hears_what_is_wrong_where_what_to_do_and_where_to_look(
    quick: Heat, pool: Pool, hook: Hook
) -> None:
    target_of(pool, hook.url)
    looks(quick, [90])

    assert (send_due(NOW), send_due(NOW + MINUTE)) == (1, 0)

    (told,), alert = heard(hook), Alert.objects.get()
    assert told == {
        "version": 1, "event": "alert", "alert": alert.pk, "transition": AlertTransition.objects.get().pk,
        "step": "opened", "kind": "heat", "subject": "oven", "severity": "bad", "setting": None,
        "server": None,
        "pools": ["demo"], "value": 90.0, "says": "oven is 90 degrees hot", "what_to_do": "Open a window.",
        "opened_at": NOW.isoformat(), "at": NOW.isoformat(), "by": None,
        "link": f"http://testserver/alerts/{alert.pk}/", "about": "http://testserver/servers/",
    }  # fmt: skip
    assert hook.heard[0][1]["MA-Event"] == "alert"


def test_an_email_says_the_same_and_its_subject_is_one_line(
    quick: Heat, pool: Pool, mailbox: Mailbox
) -> None:
    target_of(pool, "ops@example.org", "email")
    quick.values = {"oven\r\nBcc: all@example.org": 90}
    quick.look(NOW)

    assert send_due(NOW) == 1

    letter = email.message_from_bytes(mailbox.letters[0].encode())
    assert letter["Subject"] == "Heat: oven Bcc: all@example.org is 90 degrees hot"
    assert letter["Bcc"] is None
    text = letter.get_payload(decode=True)
    assert isinstance(text, bytes)
    for part in ("90°", "Open a window.", "/servers/", f"/alerts/{Alert.objects.get().pk}/", "demo"):
        assert part in text.decode()


def test_an_email_is_written_in_the_language_of_the_installation(
    quick: Heat, pool: Pool, mailbox: Mailbox, settings: Any
) -> None:
    settings.LANGUAGE_CODE = "ru"
    target_of(pool, "ops@example.org", "email")
    looks(quick, [90])
    send_due(NOW)
    text = email.message_from_bytes(mailbox.letters[0].encode()).get_payload(decode=True)
    assert isinstance(text, bytes) and "Что делать: Open a window." in text.decode()


def test_only_the_pools_it_concerns_are_told_and_all_of_what_concerns_everybody(
    quick: Heat, pool: Pool, hook: Hook
) -> None:
    other = Pool.objects.create(name="other")
    target_of(pool, hook.url)
    target_of(other, hook.url + "other/")
    looks(quick, [90])
    send_due(NOW)
    assert [path for path, _, _ in hook.heard] == ["/told/"]

    quick.pools = frozenset()
    quick.values = {"oven": 90, "everywhere": 90}
    quick.look(NOW + MINUTE)
    send_due(NOW + MINUTE)
    assert sorted(path for path, _, _ in hook.heard[1:]) == ["/told/", "/told/other/"]


def test_a_reminder_is_told_and_a_snooze_keeps_quiet_until_its_end(
    quick: Heat, pool: Pool, hook: Hook, operator: User
) -> None:
    target_of(pool, hook.url)
    looks(quick, [90])
    first = NOW + REMINDERS[0]
    looks(quick, [90], first)
    until = first + timedelta(hours=8)
    operations.snooze(Alert.objects.get(), until, operator, "we know", first + MINUTE)
    looks(quick, [90] * 5, first + timedelta(hours=6))
    assert Alert.objects.get().state == "snoozed"
    looks(quick, [90], until)

    for minute in range(1, 6):
        send_due(until + minute * MINUTE)
    assert [each["step"] for each in heard(hook)] == ["opened", "repeated", "repeated"]
    assert steps() == ["opened", "repeated", "snoozed", "repeated"]
    snoozing = AlertTransition.objects.get(step="snoozed")
    assert (snoozing.by, snoozing.reason, snoozing.until) == (operator, "we know", until)


def test_an_all_clear_is_told_only_when_it_stays_clear(quick: Heat, pool: Pool, hook: Hook) -> None:
    target_of(pool, hook.url)
    looks(quick, [90, 10, 90, 10])
    closed = NOW + 3 * MINUTE
    for minute in range(60):
        send_due(NOW + minute * MINUTE)

    assert [(each["step"], each["at"]) for each in heard(hook)] == [
        ("opened", NOW.isoformat()),
        ("closed", closed.isoformat()),
    ]
    assert steps() == ["opened", "closed", "reopened", "closed"]
    assert Notice.objects.get(transition__step="closed").next_at >= closed + SAME


def test_a_person_closes_it_it_stays_closed_while_it_lasts_and_the_next_one_is_news(
    quick: Heat, pool: Pool, hook: Hook, operator: User
) -> None:
    target_of(pool, hook.url)
    looks(quick, [90])
    first = Alert.objects.get()
    operations.close(first, operator, "known", NOW + MINUTE)
    with pytest.raises(Refused, match="The alert is already closed."):
        operations.close(first, operator, "", NOW + MINUTE)
    after = looks(quick, [90] * 3, NOW + timedelta(hours=30))
    assert [alert.state for alert in Alert.objects.all()] == ["closed"]
    looks(quick, [10, 90], after)

    assert [(alert.pk == first.pk, alert.state) for alert in Alert.objects.order_by("pk")] == [
        (True, "closed"),
        (False, "open"),
    ]
    for minute in range(5):
        send_due(after + minute * MINUTE)
    assert [(each["step"], each["by"]) for each in heard(hook)] == [
        ("opened", None), ("closed", "operator"), ("opened", None),
    ]  # fmt: skip


def test_a_snooze_into_the_past_or_for_years_is_refused(quick: Heat, operator: User) -> None:
    looks(quick, [90])
    for until in (NOW, NOW + timedelta(days=400)):
        with pytest.raises(Refused):
            operations.snooze(Alert.objects.get(), until, operator, "", NOW)
    assert steps() == ["opened"]


def test_two_beats_at_once_open_one_alert_and_tell_once(quick: Heat, pool: Pool, hook: Hook) -> None:
    target_of(pool, hook.url)
    quick.values = {"oven": 90}

    at_once(*[lambda: quick.look(NOW)] * 4)

    assert (Alert.objects.count(), steps(), Notice.objects.count()) == (1, ["opened"], 1)
    quick.values = {"oven": 10}
    at_once(*[lambda: quick.look(NOW + MINUTE)] * 4)
    assert (steps(), Notice.objects.count()) == (["opened", "closed"], 2)


def test_whole_looks_at_once_are_one(quick: Heat) -> None:
    quick.values = {"oven": 90}
    made = at_once(*[lambda: evaluate_all(NOW)] * 3)
    assert (sorted(made)[-1], Alert.objects.filter(kind="heat").count(), steps()) == (1, 1, ["opened"])


def test_a_person_and_a_beat_at_once_leave_one_truth(quick: Heat, operator: User) -> None:
    looks(quick, [90])
    alert = Alert.objects.get()
    quick.values = {"oven": 10}

    def close_it() -> bool:
        try:
            operations.close(alert, operator, "", NOW + MINUTE)
        except Refused:
            return False
        return True

    at_once(close_it, lambda: quick.look(NOW + MINUTE))

    assert (Alert.objects.get().state, steps()) == ("closed", ["opened", "closed"])


def test_a_kill_before_the_commit_decided_nothing_and_after_it_the_notices_wait(
    quick: Heat, pool: Pool, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    target_of(pool, hook.url)
    quick.values = {"oven": 90}

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
        dying.setattr(recording, "notify", killed)
        quick.look(NOW)
    assert (Alert.objects.count(), AlertTransition.objects.count()) == (0, 0)

    quick.look(NOW)
    with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
        dying.setattr(delivery, "deliver", killed)
        send_due(NOW)
    assert (send_due(NOW), send_due(NOW + PAUSES[0]), send_due(NOW + timedelta(days=1))) == (0, 1, 0)
    assert [each["step"] for each in heard(hook)] == ["opened"]


def test_a_storm_is_some_alerts_and_one_for_all_others(quick: Heat, pool: Pool, hook: Hook) -> None:
    target_of(pool, hook.url)
    quick.values = {f"oven {number:03}": 90 for number in range(MOST_OPENED + 40)}
    quick.look(NOW)
    for minute in range(3):
        send_due(NOW + minute * MINUTE)

    assert Alert.objects.filter(state="open").count() == MOST_OPENED + 1
    assert len(hook.heard) == MOST_OPENED + 1
    assert [each["says"] for each in heard(hook) if each["subject"] == MORE] == [
        "40 more alerts of this kind"
    ]
    # Hours later they are still one, and what is new has one of its own.
    quick.values["new"] = 90
    quick.look(NOW + timedelta(hours=3))
    assert Alert.objects.filter(state="open", subject="new").exists()
    assert (Alert.objects.get(subject=MORE).value, Alert.objects.filter(state="open").count()) == (
        40.0,
        MOST_OPENED + 2,
    )
    quick.values = {}
    quick.look(NOW + timedelta(hours=4))
    assert set(Alert.objects.values_list("state", flat=True)) == {"closed"}


def test_a_rule_of_the_site_and_one_of_a_pool_move_the_bounds(pool: Pool) -> None:
    with heat(pool, AT_ONCE) as oven:
        AlertRule.objects.create(kind="heat", upper=95)
        looks(oven, [90])
        assert not Alert.objects.exists()
        AlertRule.objects.create(kind="heat", pool=pool, upper=85, lower=20)
        looks(oven, [90, 30])
        assert Alert.objects.get().state == "open"
        AlertRule.objects.filter(pool=pool).update(watched=False)
        looks(oven, [90], NOW + 2 * MINUTE)
        assert Alert.objects.get().state == "closed"


def test_a_source_that_breaks_hinders_no_other_one(
    quick: Heat, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(now: datetime, live: frozenset[str]) -> list[Any]:
        raise ValueError("no such thing")

    quick.values = {"oven": 90}
    monkeypatch.setattr(
        evaluation, "every_kind", lambda: [replace(quick.kind, name="broken", observe=broken), quick.kind]
    )
    assert evaluate_all(NOW) == 1
    assert steps() == ["opened"]
    # Once it is known that it was looked at before.
    AlertEvaluation.objects.create(kind="broken", at=NOW)
    evaluate_all(NOW + 5 * MINUTE)
    assert late_kinds(NOW + 5 * MINUTE) == ["Heat"] and late_kinds(NOW) == []


def test_a_look_ends_when_its_time_is_over_and_the_next_begins_where_it_ended(
    quick: Heat, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def kind(name: str) -> Any:
        def observe(now: datetime, live: Any) -> tuple[()]:
            looked.append(name)
            return ()

        return replace(quick.kind, name=name, observe=observe)

    monkeypatch.setattr(evaluation, "BUDGET_SECONDS", 0.0)
    kinds = [kind(name) for name in ("a", "b", "c")]
    monkeypatch.setattr(evaluation, "every_kind", lambda: kinds)
    for minute in range(6):
        evaluate_all(NOW + minute * MINUTE)
    assert looked == ["a", "b", "c", "a", "b", "c"]


def test_a_look_at_many_calm_causes_is_few_questions(oven: Heat) -> None:
    oven.values = {f"oven {number}": 10.0 for number in range(1000)}
    with CaptureQueriesContext(connection) as asked:
        oven.look(NOW)
    assert len(asked) <= 4


def test_a_target_that_was_told_twice_by_address_is_told_once(quick: Heat, pool: Pool, hook: Hook) -> None:
    second = Pool.objects.create(name="second")
    for owner in (pool, second):
        target_of(owner, hook.url)
    quick.pools = frozenset([pool.pk, second.pk])
    looks(quick, [90])
    assert (NoticeTarget.objects.count(), Notice.objects.count()) == (2, 1)


def test_closed_alerts_are_never_looked_through(quick: Heat, pool: Pool) -> None:
    """Each question of a look, a badge and a list names an index, however it is asked."""
    looks(quick, [90])
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Of a handful of rows it would read them all.
            cursor.execute("SET enable_seqscan = off")
        with CaptureQueriesContext(connection) as asked:
            quick.look(NOW + MINUTE)
            open_count()
            list(narrowed(open_alerts(), kind="heat", pool="demo")[:50])
            list(narrowed(closed_alerts(), kind="heat")[:50])
            list(closed_alerts()[:50])
        plans = []
        for query in asked.captured_queries:
            if query["sql"].startswith("SELECT") and 'FROM "alerts_alert"' in query["sql"]:
                cursor.execute(
                    ("EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN ") + query["sql"]
                )
                plans.append(str(cursor.fetchall()))
    assert len(plans) >= 7
    for plan in plans:
        assert "alerts_" in plan or "one_open_alert_per_cause" in plan, plan
        assert "SCAN alerts_alert'" not in plan and "Seq Scan on alerts_alert " not in plan, plan


def test_an_alert_of_two_pools_is_one_row_of_each(quick: Heat, pool: Pool) -> None:
    other = Pool.objects.create(name="other")
    quick.pools = frozenset([pool.pk, other.pk])
    looks(quick, [90])
    for name, count in (("demo", 1), ("other", 1), ("nobody", 0)):
        assert len(narrowed(open_alerts(), pool=name)) == count
