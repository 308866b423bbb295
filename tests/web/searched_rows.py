"""Messages of one business id in every state that a message may be in."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.utils import timezone

from dlq.models import DeadLetter, LetterEdit, LetterReport, ReplayItem, ReplayJob
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
        "retried": failed_with_id(world, "ID:retried", at),
        "recovered": failed_with_id(world, "ID:recovered", at),
    }
    DeadLetter.objects.filter(pk=rows["replayed"].pk).update(state="given_back")
    catch_up(200)
    _recovered("ID:recovered", at)
    return rows


# What the section of each state is called.
STATES = {
    "dead": "dead-lettered",
    "retried": "being retried",
    "replayed": "replayed",
    "processed": "processed later",
    "recovered": "processed later",
    "discarded": "discarded",
    "trash": "in trash",
    "gone": "no longer on the broker",
}


def one_in_each_state(world: World) -> dict[str, Any]:
    """{state: the row of its message}. Its key is `ID:in-<state>`, and its text says `late <state> order`.
    `processed` was replayed before; `trash` is the row that `discarded` has there."""
    at = timezone.now()
    rows: dict[str, Any] = {}
    for state, stored in (
        ("dead", "dead"), ("replayed", "given_back"), ("processed", "given_back"), ("discarded", "discarded"),
        ("gone", "gone"),
    ):  # fmt: skip
        rows[state] = make_letter(
            world, KEY, f"a late {state} order", message_key=f"ID:in-{state}", state=stored, state_at=at
        )
    rows["trash"] = make_letter(
        world, KEY, "a late trash order", message_key="ID:in-discarded", queue="DLQ.bin",
        orig_queue=f"DLQ.{KEY}", seen_at=at, state_at=at,
    )  # fmt: skip
    for state in ("retried", "recovered"):
        rows[state] = failed_with_id(
            world, f"ID:in-{state}", at, exception_text=f"no late {state} order is complete"
        )
    catch_up(200)
    LetterReport.objects.create(
        id=uuid4(), setting_key=KEY, message_key="ID:in-processed", result="handled", server_name="srv-1",
        activation_uuid=uuid4(), attempt=1, occurred_at=at, received_at=at + timedelta(seconds=5),
    )  # fmt: skip
    _recovered("ID:in-recovered", at)
    return rows


def _recovered(key: str, at: datetime) -> None:
    RecoveredMessage.objects.create(
        id=uuid4(), setting_key=KEY, activation_uuid=uuid4(), server_name="srv-1", message_key=key, attempt=2,
        occurred_at=at + timedelta(seconds=5),
    )  # fmt: skip


def failed_with_id(world: World, key: str, at: datetime, **values: Any) -> FailureProtocol:
    """Its text has the id as well."""
    row = FailureProtocol.objects.get(pk=world.protocols[0].pk)
    row.pk, row.number, row.message_key, row.message_key_weak = uuid4(), uuid4().int % 10**9, key, False
    row.properties, row.occurred_at, row.last_attempt, row.disposition = {"order": BUSINESS_ID}, at, False, ""
    row.exception_text = f"order {BUSINESS_ID} has no total"
    for name, value in values.items():
        setattr(row, name, value)
    row.save(force_insert=True)
    return row


def edited_and_replayed(world: World) -> dict[str, Any]:
    """`original`: as it was dead-lettered; `trash`: the row that it has there; `job` replayed a copy, which
    was processed."""
    same = {"message_key": "ID:edited", "properties": ORDER}
    original = make_letter(world, KEY, "as it was", orig_message_id=500, state="given_back", **same)
    trash = make_letter(
        world, KEY, "as it was", orig_message_id=501, queue="DLQ.bin", orig_queue=f"DLQ.{KEY}", **same
    )
    job = ReplayJob.objects.create(
        setting=world.settings[KEY], setting_key=KEY, action="edit", scope="one", state="done", total=1,
        source_queue=f"DLQ.{KEY}", target_queue="DLQ.bin", finished_at=world.now,
    )  # fmt: skip
    item = ReplayItem.objects.create(job=job, letter=original, state="given_back", outcome="handled")
    LetterEdit.objects.create(item=item, encoded=b"", state="done")
    catch_up(200)
    return {"original": original, "trash": trash, "job": job}
