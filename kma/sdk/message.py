"""A message as an agent sees it: natural values at once, the message key only for who asks."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from broker.amqp.codec import decode
from broker.amqp.compressed import LARGE_COMPRESSED, LARGE_SIZE, declared_size, missing_bytes, without_padding
from broker.amqp.python_values import decode_natural
from broker.port import MessageUndecodable
from contract.message_key import message_key
from kma.sdk.errors import InvalidMessage

Kind = Literal["text", "bytes", "map", "stream", "object", "other"]


# The JMS kind of a message by its annotation `x-opt-jms-msg-type`; 0 is a message without a body.
_JMS_KINDS: dict[int, Kind] = {1: "object", 2: "map", 3: "bytes", 4: "stream", 5: "text"}
# Bytes before a serialised object that a Core client counts with its body, and the broker leaves off: its
# length.
_OBJECT_LENGTH = 4
_JAVA_OBJECT = "application/x-java-serialized-object"


class Message:
    """A message as an agent sees it. Values are natural Python values; what the producer did not set is
    empty. Raises InvalidMessage where the bytes are no message."""

    __slots__ = ("_decoded", "_encoded", "_key", "attempt", "destination")

    def __init__(self, encoded: bytes, destination: str = "", attempt: int = 1) -> None:
        """`destination`: the address that the setting's subscription belongs to."""
        try:
            self._decoded = decode_natural(encoded)
        except MessageUndecodable as error:
            raise InvalidMessage(str(error)) from error
        self._encoded = encoded
        self._key = ""
        self.attempt = attempt
        self.destination = destination

    @property
    def redelivered(self) -> bool:
        """True is certain: an attempt was made before. False is not: its start may have been lost with a
        server."""
        return self.attempt > 1

    @property
    def id(self) -> str:
        """The producer's message id (JMSMessageID), as text."""
        return self._decoded.message_id

    @property
    def sent_ms(self) -> int | None:
        """When the producer sent it, by its clock, in milliseconds since 1970 (JMSTimestamp); None where it
        does not say."""
        return self._decoded.sent_ms

    @property
    def key(self) -> str:
        """The message key: the same on every delivery and in every page of the MA."""
        if not self._key:
            message = decode(self._encoded)
            self._key = message_key(message.message_id, message.body_section, message.properties).text
        return self._key

    @property
    def body(self) -> Any:
        """str for text, bytes for bytes and object, dict for map, list for stream, any value for other."""
        return without_padding(self._decoded.body, *self._said)

    @property
    def kind(self) -> Kind:
        """An `object` is a serialised Java object: bytes that are never deserialised."""
        decoded = self._decoded
        if decoded.content_type == _JAVA_OBJECT:
            return "object"
        return _JMS_KINDS.get(decoded.jms_kind or 0) or _kind_of(decoded.body)

    @property
    def truncated(self) -> bool:
        """The broker handed over only the head of the body: a Core client had compressed it. `declared_size`
        says how long it is; a replay moves the message whole."""
        body = self.body
        missing = missing_bytes(body, *self._said)
        return missing > (_OBJECT_LENGTH if self.kind == "object" and isinstance(body, bytes) else 0)

    @property
    def declared_size(self) -> int | None:
        """Bytes of the body by its sender's word, where he compressed it; None: he did not."""
        return declared_size(*self._said)

    @property
    def properties(self) -> Mapping[str, Any]:
        return self._decoded.properties

    @property
    def correlation_id(self) -> str:
        return self._decoded.correlation_id

    @property
    def reply_to(self) -> str:
        return self._decoded.reply_to

    @property
    def content_type(self) -> str:
        return self._decoded.content_type

    def json(self) -> Any:
        """The body as JSON (text, or bytes in UTF-8). Raises InvalidMessage when it is none."""
        if not isinstance(self.body, (str, bytes)):
            raise InvalidMessage(f"the body is not JSON text but {self.kind}")
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise InvalidMessage(f"the body is not valid JSON: {error}") from error

    def __repr__(self) -> str:
        return f"<Message {self.key} attempt {self.attempt}>"

    @property
    def _said(self) -> tuple[object, object]:
        properties = self._decoded.properties
        return properties.get(LARGE_COMPRESSED), properties.get(LARGE_SIZE)


def _kind_of(body: Any) -> Kind:
    if isinstance(body, str):
        return "text"
    if isinstance(body, bytes):
        return "bytes"
    if isinstance(body, dict):
        return "map"
    return "stream" if isinstance(body, list) else "other"
