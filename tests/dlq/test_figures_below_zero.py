"""A message that the broker cannot deliver makes it count its queue too low, on the real broker: a page says
so.

By names that every edition has: it runs on one from before, too."""

import base64
import time
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from broker.amqp.consumer import AmqpConsumer
from tests.broker.jms import jms_messages
from tests.dlq.stage import Seen, Stage
from tests.web import reports

pytestmark = pytest.mark.django_db
PATIENCE = 20.0


@pytest.fixture(autouse=True)
def plain_static_files(settings: Any) -> None:
    """Nothing has collected them."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = settings.STORAGES | {"staticfiles": plain}


def test_a_queue_that_the_broker_counts_too_low_is_named_on_the_page_health(stage: Stage) -> None:
    key = stage.key("z")
    reports.setting(key)
    account, body = stage.service.publisher, base64.b64encode(jms_messages.stream_body_with_bytes()).decode()
    arguments = ({"s": "x"}, jms_messages.STREAM, body, True, account.user, account.password)
    stage.management.call(f"queue.{key}", "sendMessage", *arguments)
    for _ in range(2):  # a new link brings it back, and it dies once more
        consumer = AmqpConsumer(stage.account("kma", "amqp"), f"t.{key}", key, Seen(), 1)
        consumer.start()
        time.sleep(1.5)
        consumer.stop()
    feed = stage.feed()
    feed.start()
    try:
        deadline = time.monotonic() + PATIENCE
        while stage.count("DLQ.feed") > 0 and time.monotonic() < deadline:
            feed.step(0.2)
    finally:
        feed.stop()
    assert stage.count(key) < 0, "what this test is about"

    person = User.objects.create_superuser("chief")
    client = Client()
    client.force_login(person)
    told = client.get("/health/", headers={"accept-language": "en"}).content.decode()
    assert "counts are too low" in told and key in told
