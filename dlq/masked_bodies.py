"""The body of a letter as one person may see it. Pure."""

from dataclasses import replace

from dlq.bodies import Body, Look
from dlq.masking import Masks
from dlq.models import DeadLetter

# Before the first character of JSON in any of its encodings.
_BEFORE = b"\xef\xbb\xbf\xfe\xff \t\r\n\0"


def told(body: Body, letter: DeadLetter, masks: Masks) -> Body | None:
    """`body` itself where nothing in it is masked; with masked fields its text alone, never its bytes; None:
    nothing of it may be told, as it should be JSON and cannot be taken apart."""
    if not masks.names(letter):
        return body
    if body.text is None:
        return None if body.raw.lstrip(_BEFORE)[:1] in (b"{", b"[") else body
    text = masks.body(letter, body.text)
    if text is None or text == body.text:
        return body if text is not None else None
    looks = tuple(look for look in body.looks if look is not Look.HEX)
    return replace(body, text=text, raw=text.encode("utf-8", "surrogatepass"), looks=looks)
