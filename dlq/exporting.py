"""Letters for an export, newest first: what a filter finds for a person, in pieces, masked for that person.

However many there are, memory holds one piece, and no statement and no transaction is longer than one piece
takes.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.db.models import QuerySet

from broker.amqp_codec import decode
from broker.errors import MessageUndecodable
from broker.port import Message
from console.exports.rows import Row
from contract.typed import to_json
from dlq.bodies import body_of
from dlq.export import EXPORTED, HEAD, with_head
from dlq.finding.filters import LetterFilter
from dlq.finding.newest import Newest
from dlq.letters_for import newest_found
from dlq.masked_bodies import told
from dlq.masking import Masks
from dlq.models import DeadLetter
from dlq.reading import typed_list

# Letters of one piece; whole ones have up to 1 MB each.
PIECE, WHOLE_PIECE = 500, 10
HEAD_OF_CONTENT = "content__body_text"
# Of the message itself, beside its properties; only where it was set.
TEXTS = ("subject", "reply_to", "content_type", "content_encoding", "group_id", "reply_to_group_id")

Step = Callable[[int | None, int], Newest]


def of_filter(filters: LetterFilter, user: Any) -> Step:
    """A valid filter."""
    return lambda before, size: newest_found(filters, user, before=before, size=size)


def of_rows(letters: QuerySet[DeadLetter]) -> Step:
    """Letters of which a simple index knows the order."""

    def step(before: int | None, size: int) -> Newest:
        rows = letters if before is None else letters.filter(pk__lt=before)
        return Newest(numbers=list(rows.order_by("-pk").values_list("pk", flat=True)[:size]))

    return step


def rows(step: Step, masks: Masks, *, bodies: bool) -> Iterator[Row]:
    """For `dlq.export.lines`: heads of bodies, or (`bodies`) whole letters with `body`, and with `message`,
    from which an import makes the message again."""
    size = WHOLE_PIECE if bodies else PIECE
    before: int | None = None
    while True:
        found = step(before, size)
        if found.numbers:
            yield from _piece(found.numbers, masks, bodies)
        if found.stopped_at is not None:
            before = found.stopped_at
        elif len(found.numbers) < size:
            return
        else:
            before = found.numbers[-1]


def _piece(numbers: Sequence[int], masks: Masks, bodies: bool) -> Iterator[Row]:
    """What was removed meanwhile is not among them."""
    letters = DeadLetter.objects.filter(pk__in=numbers).select_related("content")
    part = "content__encoded" if bodies else HEAD_OF_CONTENT
    for letter in letters.only(*EXPORTED, part).order_by("-pk"):
        yield _whole(letter, masks) if bodies else _head(letter, masks)


def head_of(letters: QuerySet[DeadLetter], masks: Masks) -> Row | None:
    """Of the only one of them, if there is one."""
    letter = letters.select_related("content").only(*EXPORTED, HEAD_OF_CONTENT).first()
    return _head(letter, masks) if letter is not None else None


def _head(letter: DeadLetter, masks: Masks) -> Row:
    return with_head({**_columns(letter), HEAD: masks.head_of_body(letter)})


def _columns(letter: DeadLetter) -> dict[str, Any]:
    return {name: getattr(letter, name) for name in EXPORTED}


def _whole(letter: DeadLetter, masks: Masks) -> Row:
    """Of bytes that are no message nothing is told: properties may be anywhere in them. Nor is there anything
    to make a message of where the body was deleted: `body_deleted_at` says when."""
    try:
        message = decode(bytes(letter.encoded))
    except MessageUndecodable:
        return _columns(letter) | {"body": None, "message": None}
    whole = body_of(message, letter.jms_kind)
    body = told(whole, letter, masks)
    return _columns(letter) | {
        "body": _body(body.text, body.raw) if body is not None else {"masked": ""},
        "message": _message(letter, message, masks, hidden=body is not whole),
    }


def _body(text: str | None, raw: bytes) -> dict[str, str]:
    return {"text": text} if text is not None else {"base64": base64.b64encode(raw).decode("ascii")}


def _message(letter: DeadLetter, message: Message, masks: Masks, *, hidden: bool) -> dict[str, Any]:
    """`body_type` says what `body` is the text of; another body than text and bytes is here as a whole.
    `masked`: some of it is not told."""
    properties = masks.items(letter, typed_list(message.properties))
    annotations = masks.items(letter, typed_list(message.annotations))
    plain = message.body.type in ("string", "binary", "null")
    data: dict[str, Any] = {
        "masked": hidden or any(item.get("masked") for item in (*properties, *annotations)),
        "body_type": message.body.type,
        "body_kind": message.body_kind.value,
        "properties": properties,
        "annotations": annotations,
        "durable": message.durable,
        "priority": message.priority,
    }
    if not plain and not hidden:
        data["body"] = to_json(message.body)
    if message.correlation_id is not None:
        data["correlation_id"] = to_json(message.correlation_id)
    return data | {name: getattr(message, name) for name in TEXTS if getattr(message, name)}
