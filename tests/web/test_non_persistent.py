"""What a restart of the broker takes away is marked wherever it is shown."""

import pytest
from django.conf import settings

from agents.models import Run
from contract.records import Content
from dlq.models.dead_letter import BIN_QUEUE
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol
from tests.web import reports
from tests.web.factories import World, make_letter
from tests.web.pages import looked_at, signed_in
from tests.web.reports import Spool

KEY = "orders-export"


@pytest.fixture
def run(db: None) -> Run:
    return reports.run(reports.setting(), reports.server())


def test_a_protocol_keeps_whether_its_message_is_persistent(run: Run) -> None:
    of, spool = reports.run_of(run), Spool()
    contents: list[Content] = [
        reports.protocol(of, reports.message(durable=False)),
        reports.protocol(of, reports.message(key="ID:2")),
    ]
    accept_batch(reports.server(), spool.batch(*contents), reports.AT)

    assert [row.durable for row in FailureProtocol.objects.order_by("number")] == [False, True]


def test_protocols_and_letters_of_such_a_message_are_marked(world: World) -> None:
    client = signed_in(world, "viewer")
    first, other = FailureProtocol.objects.filter(setting_key=KEY).order_by("pk")[:2]
    assert "non-persistent" not in looked_at(client, f"/protocols/{first.pk}/").text
    FailureProtocol.objects.filter(pk=first.pk).update(durable=False)

    shown = looked_at(client, f"/protocols/{first.pk}/").text
    assert "non-persistent" in shown and "restart" in shown
    assert "non-persistent" not in looked_at(client, f"/protocols/{other.pk}/").text
    assert "non-persistent" in looked_at(client, f"/protocols/?setting={KEY}").text
    letter = make_letter(world, KEY, "x", durable=False)
    assert "non-persistent" in looked_at(client, f"/dead-letters/{KEY}/").text
    assert "non-persistent" in looked_at(client, f"/cases/?key={letter.message_key}&setting={KEY}").text
    assert "non-persistent" not in looked_at(client, "/dead-letters/bin/").text
    make_letter(world, KEY, "x", durable=False, queue=BIN_QUEUE)
    assert "non-persistent" in looked_at(client, "/dead-letters/bin/").text
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "ru"
    assert "непостоянное" in looked_at(client, f"/protocols/{first.pk}/").text
