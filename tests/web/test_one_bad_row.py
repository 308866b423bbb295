"""What goes wrong with the rows of one setting keeps neither others nor the answers of their servers."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError
from django.utils import timezone

from agents import reconciler
from agents.activations import drains, end, plan
from agents.activations.launch import open_activation
from agents.heartbeat import run_reports
from agents.models import Activation, Interruption, LaunchSetting, Pool, Run, RunPhase, Server
from agents.provisioning import provision
from agents.reconciler import stand_in_at_broker
from agents.settings import enable
from agents.settings.enable import enable_setting
from broker.management.queues import QueueFigures
from broker.memory.broker import MemoryBroker
from console.processes import record_heartbeat
from contract.messages import RunReport
from contract.records import RunState
from tests.web.rows import api_client, heartbeat_json, make_alive, make_setting

BAD, GOOD = "bad", "good"


@pytest.fixture
def live(server: Server, second_server: Server, pool: Pool) -> Server:
    make_alive(server, second_server, now=timezone.now())
    return server


def beat(server: Server, *reports: RunReport) -> int:
    said = heartbeat_json(server.name, *reports, sent_at=timezone.now())
    return int(api_client(server).post("/api/v1/heartbeat/", said, format="json").status_code)


def pending(pool: Pool, key: str, **fields: Any) -> Activation:
    """Enabled and not planned yet."""
    setting = make_setting(pool, key, enabled=True, **fields)
    return open_activation(setting, "enabled", None, timezone.now())  # type: ignore[arg-type]  # its value


def beat_is_away() -> None:
    """Then heartbeats see to what it asks for."""
    record_heartbeat("beat", timezone.now() - timedelta(minutes=5))


def fails_for(key: str, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    """The step `name` goes wrong where an argument belongs to that setting."""
    before = getattr(module, name)

    def step(first: Any, *rest: Any) -> Any:
        activation = first.activation if isinstance(first, Run) else first
        if not isinstance(activation, Activation):
            activation = Activation.objects.get(pk=activation)
        if activation.setting.key == key:
            raise KeyError("what nobody thought of")
        return before(first, *rest)

    monkeypatch.setattr(module, name, step)


@pytest.mark.django_db
@pytest.mark.parametrize("step", ["_plan", "_carry_out"])
def test_a_setting_that_cannot_be_planned_stops_no_other(
    live: Server, pool: Pool, monkeypatch: pytest.MonkeyPatch, step: str, admin_client: Any
) -> None:
    bad, good = pending(pool, BAD), pending(pool, GOOD)
    fails_for(BAD, monkeypatch, plan, step)
    assert beat(live) == 200, "one setting took the answer from its server"
    assert good.runs.filter(wanted=True).exists() and not bad.runs.exists()
    assert (
        "The activation could not be assigned to servers; the site log shows the cause."
        in admin_client.get("/settings/bad/").content.decode()
    )
    monkeypatch.undo()
    assert beat(live) == 200
    bad.refresh_from_db()
    assert bad.runs.filter(wanted=True).exists() and not bad.reason


@pytest.mark.django_db
def test_an_interruption_that_cannot_be_judged_keeps_nobody_from_being_started(
    live: Server, pool: Pool
) -> None:
    """A row of another edition: with a reason that this one does not know."""
    bad, good = pending(pool, BAD), pending(pool, GOOD)
    bad_setting = LaunchSetting.objects.get(key=BAD)
    Activation.objects.filter(pk=bad.pk).update(state="running", last_epoch=1)
    run = Run.objects.create(
        activation=bad,
        server=live,
        epoch=1,
        state=RunPhase.INTERRUPTED,
        closed_at=timezone.now(),
        any_count=3,
    )
    at = timezone.now()
    Interruption.objects.create(
        id=uuid4(), setting=bad_setting, run=run, server=live, activation_uuid=bad.pk, effective=True,
        epoch=1,
        reason="unheard_of", limit_m=10, same_type="KeyError", same_count=3, any_count=3, occurred_at=at,
        received_at=at,
    )  # fmt: skip
    beat_is_away()
    assert beat(live) == 200, "one row took the answers from every server"
    assert good.runs.filter(wanted=True).exists()
    assert LaunchSetting.objects.get(key=BAD).enabled, "tried again with the next look"


@pytest.mark.django_db
@pytest.mark.parametrize("step", ["_accept", "_accept_state"])
def test_what_a_kma_says_of_one_run_keeps_neither_the_others_nor_the_answer(
    live: Server, pool: Pool, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    for key in (BAD, GOOD):
        enable_setting(make_setting(pool, key), None, timezone.now())
    runs = {
        run.activation.setting.key: run for run in Run.objects.select_related("activation__setting", "server")
    }
    Run.objects.update(server=live)
    reports = [
        RunReport(
            activation=run.activation_id,
            setting=run.activation.setting.key,
            epoch=run.epoch,
            state=RunState.RUNNING,
            handled=7,
        )
        for run in runs.values()
    ]
    fails_for(BAD, monkeypatch, run_reports, step)
    assert beat(live, *reports) == 200, "one run took the answer from its server"
    good, bad = (Run.objects.get(pk=runs[key].pk) for key in (GOOD, BAD))
    assert (good.handled, good.state) == (7, "running")
    assert bad.state == "wanted" and bad.handled == 0, "nothing of a claim, or all of it"


@pytest.mark.django_db
def test_an_end_that_cannot_be_made_keeps_nobody_from_ending(
    live: Server, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = pending(pool, BAD), pending(pool, GOOD)
    Activation.objects.update(state="stopped")
    fails_for(BAD, monkeypatch, end, "_end")
    beat_is_away()
    assert beat(live) == 200
    good.refresh_from_db()
    bad.refresh_from_db()
    assert good.ended_at is not None and bad.ended_at is None


@pytest.mark.django_db
@pytest.mark.parametrize(("module", "step"), [(enable, "_over"), (end, "silence_counts")])
def test_a_step_that_breaks_keeps_no_other_from_being_done(
    live: Server, pool: Pool, monkeypatch: pytest.MonkeyPatch, module: Any, step: str
) -> None:
    """Whatever breaks in one: what follows from the rows of all others is done."""
    good = pending(pool, GOOD)

    def breaks(*_: Any, **__: Any) -> Any:
        raise IntegrityError("what nobody thought of")

    monkeypatch.setattr(module, step, breaks)
    beat_is_away()
    assert beat(live) == 200
    assert good.runs.filter(wanted=True).exists()


@pytest.mark.django_db(transaction=True)
def test_who_stands_in_outlives_a_setting_that_is_deleted_at_this_moment(
    live: Server, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the broker is asked: what it answers then belongs to nobody."""
    from agents.provisioning import subscriptions

    setting = make_setting(pool, "orders", enabled=True)

    def figures(_management: Any) -> dict[str, QueueFigures]:
        LaunchSetting.objects.filter(pk=setting.pk).delete()
        return {"orders": QueueFigures(**dict.fromkeys(QueueFigures.__dataclass_fields__, 0))}

    monkeypatch.setattr(subscriptions, "figures_of_all", figures)
    monkeypatch.setattr(subscriptions, "management", lambda: None)
    beat_is_away()
    try:
        done = stand_in_at_broker(timezone.now())
    except IntegrityError as error:
        pytest.fail(f"the process that follows the dead letters died: {error}")
    assert not done
    assert stand_in_at_broker(timezone.now() + timedelta(seconds=30)), "the next look finds it gone"


@pytest.mark.django_db
def test_a_setting_that_cannot_be_provisioned_for_any_reason_stops_no_other(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in (BAD, GOOD):
        make_setting(pool, key, provision_state="pending", provisioned_hash="")
    before = provision.steps_of

    def steps(setting: LaunchSetting) -> Any:
        if setting.key == BAD:
            raise KeyError("what nobody thought of")
        return before(setting)

    monkeypatch.setattr(provision, "steps_of", steps)
    monkeypatch.setattr(provision, "apply", lambda *_: [])
    monkeypatch.setattr(provision, "management", MemoryBroker().management)
    try:
        provision.provision_due(timezone.now())
    except KeyError as error:
        pytest.fail(f"one setting kept all others from being made on the broker: {error}")
    assert LaunchSetting.objects.get(key=GOOD).provision_state == "ready"
    assert LaunchSetting.objects.get(key=BAD).provision_state == "pending", "tried again with the next look"


@pytest.mark.django_db
def test_a_drain_that_cannot_be_looked_at_keeps_no_other_from_its_end(
    live: Server, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = (pending(pool, key, timing="DELAYED", drain_wait_seconds=0.0) for key in (BAD, GOOD))
    Activation.objects.update(state="running", added_at_start=0)
    nothing = QueueFigures(**dict.fromkeys(QueueFigures.__dataclass_fields__, 0))
    monkeypatch.setattr(drains, "management", lambda: None)
    monkeypatch.setattr(drains, "queue_figures", lambda *_: nothing)
    fails_for(BAD, monkeypatch, drains, "_reading_of")
    now = timezone.now()
    try:
        for second in (0, 30, 60):
            drains.watch_drains(now + timedelta(seconds=second))
    except KeyError as error:
        pytest.fail(f"one activation kept all others from being drained: {error}")
    good.refresh_from_db()
    bad.refresh_from_db()
    assert (good.ending, bad.ending) == ("drained", "")


@pytest.mark.django_db
def test_a_step_of_the_worker_that_breaks_keeps_no_later_one_from_being_done(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(_now: Any) -> None:
        raise KeyError("what nobody thought of")

    done: list[str] = []
    monkeypatch.setattr(reconciler, "finish_removals", breaks)
    monkeypatch.setattr(reconciler, "provision_due", lambda _now: done.append("provisioning"))
    try:
        reconciler.tend(timezone.now())
    except KeyError as error:
        pytest.fail(f"nothing is made on the broker any more: {error}")
    assert done == ["provisioning"]
