"""Subscriptions that stand still: what opens an alert, and all that stands still and is nobody's business.
The figures of the broker are chosen here; `tests/web/test_alerts_subscriptions.py` has the real one."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.models import (
    Acknowledgement,
    AcknowledgementState,
    Activation,
    Duty,
    Freeze,
    LaunchSetting,
    Pool,
    Run,
    Server,
    ServerStop,
    SubscriptionState,
)
from agents.provisioning import subscriptions
from agents.provisioning.drain import DrainEstimate
from agents.provisioning.subscriptions import watch_subscriptions
from alerts import text
from alerts.evaluation import evaluate_kind
from alerts.models import Alert, AlertRule, AlertTransition
from alerts.sources import kind_of
from alerts.sources.movement import KILLED_WITHIN_SECONDS, NEVER_SECONDS, drain_seconds, patience
from broker.management.queues import QueueFigures
from contract.histogram import bucket
from metrics.intake import scopes_of
from metrics.models import key_of
from metrics.rollup import TABLES, add
from metrics.rules import Figures, minute_of
from tests.web.rows import NOW, make_alive, make_setting

pytestmark = pytest.mark.django_db
STALLED, UNFED = "subscription_stalled", "subscription_without_consumer"
HANGING = QueueFigures(messages=4, scheduled=0, delivering=1, consumers=1, added=9, acknowledged=5)


@dataclass
class Stage:
    """One enabled setting with a run on a server, and what the broker says of it."""

    setting: LaunchSetting
    run: Run
    figures: dict[str, QueueFigures] = field(default_factory=dict)

    def say(self, figures: QueueFigures) -> None:
        self.figures[self.setting.key] = figures

    def look(self, kind: str, begin: int, end: int) -> list[int]:
        """Looks every ten seconds; returns the seconds at which the alert was open."""
        found = []
        for second in range(begin, end + 1, 10):
            now = NOW + timedelta(seconds=second)
            watch_subscriptions(now)
            watched = kind_of(kind)
            assert watched is not None
            evaluate_kind(watched, now)
            if Alert.objects.filter(kind=kind, state="open").exists():
                found.append(second)
        return found

    def handles(self, count: int = 1) -> None:
        Run.objects.filter(pk=self.run.pk).update(in_progress=count)

    def change(self, **fields: object) -> None:
        LaunchSetting.objects.filter(pk=self.setting.pk).update(**fields)


@pytest.fixture
def stage(pool: Pool, server: Server, monkeypatch: pytest.MonkeyPatch) -> Stage:
    make_alive(server, now=NOW)
    setting = make_setting(pool, "orders", enabled=True)
    activation = Activation.objects.create(setting=setting, state="running")
    stage = Stage(setting, Run.objects.create(activation=activation, server=server, epoch=1))
    monkeypatch.setattr(subscriptions, "management", lambda: None)
    monkeypatch.setattr(subscriptions, "figures_of_all", lambda _management: stage.figures)
    stage.say(HANGING)
    return stage


@pytest.mark.parametrize(
    ("limit", "usual", "handling", "seconds"),
    [
        (0.0, None, False, 60.0),
        (900.0, 900.0, False, 60.0),
        (0.0, None, True, 300.0),
        (0.0, 0.5, True, 60.0),
        (0.0, 100.0, True, 300.0),
        (10.0, None, True, 60.0),
        (600.0, 0.5, True, 600.0 + KILLED_WITHIN_SECONDS),
    ],
)
def test_how_long_a_subscription_may_stand_still(
    limit: float, usual: float | None, handling: bool, seconds: float
) -> None:
    assert patience(60.0, limit, usual, handling=handling) == seconds


def test_an_agent_that_hangs_is_told_within_90_seconds_where_it_is_usually_quick(stage: Stage) -> None:
    """Its last minutes say that a message takes a tenth of a second."""
    figures = Figures(succeeded=100, processing={bucket(0.1): 100})
    scope = scopes_of({(stage.setting.pk, None)})[stage.setting.pk, None]
    for unit in TABLES:
        add(unit, {key_of(scope, minute_of(NOW) // unit): figures}, NOW)
    stage.handles()
    assert stage.look(STALLED, 0, 80) == [60, 70, 80]


def test_consumers_that_take_nothing_open_an_alert_within_90_seconds_once_and_it_closes(stage: Stage) -> None:
    open_at = stage.look(STALLED, 0, 200)
    assert open_at == list(range(60, 201, 10))
    stage.say(replace(HANGING, messages=3, acknowledged=6))
    assert stage.look(STALLED, 210, 260)[-1:] == [220]
    assert [*AlertTransition.objects.order_by("pk").values_list("step", flat=True)] == ["opened", "closed"]


def test_a_handling_of_ten_minutes_within_its_limit_is_no_stall_and_one_beyond_it_is(stage: Stage) -> None:
    stage.change(handling_timeout_seconds=600.0)
    stage.handles()
    assert stage.look(STALLED, 0, 620) == []
    assert stage.look(STALLED, 630, 640) == [630, 640]


def test_a_handling_without_a_limit_has_five_times_the_time_of_the_rule(stage: Stage) -> None:
    stage.handles()
    assert stage.look(STALLED, 0, 290) == []
    assert stage.look(STALLED, 300, 300) == [300]
    Alert.objects.all().delete()
    AlertRule.objects.create(kind=STALLED, pool=stage.setting.pool, upper=100.0)
    assert stage.look(STALLED, 310, 490) == []
    assert stage.look(STALLED, 500, 500) == [500]


def test_only_delayed_messages_are_no_stall(stage: Stage) -> None:
    stage.say(replace(HANGING, messages=4, scheduled=4, delivering=0))
    assert stage.look(STALLED, 0, 600) == []


def blocked(stage: Stage) -> None:
    stage.change(ordered=True)
    Run.objects.filter(pk=stage.run.pk).update(blocked={"attempt": 3})


def unblocked(stage: Stage) -> None:
    Run.objects.filter(pk=stage.run.pk).update(blocked=None)


def awaiting(stage: Stage) -> None:
    stage.change(mode="CLIENT")
    Acknowledgement.objects.create(
        acknowledgement="a-1", setting=stage.setting, server=stage.run.server, epoch=1, opened_at=NOW,
        activation_uuid=stage.run.activation_id, state=AcknowledgementState.OPEN,
    )  # fmt: skip


def answered(stage: Stage) -> None:
    Acknowledgement.objects.update(state=AcknowledgementState.COMMITTED, ended_at=NOW)


def held(stage: Stage) -> None:
    stage.change(hold="ahead")


def released(stage: Stage) -> None:
    stage.change(hold="")


@pytest.mark.parametrize(
    ("begin", "end"),
    [(blocked, unblocked), (awaiting, answered), (held, released)],
    ids=["ordered and blocked", "CLIENT awaiting its answer", "on hold"],
)
def test_what_stands_still_on_purpose_opens_nothing_and_its_time_begins_when_that_ends(
    stage: Stage, begin: Callable[[Stage], None], end: Callable[[Stage], None]
) -> None:
    begin(stage)
    assert stage.look(STALLED, 0, 400) == []
    end(stage)
    assert stage.look(STALLED, 410, 450) == []
    assert stage.look(STALLED, 460, 490)[-2:] == [480, 490]


def test_a_client_agent_that_hangs_beside_an_open_delivery_is_a_stall(stage: Stage) -> None:
    awaiting(stage)
    stage.handles()
    assert stage.look(STALLED, 0, 310) == [300, 310]


@pytest.mark.parametrize("duty", [Duty.CORDONED, Duty.DRAINING])
def test_servers_that_people_took_out_of_service_are_no_missing_consumer(
    stage: Stage, server: Server, duty: Duty
) -> None:
    stage.say(replace(HANGING, consumers=0, delivering=0))
    Server.objects.update(duty=duty)
    assert stage.look(UNFED, 0, 200) == []
    Server.objects.filter(pk=server.pk).update(duty=Duty.ACTIVE)
    assert stage.look(UNFED, 210, 320) == []
    assert stage.look(UNFED, 330, 340) == [330, 340]


def test_a_setting_that_is_stopped_on_the_servers_left_needs_no_consumer(
    stage: Stage, server: Server, second_server: Server
) -> None:
    stage.say(replace(HANGING, consumers=0, delivering=0))
    Server.objects.filter(pk=server.pk).update(duty=Duty.CORDONED)
    stop = ServerStop.objects.create(setting=stage.setting, server=second_server)
    assert stage.look(UNFED, 0, 300) == []
    stop.delete()
    assert stage.look(UNFED, 310, 440) == [430, 440]


def test_a_freeze_explains_a_missing_consumer_until_it_ends(stage: Stage) -> None:
    stage.say(replace(HANGING, consumers=0, delivering=0))
    freeze = Freeze.objects.create(scope="*", at=NOW, reason="release")
    assert stage.look(UNFED, 0, 600) == []
    Freeze.objects.filter(pk=freeze.pk).update(lifted_at=NOW + timedelta(seconds=605))
    assert stage.look(UNFED, 610, 740) == [730, 740]


def test_a_server_that_is_in_service_and_away_is_a_missing_consumer(
    stage: Stage, server: Server, second_server: Server
) -> None:
    stage.say(replace(HANGING, consumers=0, delivering=0))
    Server.objects.filter(pk=server.pk).update(duty=Duty.CORDONED)
    assert stage.look(UNFED, 0, 130) == [120, 130]


def test_while_nobody_asks_the_broker_a_stall_stays_as_it_was(stage: Stage) -> None:
    stage.look(STALLED, 0, 70)
    kind, later = kind_of(STALLED), NOW + timedelta(minutes=10)
    assert kind is not None
    SubscriptionState.objects.update(seen_at=datetime(2026, 3, 1, 11, tzinfo=NOW.tzinfo))
    evaluate_kind(kind, later)
    assert Alert.objects.filter(kind=STALLED, state="open").exists()


# -- a backlog that will not be gone in time -----------------------------------------------------------------

LASTING = "backlog_lasting"


def flows(stage: Stage, begin: int, end: int, depth: int, arrive: float, leave: float) -> list[int]:
    """Looks while so many come and go in a second; returns the seconds at which the alert was open."""
    found = []
    for second in range(begin, end + 1, 10):
        now_in = max(0, round(depth + (second - begin) * (arrive - leave)))
        stage.say(replace(HANGING, messages=now_in, added=100_000 + round(second * arrive)))
        found += stage.look(LASTING, second, second)
    return found


@pytest.mark.parametrize(
    ("drain", "seconds"),
    [
        (DrainEstimate(50_000, 1.0, 3.0, 25_000.0), 25_000.0),
        (DrainEstimate(50_000, 3.0, 3.0, None), NEVER_SECONDS),
        (DrainEstimate(500, 3.0, 3.0, None), 0.0),
        (DrainEstimate(900, 3.0, 3.0, None), NEVER_SECONDS),
        (DrainEstimate(19, 0.0, 0.01, 1_900.0), 0.0),
        (DrainEstimate(50_000, 1.0, 0.0, None), 0.0),
    ],
    ids=["drains", "grows", "less than five minutes of work", "five minutes", "few", "nothing leaves"],
)
def test_what_counts_as_a_lasting_backlog(drain: DrainEstimate, seconds: float) -> None:
    assert drain_seconds(drain, 14_400.0) == seconds


def test_a_rule_below_five_minutes_makes_less_work_a_backlog() -> None:
    assert drain_seconds(DrainEstimate(500, 3.0, 3.0, None), 120.0) == NEVER_SECONDS


def test_a_backlog_that_fills_opens_an_alert_within_90_seconds_and_it_closes_when_it_drains(
    stage: Stage,
) -> None:
    assert flows(stage, 0, 90, 4000, 40.0, 10.0)[0] <= 60
    said = text.says(Alert.objects.get())
    assert said.startswith("“orders”: the backlog is not shrinking (messages waiting: 6,")
    assert "arriving: 2,400/min, leaving: 600/min" in said
    assert flows(stage, 100, 400, 6700, 0.0, 10.0)[-1:] != [400]
    assert [*AlertTransition.objects.order_by("pk").values_list("step", flat=True)] == ["opened", "closed"]


def test_a_backlog_that_drains_in_time_or_stands_still_opens_no_such_alert(stage: Stage) -> None:
    assert flows(stage, 0, 300, 9000, 0.0, 10.0) == []
    assert flows(stage, 310, 600, 9000, 10.0, 0.0) == [], "nothing leaves: that is a stall"
    stage.change(timing="DELAYED")
    assert flows(stage, 610, 900, 9000, 40.0, 10.0) == []


def test_the_page_of_the_setting_and_the_overview_say_when_a_backlog_is_gone(
    stage: Stage, client: Client, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW + timedelta(seconds=120))
    client.force_login(operator)
    flows(stage, 0, 120, 9000, 5.0, 15.0)
    assert "<b>will drain in about 13 min</b>" in client.get("/settings/orders/").content.decode()
    assert "arriving: 300/min, leaving: 900/min" in client.get("/settings/orders/").content.decode()
    assert "will drain in about 13 min" in client.get("/").content.decode()
    flows(stage, 130, 300, 9000, 15.0, 5.0)
    monkeypatch.setattr(timezone, "now", lambda: NOW + timedelta(seconds=300))
    assert "not shrinking" in client.get("/").content.decode()
