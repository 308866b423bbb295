"""Dead letters as rows, without a broker."""

from datetime import timedelta
from typing import Any

from agents.models import LaunchSetting
from broker.amqp.codec import encode
from broker.port import Message
from contract.typed import Typed
from dlq.dead_letters.rules.parser import letter_row
from dlq.index import store
from dlq.models import DeadLetter, ItemState, LetterState, ReplayItem, ReplayJob, ReplaySlice, SliceState
from dlq.replay import counts
from tests.web.reports import AT

NODE = "node-1"


def dead(
    setting_key: str, number: int, message_id: str = "", body: Typed | None = None, **fields: Any
) -> DeadLetter:
    """A letter as the feed stores it. `number` is the broker's id of the message before it died."""
    annotations = {
        "x-opt-ORIG-ADDRESS": Typed("string", f"t.{setting_key}"),
        "x-opt-ORIG-QUEUE": Typed("string", setting_key),
        "x-opt-ORIG-MESSAGE-ID": Typed("long", number),
    }
    id_ = Typed("string", message_id) if message_id else None
    message = Message(body=body or Typed("string", "{}"), message_id=id_, annotations=annotations, **fields)
    row = letter_row(encode(message), NODE, AT + timedelta(seconds=number))
    row.queue = f"DLQ.{setting_key}"
    store.store([row], row.seen_at)
    return row


def given_back(setting: LaunchSetting, *letters: DeadLetter) -> ReplayJob:
    """A job that gave these back, one minute after the last of them died."""
    now = max(letter.seen_at for letter in letters) + timedelta(minutes=1)
    job = ReplayJob.objects.create(
        setting=setting,
        setting_key=setting.key,
        scope="selection",
        state="done",
        created_at=now,
        total=len(letters),
    )
    piece = ReplaySlice.objects.create(
        job=job, number=1, first_letter_id=letters[0].pk, last_letter_id=letters[-1].pk, size=len(letters),
        state=SliceState.CHECKED, tries=1, planned_at=now,
    )  # fmt: skip
    for letter in letters:
        ReplayItem.objects.create(
            job=job, letter=letter, slice=piece, state=ItemState.GIVEN_BACK, state_at=now
        )
    DeadLetter.objects.filter(pk__in=[letter.pk for letter in letters]).update(state=LetterState.GIVEN_BACK)
    counts.recount(job.pk)
    return job
