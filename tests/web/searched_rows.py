"""Messages of one business id in every state that a message may be in."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.utils import timezone

from dlq.models import DeadLetter
from dlq.search.word_index import catch_up
from failures.models import FailureProtocol, RecoveredMessage
from tests.web.factories import World, make_letter

BUSINESS_ID = "B-9"
KEY = "orders-export"
# As the index of dead letters keeps properties.
ORDER = [{"name": "order", "type": "string", "value": BUSINESS_ID}]


def everywhere(world: World) -> dict[str, Any]:
    """{state: its row}. `phrase`: dead, with the id in its body; others only look like it."""
    at = timezone.now()
    rows: dict[str, Any] = {
        "dead": make_letter(world, KEY, "nothing", properties=ORDER),
        "phrase": make_letter(world, KEY, f"about {BUSINESS_ID}, in the text"),
        "longer": make_letter(world, KEY, f"about {BUSINESS_ID}8"),
        "other order": make_letter(world, KEY, "about 9-B"),
        "replayed": make_letter(world, KEY, "nothing", properties=ORDER),
        "retried": _failed(world, "ID:retried", at),
        "recovered": _failed(world, "ID:recovered", at),
    }
    DeadLetter.objects.filter(pk=rows["replayed"].pk).update(state="given_back")
    catch_up(200)
    RecoveredMessage.objects.create(
        id=uuid4(), setting_key=KEY, activation_uuid=uuid4(), server_name="srv-1",
        message_key="ID:recovered", attempt=2, occurred_at=at + timedelta(seconds=5),
    )  # fmt: skip
    return rows


def _failed(world: World, key: str, at: datetime) -> FailureProtocol:
    """Its text has the id as well."""
    row = FailureProtocol.objects.get(pk=world.protocols[0].pk)
    row.pk, row.number, row.message_key, row.message_key_weak = uuid4(), uuid4().int % 10**9, key, False
    row.properties, row.occurred_at, row.last_attempt, row.disposition = {"order": BUSINESS_ID}, at, False, ""
    row.exception_text = f"order {BUSINESS_ID} has no total"
    row.save(force_insert=True)
    return row
