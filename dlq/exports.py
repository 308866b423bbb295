"""Dead letters as CSV or JSON lines, newest first: what a filter finds for a person, in pieces, masked for
that person.

However many there are, memory holds one piece, and no statement and no transaction is longer than one piece
takes.
"""

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from broker.amqp.codec import decode
from broker.port import Message, MessageUndecodable
from console.audit.log import Person, record
from console.audit.models import AuditResult
from console.database.statements import quick
from console.exports import Row, Stream, cell, csv_line, json_line
from console.lists.keyset import Found, count_up_to, pieces
from console.operations.refusals import Refused
from console.ui.amounts import number
from contract.typed import to_json
from dlq.dead_letters.masks import Masks
from dlq.dead_letters.rules.body import body_of, visible_body
from dlq.dead_letters.rules.parser import typed_list
from dlq.models import DeadLetter
from dlq.search.filter import LetterFilter, query_for_all
from dlq.search.visibility import newest_found

# -- rows, pure: what a file of dead letters holds, and how --------------------------------------------------


# What lists show of a dead letter; short, and nothing of its content.
LISTED = (
    "id", "setting_key", "queue", "state", "seen_at", "chapter", "delivery_count", "exception_type",
    "fingerprint",
    "message_key", "message_key_weak", "size", "problem",
)  # fmt: skip
EXPORTED = (
    *LISTED, "exception_text", "place", "state_at", "protocol_at", "address", "orig_queue", "orig_message_id",
    "node_id", "message_id", "correlation_id", "reply_to", "content_type", "body_kind", "jms_kind", "durable",
    "priority", "created_at_producer", "truncated", "body_deleted_at",
)  # fmt: skip
HEAD = "body_text"


def lines(rows: Iterable[Row], form: str) -> Iterator[str]:
    """The file in pieces, each ends with its line end; of CSV the first names the columns. One row in memory
    at a time.

    Rows are those of `dlq.exports`, all of the same kind.
    """
    return _csv(rows) if form == "csv" else map(json_line, rows)


def _csv(rows: Iterable[Row]) -> Iterator[str]:
    header: list[str] = []
    for row in rows:
        flat = _flat(row)
        if not header:
            header = list(flat)
            yield csv_line(header)
        yield csv_line([cell(value) for value in flat.values()])
    if not header:
        yield csv_line([*EXPORTED, HEAD])


def _flat(row: Row) -> dict[str, Any]:
    """A body in two columns: which form it has (text, base64, masked), and the text of it."""
    if "body" not in row:
        return dict(row)
    ((form, text),) = (row["body"] or {"": ""}).items()
    return {name: value for name, value in row.items() if name != "message"} | {
        "body_form": form,
        "body": text,
    }


# -- what a filter finds for a person, in pieces, masked -----------------------------------------------------


# Dead letters of one piece; whole ones have up to 1 MB each.
PIECE, WHOLE_PIECE = 500, 10
HEAD_OF_CONTENT = "content__body_text"
# Of the message itself, beside its properties; only where it was set.
TEXTS = ("subject", "reply_to", "content_type", "content_encoding", "group_id", "reply_to_group_id")

Step = Callable[[int | None, int], Found[int]]


def of_filter(filters: LetterFilter, user: Any) -> Step:
    """A valid filter."""
    return lambda before, size: newest_found(filters, user, before=before, size=size)


def of_rows(letters: QuerySet[DeadLetter]) -> Step:
    """Dead letters of which a simple index knows the order."""

    def step(before: int | None, size: int) -> Found[int]:
        rows = letters if before is None else letters.filter(pk__lt=before)
        return Found(list(rows.order_by("-pk").values_list("pk", flat=True)[:size]))

    return step


def rows(step: Step, masks: Masks, *, bodies: bool) -> Iterator[Row]:
    """Yields rows for `dlq.exports.lines`: heads of bodies, or (`bodies`) whole dead letters with
    `body`, and with `message`, from which an import makes the message again."""
    size = WHOLE_PIECE if bodies else PIECE
    for numbers in filter(None, pieces(step, size)):
        yield from _piece(numbers, masks, bodies)


def _piece(numbers: Sequence[int], masks: Masks, bodies: bool) -> Iterator[Row]:
    """What was removed meanwhile is not among them."""
    letters = DeadLetter.objects.filter(pk__in=numbers).select_related("content")
    part = "content__encoded" if bodies else HEAD_OF_CONTENT
    for letter in letters.only(*EXPORTED, part).order_by("-pk"):
        yield _whole(letter, masks) if bodies else _head(letter, masks)


def export_head(letters: QuerySet[DeadLetter], masks: Masks) -> Row | None:
    """Returns the head of the only one of them, if there is one."""
    letter = letters.select_related("content").only(*EXPORTED, HEAD_OF_CONTENT).first()
    return _head(letter, masks) if letter is not None else None


def _head(letter: DeadLetter, masks: Masks) -> Row:
    return {**_columns(letter), HEAD: masks.head_of_body(letter) if letter.body_kind else ""}


def _columns(letter: DeadLetter) -> dict[str, Any]:
    return {name: getattr(letter, name) for name in EXPORTED}


def _whole(letter: DeadLetter, masks: Masks) -> Row:
    """Shows nothing of bytes that are no message: properties may be anywhere in them. Nor is there anything
    to make a message of where the body was deleted: `body_deleted_at` says when."""
    try:
        message = decode(bytes(letter.encoded))
    except MessageUndecodable:
        return _columns(letter) | {"body": None, "message": None}
    whole = body_of(message, letter.jms_kind)
    body = visible_body(whole, letter, masks)
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


# -- what an export over the web is allowed to take: dead letters, time, threads -----------------------------
# The command line has none of these limits.


# Dead letters of one file: heads of bodies, or whole dead letters of up to 1 MB.
MOST, MOST_WHOLE = 100_000, 10_000
EXPORT = "dead_letters.export"


def audit_target(key: str) -> str:
    return f"setting:{key}" if key else "letters:all"


def most(*, bodies: bool) -> int:
    return MOST_WHOLE if bodies else MOST


def checked_count(letters: QuerySet[DeadLetter], *, bodies: bool) -> int:
    """Returns how many there are. Raises Refused."""
    limit = most(bodies=bodies)
    with quick():
        count = count_up_to(letters, limit)
    if count > limit:
        text = _(
            "Cannot export more than %(n)s messages. Narrow the filter, or export from the "
            "command line: %(command)s"
        )
        raise Refused("too_many", text % {"n": number(limit), "command": "./ma manage dlq export"})
    return count


def stream_of(texts: Iterable[str], *, by: Person, about: dict[str, Any], begin: str = "") -> Stream:
    """Told in the audit. Raises Refused where all places are taken."""
    done, failed = AuditResult.DONE, AuditResult.FAILED
    return Stream(
        texts, on_end=lambda whole: record_export(by, **about, result=done if whole else failed), begin=begin
    )


def record_export(
    by: Person,
    *,
    key: str,
    file: str,
    bodies: bool,
    query: str,
    count: int | None = None,
    result: AuditResult = AuditResult.DONE,
) -> None:
    """Records it in the audit before anything is sent; once more where it was not sent to its end. `count`:
    how many dead letters it will be, where somebody counted."""
    record(
        EXPORT, by=by, now=timezone.now(), target=audit_target(key), setting_key=key,
        counts=None if count is None else {"letters": count}, result=result,
        detail={"file": file, "bodies": bodies, "query": query_for_all(query, key)},
    )  # fmt: skip
