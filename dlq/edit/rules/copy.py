"""The dead letter's message with the changes of a person, and the copy of it that goes instead. Pure."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext as _

from broker.amqp.codec import decode, encode_outgoing
from broker.amqp.compressed import is_cut
from broker.port import Message, MessageUndecodable
from contract.names import DUPLICATE_ID, LETTER, LETTER_ID, LETTER_QUEUE
from contract.typed import Typed
from dlq.edit.rules.body_text import BODY, form_of, with_bytes, with_text
from dlq.edit.rules.changes import Changes
from dlq.edit.rules.values import EditRefused, is_locked, kept_annotations, kept_properties
from dlq.models import DeadLetter


def message_of(letter: DeadLetter) -> Message:
    """Raises EditRefused: an edit needs all of the message, and something to know it by."""
    if letter.body_deleted_at:
        raise EditRefused(
            "body_deleted", _("Cannot edit: retention deleted the body after the message left its queue.")
        )
    if letter.truncated:
        raise EditRefused(
            "truncated", _("Cannot edit: the body is too large, and only its beginning is stored here.")
        )
    if letter.orig_message_id < 0 or not letter.message_key:
        raise EditRefused(
            "no_id", _("Cannot edit: the message has no id, so the original cannot be moved to the trash.")
        )
    try:
        message = decode(bytes(letter.encoded))
    except MessageUndecodable as error:
        raise EditRefused("no_message", _("Cannot edit: the bytes are not a valid message.")) from error
    if is_cut(message.body.value, message.properties):
        raise EditRefused(
            "truncated", _("Cannot edit: the sender compressed the body, and it is not stored here in full.")
        )
    return message


def edited(
    message: Message,
    changes: Changes,
    masked: frozenset[str],
    *,
    jms_kind: int | None = None,
    body_hidden: bool = False,
) -> Message:
    """`masked`: property names that the person may not see; they stay, and so does a body that is
    `body_hidden` in part. Raises EditRefused."""
    result = replace(message, properties=_properties(message, changes, masked))
    if changes.text is None and changes.content is None:
        return result
    if body_hidden:
        raise EditRefused(
            "body_masked", _("Cannot edit the body: it has fields that are masked for you."), BODY
        )
    if changes.text is not None:
        result = with_text(result, changes.text, other_form=changes.other_form, jms_kind=jms_kind)
    elif changes.content is not None:
        _check_bytes(message, changes, jms_kind)
        result = with_bytes(result, changes.content)
    return result


def _check_bytes(message: Message, changes: Changes, jms_kind: int | None) -> None:
    """A text that comes as a file is a text: JSON stays JSON."""
    if changes.other_form or changes.content is None or not form_of(message, jms_kind).is_text:
        return
    try:
        text = changes.content.decode()
    except UnicodeDecodeError as error:
        raise EditRefused(
            "no_text", _("The original body is text. The new body must be text too."), BODY
        ) from error
    with_text(message, text, other_form=False, jms_kind=jms_kind)


def _properties(message: Message, changes: Changes, masked: frozenset[str]) -> dict[str, Typed]:
    properties = dict(message.properties)
    for name in (*changes.put, *changes.removed):
        if is_locked(name, masked):
            raise EditRefused("locked", _("This property cannot be changed."), name)
    for name in changes.removed:
        if name not in properties:
            raise EditRefused("no_property", _("No such property."), name)
        del properties[name]
    return properties | dict(changes.put)


def copy_for(letter: DeadLetter, before: Message, after: Message, edit: UUID, now: datetime) -> Message:
    """Returns what is sent instead of the dead letter: `after` without the broker's word of how `before`
    died.

    The broker drops a second one with the same duplicate id. `ma_letter` makes the copy go on with the case,
    whatever its own key would be; the id that KMAs report is above the dead letter's own and below every one
    the copy will have. An expiry that is over would delete the copy at once."""
    properties = kept_properties(after.properties)
    if after.body != before.body:
        properties.pop("content-length", None)  # a STOMP header of the old body
    properties |= {
        LETTER: Typed("string", letter.message_key),
        LETTER_QUEUE: Typed("string", letter.queue),
        LETTER_ID: Typed("long", letter.orig_message_id + 1),
        DUPLICATE_ID: Typed("string", str(edit)),
    }
    over = after.expires_at is not None and after.expires_at <= now
    return replace(
        after,
        properties=properties,
        annotations=kept_annotations(after.annotations),
        delivery_count=0,
        expires_at=None if over else after.expires_at,
        ttl_ms=0 if over else after.ttl_ms,
    )


def encoded_copy(letter: DeadLetter, before: Message, after: Message, edit: UUID, now: datetime) -> bytes:
    """Returns what the worker will send. Raises EditRefused where no queue would take it."""
    try:
        return encode_outgoing(copy_for(letter, before, after, edit, now))
    except ValueError as error:
        raise EditRefused("unsendable", _("Cannot send the message: %(why)s.") % {"why": error}) from error
