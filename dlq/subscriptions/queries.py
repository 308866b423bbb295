"""Describes what a person sees of waiting messages: one part of them, a page of it, with what the database
knows of each."""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from agents.models import LaunchSetting
from broker.amqp.browser import AmqpBrowser
from broker.management import waiting_messages
from broker.management.queues import QueueFigures, queue_figures
from broker.port import AddressUnknown, BrokerError, Browser, Management
from console.broker import management
from contract.names import HOLD, dead_letter_queue, hold_queue
from dlq.dead_letters.masks import Masks, masked
from dlq.dead_letters.rules.parser import letter_row
from dlq.models.message_action import MessageResult, WaitingItem, WaitingKind, WaitingPart
from dlq.outcomes.settlement import deaths
from dlq.subscriptions.requests import queue_of
from dlq.subscriptions.rules import Held, NextTry, WaitingMessage, held_messages, next_try, waiting_message
from failures.models import FailureProtocol

# -- heads of bodies: management has none, a short AMQP walk does --------------------------------------------


# Bytes that the messages of a walk may have on average, and all together: it brings them whole.
LARGEST_AVERAGE = 64 * 1024
MOST_BYTES = 16 * 1024 * 1024
# Seconds for a step of the walk: a page waits for it.
PATIENCE = 1.0


@dataclass(frozen=True, slots=True)
class Heads:
    """Masked for one person."""

    management: Management
    browser: Browser
    masks: Masks

    def of(
        self, setting: LaunchSetting, part: str, messages: Sequence[WaitingMessage], limit: int
    ) -> dict[int, str]:
        """{broker's id: head of the body} of the first `limit` messages, of those of which it is certain.

        Nothing in a walk names a message by the broker's id. Where the queue's head stood still during the
        walk, the order tells; else the producer's id, where only one message has it. None of large messages.
        """
        queue = queue_of(setting.key, part)
        address = HOLD if part == WaitingPart.HELD else setting.subscribed.name
        try:
            if self._average(queue) > LARGEST_AVERAGE:
                return {}
            with closing(self._walk(setting.key, address, queue)) as walk:
                walked = list(islice(walk, limit))
            after = [int(row["messageID"]) for row in waiting_messages.first_waiting(self.management, queue)][
                :limit
            ]
        except BrokerError:
            return {}
        first = list(messages[:limit])
        if after == [message.number for message in first] and len(walked) == len(first):
            return {message.number: body for message, (_id, body) in zip(first, walked, strict=True)}
        return _by_id(messages, walked)

    def _average(self, queue: str) -> float:
        size, count = self.management.attributes(f"queue.{queue}", "PersistentSize", "MessageCount")
        return int(size) / max(1, int(count))

    def _walk(self, key: str, address: str, queue: str) -> Generator[tuple[str, str]]:
        """(the producer's id, the head of the body); ends early where messages are large."""
        now, size = timezone.now(), 0
        with closing(self.browser.walk(address, queue)) as pieces:  # type: ignore[type-var]  # a generator, if real
            for piece in pieces:
                for encoded in piece:
                    row = letter_row(encoded, "", now)
                    row.setting_key, row.queue = key, dead_letter_queue(key)
                    yield row.message_id, self.masks.head_of_body(row)
                size += sum(map(len, piece))
                if size > MOST_BYTES:
                    return


def _by_id(messages: Sequence[WaitingMessage], walked: Sequence[tuple[str, str]]) -> dict[int, str]:
    """A message may have gone, and another of the same id come: only ids that one message has on both
    sides."""
    there = Counter(message.message_id for message in messages)
    seen = Counter(own for own, _body in walked)
    bodies = {own: body for own, body in walked if own and seen[own] == 1 == there[own]}
    return {
        message.number: bodies[message.message_id] for message in messages if message.message_id in bodies
    }


def heads_for(masks: Masks) -> Heads:
    return Heads(management(), AmqpBrowser(settings.MA_BROKER_AMQP, PATIENCE), masks)


IN_DELIVERY = "in_delivery"
PARTS = (WaitingPart.WAITING.value, WaitingPart.DELAYED.value, IN_DELIVERY, WaitingPart.HELD.value)
PER_PAGE = 50
# Protocols looked at for the messages of a page: the latest of each key.
PROTOCOLS = 1000


@dataclass(frozen=True, slots=True)
class Hold:
    """Says who held a message back, since when, why."""

    by: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message. `properties` are masked. `body` is its head, None where the broker does not show it.
    `attempt` is the one that comes next, as far as protocols tell; only of a delayed message its `due` means
    something."""

    message: WaitingMessage
    properties: Sequence[Mapping[str, Any]]
    key: str
    attempt: NextTry | None = None
    body: str | None = None
    held: Held | None = None
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """The broker's, of one moment each."""

    waiting: int
    delayed: int
    in_delivery: int
    held: int

    def of(self, part: str) -> int:
        return int(getattr(self, part))


@dataclass(frozen=True, slots=True)
class MessagePage:
    """`reported`: how many the broker tells of, from the first; None: they are too many to be told at all."""

    setting_key: str
    part: str
    counts: Counts
    lines: list[MessageRow]
    reported: int | None
    start: int

    @property
    def cut(self) -> bool:
        """Returns whether there are more than can be looked at."""
        return self.reported is not None and self.reported < self.counts.of(self.part)

    @property
    def more(self) -> bool:
        return self.reported is not None and self.start + PER_PAGE < self.reported


def place_counts(broker: Management, setting: LaunchSetting) -> Counts:
    """Raises BrokerError, AddressUnknown while its queues are not there."""
    figures = queue_figures(broker, setting.key, setting.subscribed.name)
    held = held_figures(broker, setting.key)
    return Counts(figures.waiting, figures.scheduled, figures.delivering, held.messages if held else 0)


def held_figures(broker: Management, key: str) -> QueueFigures | None:
    """None: nothing was ever held back."""
    try:
        return queue_figures(broker, hold_queue(key), HOLD)
    except AddressUnknown:
        return None


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """Holds what the broker said. `found` None: the messages are too many to be told. A page of them begins
    at `start`."""

    part: str
    counts: Counts
    found: Sequence[tuple[WaitingMessage, Held | None]] | None
    start: int


def ask_broker(broker: Management, setting: LaunchSetting, part: str, start: int = 0) -> BrokerAnswer:
    """Asks without the database, so that a page need not wait for the end of it. Raises BrokerError."""
    counts = place_counts(broker, setting)
    found = _found(broker, setting.key, part, counts)
    if found is None or not 0 <= start < len(found):
        start = 0
    return BrokerAnswer(part, counts, found, start)


def bodies_of(answer: BrokerAnswer, setting: LaunchSetting, heads: Heads) -> Mapping[int, str]:
    """Heads of the bodies by the broker's id, for `message_page`: what can be browsed, and is certain.
    Without the database."""
    if not answer.found or answer.part not in (WaitingPart.WAITING, WaitingPart.HELD):
        return {}
    return heads.of(
        setting, answer.part, [message for message, _held in answer.found], answer.start + PER_PAGE
    )


def message_page(
    answer: BrokerAnswer, setting: LaunchSetting, masks: Masks, bodies: Mapping[int, str]
) -> MessagePage:
    """Adds what the database knows of the messages."""
    if answer.found is None:
        return MessagePage(setting.key, answer.part, answer.counts, [], None, 0)
    lines = [
        _line(setting, each, held, masks)
        for each, held in answer.found[answer.start : answer.start + PER_PAGE]
    ]
    lines = _with_attempts(setting, lines)
    if answer.part == WaitingPart.HELD:
        lines = _with_holds(setting.key, lines)
    lines = [replace(line, body=bodies.get(line.message.number)) for line in lines]
    return MessagePage(setting.key, answer.part, answer.counts, lines, len(answer.found), answer.start)


def _found(
    broker: Management, key: str, part: str, counts: Counts
) -> list[tuple[WaitingMessage, Held | None]] | None:
    if not counts.of(part):
        return []
    if part == IN_DELIVERY:
        groups = waiting_messages.in_delivery(broker, key)
        return None if groups is None else [(held.message, held) for held in held_messages(groups)]
    if part == WaitingPart.DELAYED:
        rows = waiting_messages.delayed(broker, key)
        if rows is None:
            return None
        return [
            (message, None) for message in sorted(map(waiting_message, rows), key=lambda each: each.number)
        ]
    rows = waiting_messages.first_waiting(broker, queue_of(key, part))
    return [(waiting_message(row), None) for row in rows]


def _line(setting: LaunchSetting, message: WaitingMessage, held: Held | None, masks: Masks) -> MessageRow:
    hidden = masks.names_of([setting.key])
    properties = [masked(each) if each["name"] in hidden else each for each in message.properties]
    return MessageRow(message, properties, message.key, held=held)


def _with_attempts(setting: LaunchSetting, lines: list[MessageRow]) -> list[MessageRow]:
    """Attempts since the message last died or was released: a move begins them anew."""
    candidates = {key for line in lines for key in line.message.keys}
    failed = _last_failures(setting.key, candidates)
    died = deaths(setting.key, failed.keys()) if failed else {}
    released = _released(
        setting.key, [line.message.before for line in lines if line.message.before is not None]
    )
    policy, found = setting.subscribed.policy, []
    for line in lines:
        key = next((key for key in line.message.keys if key in failed), None)
        if key is not None:
            attempt, at = failed[key]
            begun = max(filter(None, (died.get(key), released.get(line.message.before or -1))), default=None)
            line = replace(line, key=key)
            if begun is None or begun < at:
                line = replace(line, attempt=next_try(policy, attempt, at))
        found.append(line)
    return found


def _last_failures(setting_key: str, keys: set[str]) -> dict[str, tuple[int, datetime]]:
    """{message key: (attempt, when)} of the last protocol of each."""
    rows = FailureProtocol.objects.filter(
        message_key__in=keys, setting_key=setting_key, message_key_weak=False
    )
    latest = dict(rows.order_by().values_list("message_key").annotate(Max("occurred_at")))
    found = rows.filter(occurred_at__in=set(latest.values())).order_by("occurred_at", "attempt")
    answer = found.values_list("message_key", "attempt", "occurred_at")[:PROTOCOLS]
    return {key: (attempt, at) for key, attempt, at in answer if latest.get(key) == at}


def _released(setting_key: str, numbers: list[int]) -> dict[int, datetime]:
    """Returns when messages that had these ids in the hold queue left it."""
    items = WaitingItem.objects.filter(
        setting_key=setting_key,
        number__in=numbers,
        action__kind=WaitingKind.RELEASE,
        fate__in=(MessageResult.ACTED, MessageResult.DONE),
    )
    return dict(items.order_by("at").values_list("number", "at"))


def _with_holds(setting_key: str, lines: list[MessageRow]) -> list[MessageRow]:
    numbers = [line.message.before for line in lines if line.message.before is not None]
    items = WaitingItem.objects.filter(
        setting_key=setting_key, number__in=numbers, action__kind=WaitingKind.HOLD
    ).select_related("action")
    holds = {
        item.number: Hold(item.action.by_name, item.action.created_at, item.action.reason)
        for item in items.order_by("pk")
    }
    return [replace(line, hold=holds.get(line.message.before or -1)) for line in lines]
