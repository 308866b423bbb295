"""The broker's rows of messages that are not handled yet -> what is shown of them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from broker.management.waiting_messages import Delivering, Row
from contract.message_key import message_key
from contract.names import ANNOTATED_ORIG_MESSAGE_ID, LETTER, ORIG_MESSAGE_ID, belongs_to_identity, server_of
from contract.redelivery import RedeliveryPolicy, delay_before
from contract.typed import Typed, storable

# The broker's own words in a row; they win over properties of the same name.
FIXED = frozenset(
    {"address", "messageID", "userID", "expiration", "durable", "priority", "timestamp", "type", "to"}
)
BROKERS = ("__AMQ_", "x-opt-", "JMS_AMQP_")
# Every row of an AMQP message has it, no row of a Core or STOMP message.
OF_AMQP = "_AMQ_AD"


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """`number`: the broker's id of it in its queue. `keys`: the message keys that it may have, the likeliest
    first; none where the producer set no id. `before`: the id that it had before its last move. `properties`
    in the form of `typed_list`, texts cut by the broker."""

    number: int
    message_id: str
    keys: tuple[str, ...]
    before: int | None
    priority: int
    durable: bool
    sent_at: datetime | None
    expires_at: datetime | None
    properties: tuple[dict[str, Any], ...]

    @property
    def key(self) -> str:
        return self.keys[0] if self.keys else ""


@dataclass(frozen=True, slots=True)
class Held:
    """A message in delivery. `server` empty: no KMA of ours holds it, `connection` says who. `since` is when
    its consumer was given its last message: exactly this one where it holds one, else this one or a later
    one."""

    message: WaitingMessage
    server: str
    connection: str
    since: datetime | None
    exact: bool


@dataclass(frozen=True, slots=True)
class NextTry:
    """Attempt `number` of `of` (None: without end), due about `due`, as far as the last protocol tells."""

    number: int
    of: int | None
    due: datetime


def waiting_message(row: Row) -> WaitingMessage:
    """Raises KeyError, TypeError, ValueError for what is no row of the broker."""
    user_id = storable(str(row.get("userID") or ""))
    return WaitingMessage(
        number=int(row["messageID"]),
        message_id=user_id if OF_AMQP not in row else user_id.removeprefix("ID:"),
        keys=_keys(row),
        before=_before(row),
        priority=int(row.get("priority", 4)),
        durable=row.get("durable") is not False,
        sent_at=_instant(row.get("timestamp")),
        expires_at=_instant(row.get("expiration")),
        properties=tuple(_property(name, value) for name, value in sorted(row.items()) if _is_property(name)),
    )


def _keys(row: Row) -> tuple[str, ...]:
    """The broker writes an id as text and does not say what type it had."""
    letter, user_id = row.get(LETTER), str(row.get("userID") or "")
    if isinstance(letter, str) and letter:
        return (storable(letter)[:255],)
    if not user_id:
        return ()
    if OF_AMQP not in row:
        return (_key("string", user_id),)
    text = user_id.removeprefix("ID:")
    found = [_key("string", text)] if text else []
    if text.isdecimal() and text.isascii() and len(text) < 21:
        found.append(_key("ulong", int(text)))
    if _is_uuid(text):
        found.append(_key("uuid", text))
    return tuple(found)


def _key(kind: str, value: Any) -> str:
    return storable(message_key(Typed(kind, value), b"", {}).text)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _before(row: Row) -> int | None:
    """A producer can write the property, of AMQP messages the annotation is the broker's alone."""
    number = row.get(ANNOTATED_ORIG_MESSAGE_ID if ANNOTATED_ORIG_MESSAGE_ID in row else ORIG_MESSAGE_ID)
    return number if isinstance(number, int) and 0 <= number < 2**63 else None


def _is_property(name: str) -> bool:
    return name not in FIXED and belongs_to_identity(name) and not name.startswith(BROKERS)


def _property(name: str, value: Any) -> dict[str, Any]:
    """Types are lost on the way: what is a number here was one there, the rest is text or bytes."""
    if isinstance(value, list):
        text = f"0x{bytes(each & 0xFF for each in value if isinstance(each, int)).hex()}"
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = str(value)
    return {"name": storable(name), "value": storable(text)}


def _instant(milliseconds: Any) -> datetime | None:
    if not isinstance(milliseconds, int | float) or milliseconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None  # a producer may write any number


def held_messages(groups: Sequence[Delivering]) -> list[Held]:
    """Returns those of all consumers, the longest held first as far as it is known."""
    found = [_held(row, group.consumer, len(group.rows)) for group in groups for row in group.rows]
    return sorted(found, key=lambda held: held.message.number)


def _held(row: Row, consumer: Mapping[str, Any], count: int) -> Held:
    name = str(consumer.get("clientID") or "")
    return Held(
        message=waiting_message(row),
        server=storable(server_of(name)),
        connection=storable(name or str(consumer.get("remoteAddress") or "")),
        since=_instant(consumer.get("lastDeliveredTime")),
        exact=count == 1,
    )


def next_try(policy: RedeliveryPolicy, attempt: int, failed_at: datetime) -> NextTry:
    """After attempt `attempt` failed. Collision avoidance moves it a little: `due` is the middle."""
    wait = delay_before(policy, max(1, attempt))
    limit = policy.max_attempts if policy.max_attempts > 0 else None
    return NextTry(attempt + 1, limit, failed_at + timedelta(milliseconds=wait))
