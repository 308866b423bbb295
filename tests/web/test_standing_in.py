"""Who does what asks the broker, and looks at alerts, while Redis, beat or the worker is away."""

import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from agents import reconciler
from agents.models import Pool, Server
from agents.reconciler import stand_in_at_broker
from alerts import agents_hooks
from alerts.models import AlertRule, Notice
from console.processes import record_heartbeat
from tests.web.listeners import listening_hook
from tests.web.pipeline import until
from tests.web.rows import NOW, api_client, heartbeat_json, make_alive
from tests.web.test_notices import target_of

pytestmark = pytest.mark.both_databases


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that were done."""
    found: list[str] = []
    monkeypatch.setattr(reconciler, "watch_drains", lambda now: found.append("drains"))
    monkeypatch.setattr(reconciler, "provision_due", lambda now: found.append("provisioning"))
    monkeypatch.setattr(reconciler, "watch_subscriptions", lambda now: None, raising=False)
    return found


@pytest.mark.django_db
def test_nothing_is_done_while_beat_gives_signs_or_never_gave_one(done: list[str]) -> None:
    assert not stand_in_at_broker(NOW)
    record_heartbeat("beat", NOW)
    assert not stand_in_at_broker(NOW + timedelta(seconds=15))
    assert done == []


@pytest.mark.django_db
def test_it_is_done_every_two_seconds_while_beat_is_away(done: list[str]) -> None:
    record_heartbeat("beat", NOW)
    for tenth in range(160, 200):
        stand_in_at_broker(NOW + timedelta(seconds=tenth / 10))
    assert done == ["drains", "provisioning"] * 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("beat_silent", "Beat, the worker or Redis is down: no scheduled tasks have run for"),
        ("redis_away", "Redis has not responded for"),
        ("broker_away", "The broker has not responded for"),
    ],
)
def test_people_are_told_what_is_away_though_no_worker_runs(
    server: Server, second_server: Server, pool: Pool, monkeypatch: pytest.MonkeyPatch, kind: str, says: str
) -> None:
    """All that lives is a KMA, which sends heartbeats to the site."""
    monkeypatch.setattr(agents_hooks, "EVERY", timedelta(milliseconds=50))
    with listening_hook() as hook:
        target_of(pool, hook.url)
        AlertRule.objects.create(kind=kind, upper=0, lower=0, open_after_seconds=0)
        make_alive(server, second_server, now=timezone.now())
        record_heartbeat("beat", timezone.now() - timedelta(minutes=5))
        client = api_client(server)

        def told() -> bool:
            monkeypatch.setattr(agents_hooks, "_next_question", 0.0)
            assert (
                client.post("/api/v1/heartbeat/", heartbeat_json("srv-1"), format="json").status_code == 200
            )
            return Notice.objects.filter(transition__alert__kind=kind, state="sent").exists()

        until(told, 30)
        for thread in threading.enumerate():
            if thread.name == "alerts":
                thread.join(30)
    assert says in str(hook.heard)
