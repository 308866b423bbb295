"""What people and programs saw of old defects, asked by routes, pages and functions that every edition has.

Other tests hold how each was mended, by names that came with it; those of this file run on an edition from
before."""

import json
import os
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from agents.destinations import policies
from agents.models import Activation, Destination, LaunchSetting, Pool, Run, Server
from agents.provisioning.provision import provision_due
from agents.settings.enable import enable_setting
from alerts.evaluation import evaluate_kind
from alerts.models import Alert
from alerts.sources import every_kind
from broker.memory.broker import MemoryBroker
from console import broker as broker_service
from contract.messages import RunReport
from contract.records import RunState
from dlq.models import DeadLetter
from dlq.search import rebuild
from ma_site.celery import app
from tests.web.reports import setting as make_orders
from tests.web.rows import NOW, api_client, heartbeat_json, make_alive, make_setting
from tests.web.test_dlq_words_lost import letter

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
SECOND = timedelta(seconds=1)


def test_a_kma_that_is_heard_and_has_lost_its_broker_is_told_by_some_alert(
    setting: LaunchSetting, server: Server
) -> None:
    make_alive(server, now=NOW)
    enable_setting(setting, by=None, now=NOW)
    activation = Activation.objects.get()
    epoch = Run.objects.get(activation=activation).epoch
    report = RunReport(activation.pk, epoch, setting.key, RunState.RUNNING, connected=False)
    client = api_client(server)
    for second in range(0, 330, 30):
        answer = client.post("/api/v1/heartbeat/", heartbeat_json("srv-1", report), format="json")
        assert answer.status_code == 200
        Server.objects.update(last_seen_at=NOW + second * SECOND)
        for kind in every_kind():
            evaluate_kind(kind, NOW + second * SECOND)
    assert "srv-1" in Alert.objects.filter(state="open").values_list("subject", flat=True)


def test_health_tells_a_stranger_no_name_of_a_server(server: Server) -> None:
    make_alive(server, now=timezone.now())
    assert "srv-1" not in Client().get("/healthz/").content.decode()


def test_rest_knows_of_address_settings_that_somebody_changed_on_the_broker(
    pool: Pool, viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = MemoryBroker()
    monkeypatch.setattr(broker_service, "_connection", broker.management())
    monkeypatch.setattr(broker_service, "_process", os.getpid())
    destination = Destination.objects.create(name="shop.orders", max_attempts=4)
    make_setting(pool, "orders", address=destination.name, provision_state="pending", provisioned_hash="")
    provision_due(NOW)
    changed = policies.read_policy(destination) | {"maxDeliveryAttempts": 9}
    broker_service.management().call("broker", "addAddressSettings", destination.name, json.dumps(changed))
    app.loader.import_default_modules()
    watch: Any = app.tasks.get("agents.watch_policies")
    if watch is not None:
        watch()
    answer = api_client(viewer).get(f"/api/v1/destinations/{destination.name}/").json()
    assert "'found': 9" in str(answer)


def test_an_erasure_after_masks_have_changed_marks_few_rows_in_its_transaction() -> None:
    make_orders()
    rows = [letter(number, "parcel") for number in range(50)]
    DeadLetter.objects.update(words_without="masks of others")
    first = DeadLetter.objects.select_related("content").get(pk=rows[0].pk)
    with transaction.atomic():
        rebuild.forget_words([first])
        assert DeadLetter.objects.filter(words_without="").count() < 50
