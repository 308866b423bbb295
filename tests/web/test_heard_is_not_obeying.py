"""Two facts of a server: it was heard, and it took what it was sent. Who goes by which:
docs/explanation/runs.md."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.activations.end import lose_unreachable_runs
from agents.activations.plan import plan_open_activations
from agents.activations.rules.placement import Candidate, Current, plan_any, plan_many
from agents.breaker.trip import others_of
from agents.heartbeat import heartbeats
from agents.heartbeat.heartbeats import accept_heartbeat
from agents.models import LaunchSetting, Pool, Run, Server
from agents.settings.enable import disable_setting, enable_setting
from alerts.evaluation import evaluate_kind
from alerts.models import Alert
from alerts.sources import kind_of
from console.reasons import said
from ma_site.checks.finding import Finding, run_checks
from tests.web.rows import heartbeat, make_setting

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
SECONDS = timedelta(seconds=1)


class Kma:
    """Polls every two seconds. `takes`: whether it keeps what it is sent; else it is stuck with what it
    had."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.version = ""
        self.takes = True

    def beat(self, now: datetime) -> bool:
        """Whether it was answered."""
        server = Server.objects.get(pk=self.server.pk)
        said = heartbeat(server.name, desired_version=self.version, sent_at=now)
        try:
            reply = accept_heartbeat(server, said, now)
        except RuntimeError:
            return False
        if self.takes:
            self.version = reply.desired_version
        return True


def poll(now: datetime, seconds: int, *kmas: Kma) -> datetime:
    """Every two seconds for so long; when the last one was."""
    for _beat in range(seconds // 2):
        now += 2 * SECONDS
        for kma in kmas:
            kma.beat(now)
    return now


def break_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As any fault in making the answer would: the request ends with 500."""

    def broken(server: Server) -> Any:
        raise RuntimeError("whatever goes wrong")

    monkeypatch.setattr(heartbeats, "desired_state", broken)


def of_server(name: str) -> list[Finding]:
    return [
        each
        for each in run_checks(timezone.now())
        if each.check == "KMAs" and each.detail.startswith(f"{name} ")
    ]


def test_a_server_whose_heartbeats_fail_is_not_told_to_be_well(
    server: Server, second_server: Server, pool: Pool, monkeypatch: pytest.MonkeyPatch, admin_client: Client
) -> None:
    kma = Kma(server)
    now = poll(timezone.now() - 80 * SECONDS, 10, kma)
    break_the_answers(monkeypatch)
    poll(now, 68, kma)
    told = of_server("srv-1")
    assert [finding.ok for finding in told] == [False], [finding.detail for finding in told]
    assert "sends heartbeats but has not applied the desired state" in told[0].detail
    for path in ("/health/", "/servers/srv-1/", "/"):
        assert "not applied the desired state" in admin_client.get(path).content.decode(), path


def test_in_the_normal_rhythm_every_server_obeys_also_while_its_desired_state_changes(
    server: Server, pool: Pool, setting: LaunchSetting
) -> None:
    kma, now = Kma(server), timezone.now()
    now = poll(now, 4, kma)
    enable_setting(setting, None, now)
    for change in range(30):
        # Known attempts and limits change a busy server's desired state at every heartbeat.
        LaunchSetting.objects.filter(pk=setting.pk).update(breaker_m=10 + change)
        now = poll(now, 2, kma)
        assert Server.objects.get(pk=server.pk).seconds_disobeying(now) < 10


def test_a_server_that_comes_back_after_a_silence_is_not_late_at_once(server: Server, pool: Pool) -> None:
    kma = Kma(server)
    now = poll(timezone.now(), 10, kma) + timedelta(hours=1)
    kma.version = ""
    kma.beat(now)
    assert Server.objects.get(pk=server.pk).obeys(now)


def test_a_kma_that_cannot_keep_what_it_is_sent_opens_an_alert_that_closes_when_it_can(
    server: Server, pool: Pool, setting: LaunchSetting
) -> None:
    kind = kind_of("server_disobeying")
    assert kind is not None
    kma = Kma(server)

    def follow(now: datetime, seconds: int) -> datetime:
        for _look in range(seconds // 10):
            now = poll(now, 10, kma)
            evaluate_kind(kind, now)
        return now

    now = follow(timezone.now(), 60)
    assert not Alert.objects.exists()
    kma.takes = False
    enable_setting(setting, None, now)
    now = follow(now, 80)
    assert list(Alert.objects.filter(state="open").values_list("kind", "subject")) == [
        ("server_disobeying", "srv-1")
    ]
    kma.takes = True
    follow(now, 60)
    assert not Alert.objects.filter(state="open").exists()


# -- who goes by which ---------------------------------------------------------------------------------------


@pytest.fixture
def stuck(server: Server, second_server: Server, pool: Pool) -> tuple[Kma, Kma, datetime]:
    """srv-1 is heard and takes nothing any more; srv-2 is well. For a minute now."""
    one, two = Kma(server), Kma(second_server)
    first = make_setting(pool, "first", spread="MANY")
    now = poll(timezone.now(), 4, one, two)
    enable_setting(first, None, now)
    now = poll(now, 6, one, two)
    one.takes = False
    disable_setting(first, None, said("a test"), now)
    return one, two, poll(now, 60, one, two)


def test_placement_goes_by_obeying(stuck: tuple[Kma, Kma, datetime], pool: Pool) -> None:
    one, two, now = stuck
    enable_setting(make_setting(pool, "any-1"), None, now)
    enable_setting(make_setting(pool, "any-2"), None, now)
    enable_setting(make_setting(pool, "many", spread="MANY"), None, now)
    assert set(Run.objects.filter(wanted=True).values_list("server__name", flat=True)) == {"srv-2"}
    one.takes = True
    now = poll(now, 6, one, two)
    plan_open_activations(now)
    many = Run.objects.filter(wanted=True, activation__setting__key="many")
    assert set(many.values_list("server__name", flat=True)) == {"srv-1", "srv-2"}


def test_takeover_goes_by_hearing(server: Server, second_server: Server, setting: LaunchSetting) -> None:
    """Who is heard may still run what it was sent before: nothing is begun elsewhere beside it."""
    one, two = Kma(server), Kma(second_server)
    now = poll(timezone.now(), 4, one)
    enable_setting(setting, None, now)
    run = Run.objects.get(wanted=True)
    assert run.server_id == server.pk
    one.takes, one.version = False, "of an earlier life"
    now = poll(now, 90, one, two)
    assert not Server.objects.get(pk=server.pk).obeys(now)
    plan_open_activations(now)
    assert Run.objects.get(wanted=True) == run
    now = poll(now, 40, two)
    plan_open_activations(now)
    assert Run.objects.get(wanted=True).server_id == second_server.pk, "silent, so it is taken over"


def test_the_end_of_an_unwanted_run_goes_by_hearing(stuck: tuple[Kma, Kma, datetime]) -> None:
    """It may still be at work: it is lost only with its server."""
    _one, _two, now = stuck
    left = Run.objects.filter(server__name="srv-1", wanted=False, closed_at=None)
    assert left.exists()
    lose_unreachable_runs(now)
    assert left.exists(), "heard, so it is not lost"
    Server.objects.filter(name="srv-1").update(last_seen_at=now - timedelta(minutes=5))
    lose_unreachable_runs(now)
    assert not left.exists()


def test_the_quorum_goes_by_hearing(stuck: tuple[Kma, Kma, datetime]) -> None:
    """A server that is heard is not nobody: what the others gave up may go well there."""
    _one, _two, now = stuck
    run = Run.objects.filter(server__name="srv-2").select_related("activation").first()
    assert run is not None
    [other] = others_of(run.activation, {run.server_id})
    assert other.seen_at is not None and now - other.seen_at < 5 * SECONDS


def test_what_does_not_obey_keeps_its_runs_and_gets_no_new_ones() -> None:
    stuck, well = Candidate(1, "a", True, True, 0, obeys=False), Candidate(2, "b", True, True, 5)
    assert plan_any([stuck, well], []).start == (2,)
    assert not plan_any([stuck, well], [Current(7, 1)]).changes
    assert plan_many([stuck, well], []).start == (2,)
    assert plan_any([stuck], []).waiting.value == "disobeying"
