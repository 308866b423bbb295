"""What a job is about: never more than was meant, and what it was when somebody asked."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone
from rest_framework.test import APIClient

from agents.models import LaunchSetting, PoolGrant
from broker.port import AddressUnknown, BrokerUnavailable
from console.audit.models import AuditEntry
from console.jobs.engine import held
from console.operations.refusals import Refused
from console.reasons import said
from dlq.models import Action, DeadLetter, JobState, KnownFault, ReplayJob, Scope
from dlq.reasons import FAILING
from dlq.replay.creation import begin_replay
from dlq.replay.preflight.rules import CODES
from dlq.replay.requests import Options, ReplayRequest
from dlq.replay.scopes import frozen, policy_for, read
from dlq.replay.worker import endings
from dlq.replay.worker.pacer import rate_allows
from dlq.replay.worker.step import ReplayWorker
from dlq.search.filter import LetterFilter
from ma_site.tasks import start_jobs
from tests.dlq.jobs import begun, run_replay
from tests.web import letters, reports

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("root")


def asked(setting: LaunchSetting, by: User, query: str, **how: Any) -> ReplayJob:
    wish = {"action": Action.GIVE_BACK, "scope": Scope.MATCHING, "now": timezone.now(), **how}
    return begun(setting, by=by, query=query, **wish)


@pytest.mark.parametrize("name", sorted(LetterFilter.page_own))
def test_what_is_of_a_page_chooses_no_letters(orders: LaunchSetting, root: User, name: str) -> None:
    """`letters=7,8` is of the address of a page; as a filter it would have found everything."""
    letters.dead("orders", 10)
    with pytest.raises(Refused, match=name):
        asked(orders, root, f"server=srv-1&{name}=1")
    assert not ReplayJob.objects.exists()


def test_the_same_over_rest(orders: LaunchSetting, root: User) -> None:
    first = letters.dead("orders", 10)
    letters.dead("orders", 11)
    client = APIClient()
    client.force_authenticate(root)
    wish = {
        "setting": "orders",
        "action": "discard",
        "query": f"letters={first.pk}",
        "reason": "only this one",
    }
    for path in ("/api/v1/replays/", "/api/v1/preflight/"):
        assert client.post(path, wish, format="json").status_code in (400, 409), path
    assert not ReplayJob.objects.exists()


@pytest.mark.both_databases
def test_the_last_hour_is_the_one_before_the_question(orders: LaunchSetting, root: User) -> None:
    letter = letters.dead("orders", 10)
    DeadLetter.objects.filter(pk=letter.pk).update(seen_at=timezone.now() - timedelta(minutes=50))
    job = asked(orders, root, "span=1h")
    two_hours = timedelta(hours=2)
    DeadLetter.objects.filter(pk=letter.pk).update(seen_at=timezone.now() - timedelta(minutes=50) - two_hours)
    ReplayJob.objects.filter(pk=job.pk).update(created_at=job.created_at - two_hours)
    job.refresh_from_db()
    assert list(frozen(job)) == [letter]


@pytest.mark.both_databases
def test_the_first_total_leaves_out_what_is_left_out(orders: LaunchSetting, root: User) -> None:
    for number in range(5):
        letters.dead("orders", number)
    muted = letters.dead("orders", 9)
    DeadLetter.objects.filter(pk=muted.pk).update(fingerprint="v1:aa")
    KnownFault.objects.create(setting_key="orders", fingerprint="v1:aa", by=root)
    wish = ReplayRequest(orders, Action.GIVE_BACK, Scope.ALL, acknowledged=CODES)
    assert begin_replay(wish, by=root, now=timezone.now()).total == 5


@pytest.mark.both_databases
def test_a_job_that_is_given_up_before_it_is_planned_has_no_letters(
    orders: LaunchSetting, root: User
) -> None:
    letters.dead("orders", 10)
    job = asked(orders, root, "", scope=Scope.ALL)
    endings.fail_remaining(job, said("no such queue"), timezone.now())
    job.refresh_from_db()
    assert (job.total, job.planned_at is None) == (0, False)


@pytest.mark.both_databases
def test_a_filter_that_finds_no_queue_finds_nothing_for_who_sees_some(orders: LaunchSetting) -> None:
    letters.dead("orders", 10)
    client = APIClient()
    viewer = User.objects.create_user("viewer")
    team = Group.objects.create(name="team")
    viewer.groups.add(team)
    PoolGrant.objects.create(pool=orders.pool, group=team, may_see_letters=True)
    client.force_authenticate(viewer)
    path = "/api/v1/dead-letters/"
    assert len(client.get(path).json()["results"]) == 1
    for query in ("destination=nope", "setting=orders&queue=DLQ.other"):
        assert client.get(f"{path}?{query}").json()["results"] == [], query


@pytest.mark.parametrize("rate", [1e-300, 5e-324, 0.0009, -1, float("nan"), float("inf"), 2e6])
def test_a_rate_that_nobody_can_mean_is_refused(rate: float) -> None:
    assert Options(per_second=rate).problem()


def test_the_slowest_rate_is_kept_to() -> None:
    assert not Options(per_second=0.001).problem()
    now = timezone.now()
    assert rate_allows(now, now, 1, 0.001) == now + timedelta(seconds=1000)


@pytest.mark.both_databases
def test_jobs_that_wait_for_one_queue_keep_no_other_from_its_turn(
    orders: LaunchSetting, sent: list[str]
) -> None:
    other = reports.setting(key="invoices")
    waiting = {"state": JobState.PLANNED, "scope": Scope.SELECTION, "setting_key": "orders"}
    for _ in range(30):
        ReplayJob.objects.create(setting=orders, source_queue="DLQ.orders", **waiting)
    late = ReplayJob.objects.create(setting=other, source_queue="DLQ.invoices", **waiting)
    sent.clear()
    start_jobs()
    assert str(late.pk) in sent and len(sent) == 2


def paused(found: Callable[..., Any]) -> Callable[..., Any]:
    def first(*arguments: Any) -> Any:
        ReplayJob.objects.update(state=JobState.PAUSED)
        return found(*arguments)

    return first


@pytest.mark.both_databases
def test_a_job_that_was_paused_on_the_way_to_its_worker_is_let_go(
    orders: LaunchSetting, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.dead("orders", 10)
    job = asked(orders, root, "", scope=Scope.ALL)
    monkeypatch.setattr("console.jobs.engine.held", paused(held))
    run_replay(str(job.pk))  # nothing is asked of the broker
    job.refresh_from_db()
    assert (job.state, job.holder, job.lease_until) == (JobState.PAUSED, None, None)


@pytest.mark.both_databases
def test_why_a_job_ends_is_kept_while_the_broker_is_away(
    orders: LaunchSetting, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.dead("orders", 10)
    job = asked(orders, root, "", scope=Scope.ALL)
    ReplayJob.objects.update(state=JobState.STOPPED, problem=FAILING())

    def away(*_: object) -> bool:
        raise BrokerUnavailable("the connection is lost")

    monkeypatch.setattr(ReplayWorker, "step", away)
    for _ in range(2):
        ReplayJob.objects.update(lease_until=None)
        run_replay(str(job.pk))
        job.refresh_from_db()
        assert (job.problem, job.holder, job.lease_until is None) == (FAILING(), None, False)


@pytest.mark.both_databases
def test_a_job_that_winds_up_stays_what_it_is_where_its_queue_is_gone(
    orders: LaunchSetting, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.dead("orders", 10)
    job = asked(orders, root, "", scope=Scope.ALL)
    ReplayJob.objects.update(state=JobState.STOPPED, problem=FAILING())

    def gone(*_: object) -> bool:
        raise AddressUnknown("the broker has no queue DLQ.orders")

    monkeypatch.setattr("dlq.replay.worker.step._wind_up", gone)
    run_replay(str(job.pk))
    job.refresh_from_db()
    assert (job.state, job.problem, job.finished_at is None) == (JobState.STOPPED, FAILING(), False)
    assert AuditEntry.objects.latest("pk").action == "replay.stopped_done"


@pytest.mark.both_databases
def test_a_job_that_was_resumed_within_its_slice_stops_by_itself_all_the_same(
    orders: LaunchSetting, root: User
) -> None:
    """Who has it has not taken it up anew, so its state is the one that the person gave it."""
    letters.dead("orders", 10)
    job = asked(orders, root, "", scope=Scope.ALL)
    endings.stop_job(job, "failing", timezone.now())
    job.refresh_from_db()
    assert (job.state, job.problem) == (JobState.STOPPED, FAILING())


@pytest.mark.both_databases
def test_a_fault_of_ours_is_shown_and_the_job_tried_again(
    orders: LaunchSetting, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.dead("orders", 10)
    job = asked(orders, root, "", scope=Scope.ALL)

    def fails(*_: object) -> bool:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(ReplayWorker, "step", fails)
    with pytest.raises(ZeroDivisionError):
        run_replay(str(job.pk))
    job.refresh_from_db()
    assert (
        str(job.problem) == "ZeroDivisionError; see the worker log for details"
        and job.lease_until is not None
    )


@pytest.mark.parametrize("path", ["known-faults/{n}/end/", "takings/{n}/end/", "dead-letters/{n}/edit/"])
def test_a_refusal_is_kept_with_its_letter_only(orders: LaunchSetting, root: User, path: str) -> None:
    client = APIClient()
    client.force_authenticate(root)
    for number in (7, 99999999999999999999):
        assert client.post(f"/api/v1/{path.format(n=number)}", {}, format="json").status_code in (400, 404), (
            number
        )
    kept = list(AuditEntry.objects.order_by("pk").values_list("letter", flat=True))
    assert set(kept) <= ({7, None} if "letters" in path else {None})


@pytest.mark.parametrize("named", [{"message_key": "ID:7"}, {"fingerprint": "v1:a"}])
def test_a_fault_of_one_message_or_kind_mutes_no_letter_that_has_neither(named: dict[str, str]) -> None:
    KnownFault.objects.create(setting_key="orders", **named)
    row = letters.dead("orders", 8)
    DeadLetter.objects.filter(pk=row.pk).update(message_key="", fingerprint="")
    policy = policy_for("orders", Action.GIVE_BACK, now=timezone.now())
    assert [policy.why_not(letter) for letter in read(DeadLetter.objects.all())] == [""]
    DeadLetter.objects.filter(pk=row.pk).update(**named)
    assert [policy.why_not(letter) for letter in read(DeadLetter.objects.all())] == ["muted"]
