"""Closed alerts, and records that were refused or came with other content, are kept for times of their
own."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from agents.models import Pool, Server
from alerts.models import Alert, AlertState, AlertTransition, Event, Notice, NoticeState
from failures.models import RecordConflict, RefusedRecord
from retention import batches, run_ledger
from retention.ages import limits
from retention.models import RetentionRun
from retention.worker import run_retention_turn
from tests.web.retention_rows import DAY, NOW, of_today
from tests.web.rows import make_person

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def times(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MA_KEEP_ALERTS_DAYS, settings.MA_KEEP_REFUSED_DAYS = 100, 50
    monkeypatch.setattr(batches, "let_others_write", lambda took: None)
    monkeypatch.setattr(batches, "FIRST", 2)


def apply() -> dict[str, int]:
    run = run_retention_turn(NOW, every=timedelta(0))
    assert run is not None
    assert run.state == "done", run.problem
    return {row.what: row.deleted for row in run.figures.all()}


def alert(days_ago: float, state: str = AlertState.CLOSED, **fields: Any) -> Alert:
    at = NOW - days_ago * DAY
    row = Alert.objects.create(
        kind="trip", subject=str(uuid4()), severity=1, state=state, opened_at=at - DAY, closed_at=at, **fields
    )
    row.pools.add(Pool.objects.get_or_create(name="demo")[0])
    for step in ("opened", "closed"):
        AlertTransition.objects.create(alert=row, step=step, at=at)
    return row


def notice(of: Alert, state: str) -> Notice:
    return Notice.objects.create(
        transition=of.transitions.first(), channel="email", address="a@example.org", state=state
    )


def refused(days_ago: float) -> RefusedRecord:
    server = Server.objects.get_or_create(name="srv-1")[0]
    return RefusedRecord.objects.create(
        spool=uuid4(),
        number=1,
        server=server,
        kind="protocol",
        reason="bad",
        received_at=NOW - days_ago * DAY,
    )


def conflict(days_ago: float) -> RecordConflict:
    server = Server.objects.get_or_create(name="srv-1")[0]
    return RecordConflict.objects.create(
        record_id=uuid4(),
        spool=uuid4(),
        number=1,
        server=server,
        stored_id=uuid4(),
        received_at=NOW - days_ago * DAY,
    )


def event(days_ago: float, *, notice_state: str = NoticeState.SENT, is_over: bool = True) -> Event:
    at = NOW - days_ago * DAY
    kind = "enabled" if is_over else "dead_letters"
    row = Event.objects.create(kind=kind, setting_key=str(uuid4()), at=at, over_at=at if is_over else None)
    Notice.objects.create(event=row, channel="standard", address="http://a/", state=notice_state)
    return row


def test_events_go_with_what_was_told_of_them_but_not_what_is_still_so() -> None:
    for _ in range(3):
        event(101)
    kept = {event(99), event(300, is_over=False), event(300, notice_state=NoticeState.PENDING)}

    assert apply() == {"events": 3}
    assert set(Event.objects.all()) == kept and Notice.objects.count() == 3


def test_test_notifications_go_by_their_age() -> None:
    for days in (101, 300, 99):
        Notice.objects.create(
            channel="email", address="a@example.org", state="sent", created_at=NOW - days * DAY
        )

    assert apply() == {"test_notices": 2}
    assert Notice.objects.count() == 1


def test_closed_alerts_go_with_what_was_told_of_them() -> None:
    for _ in range(5):
        notice(alert(101), NoticeState.SENT)
    young, old_and_open = alert(99), alert(300, AlertState.OPEN)

    assert apply() == {"alerts": 5}
    assert set(Alert.objects.all()) == {young, old_and_open}
    assert AlertTransition.objects.count() == 4 and not Notice.objects.exists()
    assert apply() == {}


def test_an_alert_stays_while_its_cause_lasts_or_somebody_is_to_be_told() -> None:
    held, told = alert(300, held=True), alert(300)
    waiting = notice(told, NoticeState.PENDING)
    assert apply() == {}

    Alert.objects.filter(pk=held.pk).update(held=False)
    Notice.objects.filter(pk=waiting.pk).update(state=NoticeState.FAILED)
    assert apply() == {"alerts": 2}


def test_one_that_opens_again_between_the_look_and_the_delete_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    gone, back = alert(300), alert(300)
    keys = [gone.pk, back.pk]
    Alert.objects.filter(pk=back.pk).update(state=AlertState.OPEN)
    assert limits.AGE_LIMITS[0].delete(keys, NOW - 100 * DAY) == 1
    assert Alert.objects.get() == back


def test_refused_and_conflicting_records_go_the_oldest_first() -> None:
    for _ in range(5):
        refused(51)
    for _ in range(3):
        conflict(51)
    young = refused(49), conflict(49)

    assert apply() == {"refused": 5, "conflicts": 3}
    assert (RefusedRecord.objects.get(), RecordConflict.objects.get()) == young
    assert apply() == {}


def test_without_a_number_they_are_kept_for_ever(settings: Any) -> None:
    settings.MA_KEEP_ALERTS_DAYS, settings.MA_KEEP_REFUSED_DAYS = 0, 0
    alert(4000)
    refused(4000)
    conflict(4000)
    assert apply() == {}


def test_a_kill_before_the_commit_leaves_all_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    for _ in range(4):
        alert(300)
        refused(300)

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(run_ledger.Claim, "count", killed)
        run_retention_turn(NOW, every=timedelta(0))
    assert (Alert.objects.count(), RefusedRecord.objects.count()) == (4, 4)

    # What was killed holds its lease for a minute.
    RetentionRun.objects.update(lease_until=None)
    run = run_retention_turn(NOW, every=timedelta(0))
    assert run is not None and run.state == "done"
    assert (Alert.objects.count(), RefusedRecord.objects.count()) == (0, 0)


def test_a_dry_run_tells_what_would_go_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COUNTED", 3)
    for _ in range(4):
        alert(of_today(101))
    refused(of_today(51))
    out = StringIO()
    call_command("apply_retention", "--dry-run", "--json", stdout=out)
    told = {row["what"]: row for row in map(json.loads, out.getvalue().splitlines())}
    assert (told["alerts"]["would_go"], told["alerts"]["at_least"]) == (3, True)
    assert (told["refused"]["would_go"], told["refused"]["at_least"]) == (1, False)
    assert told["refused"]["older_than"][:10] == (timezone.now() - 50 * DAY).isoformat()[:10]

    out = StringIO()
    call_command("apply_retention", "--dry-run", stdout=out)
    assert "at least 3 alerts would be deleted; older than" in out.getvalue()
    assert Alert.objects.count() == 4 and RefusedRecord.objects.count() == 1


def test_the_page_says_how_long_and_what_went(client: Client, groups: None) -> None:
    alert(300)
    conflict(300)
    apply()
    client.force_login(make_person("eve", "viewer"))
    text = client.get("/retention/").content.decode()
    assert "closed alerts" in text and "100 days" in text
    assert "refused and conflicting records" in text and "50 days" in text
    assert "closed alerts: 1" in text and "conflicting records: 1" in text
