"""The bytes of a letter that was fetched whole, for who may see them."""

from typing import Any

from django.core.exceptions import PermissionDenied

from broker.amqp_codec import decode
from broker.errors import MessageUndecodable
from dlq.bodies import body_of
from dlq.masked_bodies import told
from dlq.masks import masks_for
from dlq.models import DeadLetter, FetchState, WholeFetch


def bytes_for(user: Any, letter: DeadLetter) -> bytes | None:
    """The body; None: it was not fetched, or was dropped. Raises PermissionDenied where something in it is
    masked for this person, as with the letters that are kept whole."""
    fetch = WholeFetch.objects.filter(letter=letter, state=FetchState.DONE).order_by("-pk").first()
    if fetch is None or fetch.encoded is None:
        return None
    encoded, masks = bytes(fetch.encoded), masks_for(user)
    try:
        message = decode(encoded)
    except MessageUndecodable:
        if masks.hides_bytes(letter):
            raise PermissionDenied from None
        return encoded
    body = body_of(message, letter.jms_kind)
    if told(body, letter, masks) is not body:
        raise PermissionDenied
    return body.raw
