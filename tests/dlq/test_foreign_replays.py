"""Letters of JMS clients of other houses: replayed, each comes again once, and is what it was."""

from typing import Any

import pytest

from broker.port import Settle
from dlq.models import DeadLetter, ReplayJob
from kma.sdk.message import Message
from tests.broker.jms import jms_producer
from tests.broker.jms.jms_producer import Sent
from tests.broker.jms.test_foreign_clients import KINDS, LARGE, SMALL, body_of
from tests.dlq.jobs import begun, carry_out, replays
from tests.dlq.stage import Stage
from tests.web import reports

pytestmark = pytest.mark.django_db
NUMBERS = [(kind, 10 * n + m, size) for n, kind in enumerate(KINDS) for m, size in enumerate((SMALL, LARGE))]


@pytest.fixture(autouse=True)
def no_celery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.jobs.engine.send", lambda *_, **__: True)


def what_came(encoded: list[bytes]) -> dict[Any, tuple[str, Any, dict[str, Any]]]:
    """By its number: kind, body, and the properties of its sender."""
    found: dict[Any, tuple[str, Any, dict[str, Any]]] = {}
    for each in encoded:
        received = Message(each)
        own = {
            name: value for name, value in received.properties.items() if not name.startswith(("_AMQ", "MA_"))
        }
        assert received.properties["number"] not in found, "it came twice"
        found[received.properties["number"]] = (received.kind, received.body, own)
    return found


@pytest.mark.parametrize("protocol", ["core", "amqp"])
def test_letters_of_every_kind_and_size_come_again_as_they_were(stage: Stage, protocol: str) -> None:
    key = stage.key("f")
    setting = reports.setting(key)
    sent = [Sent(*each) for each in NUMBERS]
    url = stage.service.core_url if protocol == "core" else stage.service.amqp_url
    jms_producer.send(url, stage.service.publisher, f"t.{key}", sent)
    first = what_came(stage.consume(key, len(sent), Settle.REJECT))
    letters = DeadLetter.objects.filter(setting_key=key)
    stage.follow(lambda: letters.count() == len(sent))

    job = begun(setting, action="give_back", scope="all", by=reports.person(f"operator-{key}"))
    while job.finished_at is None:
        ReplayJob.objects.filter(pk=job.pk).update(lease_until=None)
        carry_out(replays(stage.queues), job)
        job.refresh_from_db()
    assert stage.count(key) == len(sent) and stage.count(f"DLQ.{key}") == 0

    again = what_came(stage.consume(key, len(sent), Settle.ACCEPT))
    assert again == first
    for each in sent:
        kind, body, _own = again[each.number]
        assert kind == each.kind
        assert each.kind == "object" or body == body_of(each)
