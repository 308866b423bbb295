"""Messages that the broker cannot turn into AMQP: each ends as one dead letter, however often it comes back.

The broker sends such a message to the dead letters and yet leaves it with the link that should have had it.
When that link ends it is in the subscription again, and dies again with the next one: a further dead letter
of the same death. Here those further dead letters are removed, and the message itself as soon as no consumer
is there to take it (docs/explanation/broker.md).

Killed before a row is written: the dead letter comes again, as it is not accepted. Killed between the row and
the removal: the same, and the row says which dead letter stays. A removal names one message of one queue, so
it may be repeated.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db.models import Count, F, Sum
from django.utils import timezone

from broker.amqp.codec import encode
from broker.management.queues import find
from broker.port import BodyKind, Management, ManagementFailed, Message
from console.jobs import crash
from contract.names import (
    BROKER_ID,
    BYTES_IN_STREAM,
    MALFORMED_BODY,
    NOT_CONVERTIBLE,
    ORIG_MESSAGE_ID,
    ORIG_QUEUE,
    dead_letter_queue,
)
from contract.typed import Typed
from dlq.index.queries import FEED_QUEUE
from dlq.models import DeadLetter, UndeliveredMessage

log = structlog.get_logger(__name__)

# Queues that are asked at a time, and messages of one that are taken out: a few milliseconds each.
MOST_QUEUES, MOST_MESSAGES = 20, 50
MOST_TOLD = 100


@dataclass(frozen=True, slots=True)
class FurtherDeath:
    """Holds what a dead letter says of a message that could not be delivered. `letter_queue` holds the dead
    letter."""

    node_id: str
    queue: str
    message_id: int
    letter_queue: str
    letter_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Head:
    """The first message of the feed by the broker's management, which tells everything but its body."""

    queue: str
    message_id: int
    letter_id: int
    facts: Mapping[str, Any]

    def letter(self) -> bytes:
        """The message without its body, marked as one that the broker could not deliver."""
        properties = {
            name: typed for name, value in self.facts.items() if (typed := _typed(name, value)) is not None
        }
        annotations = {
            NOT_CONVERTIBLE: Typed("string", MALFORMED_BODY),
            BROKER_ID: Typed("long", self.letter_id),
        }
        user_id = str(self.facts.get("userID") or "")
        return encode(
            Message(
                body=Typed("binary", b""),
                body_kind=BodyKind.DATA,
                properties=properties,
                annotations=annotations,
                message_id=Typed("string", user_id) if user_id else None,
                durable=bool(self.facts.get("durable", True)),
            )
        )


# What the broker's management says of each message beside its properties.
_OF_THE_MESSAGE = frozenset(
    {
        "address",
        "messageID",
        "type",
        "priority",
        "userID",
        "durable",
        "expiration",
        "timestamp",
        "largeMessage",
    }
)


def _typed(name: str, value: object) -> Typed | None:
    if name in _OF_THE_MESSAGE or not _is_text(name):
        return None
    if isinstance(value, bool):
        return Typed("boolean", value)
    if isinstance(value, int):
        return Typed("long", value) if -(2**63) <= value < 2**63 else None
    if isinstance(value, float):
        return Typed("double", value)
    return Typed("string", value) if isinstance(value, str) and _is_text(value) else None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def death_of(row: DeadLetter, message: Message | None) -> FurtherDeath | None:
    """None: the message could be delivered, or nobody says where it was."""
    if message is None or NOT_CONVERTIBLE not in message.annotations or BROKER_ID not in message.annotations:
        return None
    if not row.orig_queue or row.orig_message_id < 0:
        return None
    reason, letter_id = message.annotations[NOT_CONVERTIBLE].value, message.annotations[BROKER_ID].value
    if (
        reason not in (BYTES_IN_STREAM, MALFORMED_BODY)
        or type(letter_id) is not int
        or not 0 <= letter_id < 2**63
    ):
        return None
    return FurtherDeath(row.node_id, row.orig_queue, row.orig_message_id, row.queue, letter_id, reason)


def keep_one_letter(management: Management, deaths: Iterable[FurtherDeath], now: datetime) -> None:
    """Keeps the first dead letter of each message. Raises BrokerError; then call it again."""
    for death in deaths:
        known, new = UndeliveredMessage.objects.get_or_create(
            node_id=death.node_id,
            queue=death.queue,
            message_id=death.message_id,
            defaults={"letter_id": death.letter_id, "reason": death.reason, "first_at": now, "last_at": now},
        )
        crash.point("undelivered: noted")
        if new:
            log.warning("the broker could not deliver a message", queue=death.queue, reason=death.reason)
        elif known.letter_id != death.letter_id and _remove(management, death.letter_queue, death.letter_id):
            rows = UndeliveredMessage.objects.filter(pk=known.pk)
            rows.update(deaths=F("deaths") + 1, last_at=now, taken_out_at=None)


def clear_head_of_feed(management: Management, node_id: str) -> Head | None:
    """Takes further dead letters of known messages from the head of the feed, which has no consumer. A large
    one has lost its body: the broker drops whoever should get it, without a word, and keeps it at the head.

    Answers with the head where it is of a message that is not known. Raises BrokerError.
    """
    for _ in range(MOST_MESSAGES):
        head = _head_of_feed(management)
        if head is None:
            return None
        known = UndeliveredMessage.objects.filter(
            node_id=node_id, queue=head.queue, message_id=head.message_id
        ).first()
        if known is None:
            return head
        # First where it lies, then in the feed: killed in between, it is found here again.
        if head.letter_id != known.letter_id and _remove(
            management, dead_letter_queue(head.queue), head.letter_id
        ):
            rows = UndeliveredMessage.objects.filter(pk=known.pk)
            rows.update(deaths=F("deaths") + 1, last_at=timezone.now(), taken_out_at=None)
        crash.point("undelivered: head removed where it lies")
        _remove(management, FEED_QUEUE, head.letter_id)
    return None


def drop_head_of_feed(management: Management, head: Head) -> None:
    """Its row is stored. Raises BrokerError."""
    _remove(management, FEED_QUEUE, head.letter_id)


def _head_of_feed(management: Management) -> Head | None:
    found = json.loads(management.call(f"queue.{FEED_QUEUE}", "peekFirstMessageAsJSON") or "null")
    if not found:
        return None
    origin = found.get(ORIG_MESSAGE_ID)
    return Head(
        queue=str(found.get(ORIG_QUEUE, "")),
        message_id=origin if isinstance(origin, int) else -1,
        letter_id=int(found["messageID"]),
        facts=found,
    )


def take_out(management: Management) -> Sequence[UndeliveredMessage]:
    """Those that wait in a subscription without a consumer, for good. Raises BrokerError."""
    waiting = UndeliveredMessage.objects.filter(taken_out_at=None)
    queues = sorted(set(waiting.values_list("queue", flat=True)))[:MOST_QUEUES]
    return [row for queue in queues for row in _take_out(management, queue)]


def _take_out(management: Management, queue: str) -> list[UndeliveredMessage]:
    rows = UndeliveredMessage.objects.filter(taken_out_at=None, queue=queue)
    try:
        if int(management.attribute(f"queue.{queue}", "ConsumerCount")):
            return []
    except ManagementFailed:
        if find(management, "listQueues", queue) is None:
            rows.delete()  # with the queue
        return []
    some = list(rows[:MOST_MESSAGES])
    for row in some:
        _remove(management, queue, row.message_id)
        crash.point("undelivered: removed")
    # Nobody consumes: what was not there is out already, by a removal of before or by somebody else.
    return some


def note_taken_out(rows: Sequence[UndeliveredMessage], now: datetime) -> None:
    if rows:
        UndeliveredMessage.objects.filter(pk__in=[row.pk for row in rows]).update(taken_out_at=now)
        log.info("undeliverable messages removed from their queues", number=len(rows))


def forget_before_restart(management: Management, now: datetime) -> None:
    """The broker has forgotten what it held when it started, and counts anew."""
    running = timedelta(milliseconds=int(management.attribute("broker", "UptimeMillis")))
    UndeliveredMessage.objects.filter(last_at__lt=now - running).delete()


def by_queue() -> list[tuple[str, int, int]]:
    """Returns for each subscription: messages, and how many of them the broker counted down too often."""
    rows = UndeliveredMessage.objects.values("queue").annotate(number=Count("id"), deaths=Sum("deaths"))
    return [
        (row["queue"], row["number"], row["deaths"] - row["number"])
        for row in rows.order_by("queue")[:MOST_TOLD]
    ]


def _remove(management: Management, queue: str, message_id: int) -> bool:
    try:
        return bool(management.call(f"queue.{queue}", "removeMessage", message_id))
    except ManagementFailed as error:
        log.info("nothing to remove", queue=queue, reason=str(error))
        return False
