"""Which words a letter has. Pure.

What its setting masks is left out of its words: a search would tell it. A masked property is found by its
exact value alone, and only by who may see it (`Masks.refusal`). `words_without` says what was left out, so
that a mask which came later is noticed.
"""

from collections.abc import Iterable, Set
from hashlib import blake2b

from broker.amqp_codec import decode
from broker.errors import MessageUndecodable
from contract.typed import Typed, from_json, text_of
from dlq.json_masks import masked_body
from dlq.models import DeadLetter
from dlq.reading import HEAD_OF_TEXT

# Types whose JSON form is what people read.
AS_STORED = frozenset({"string", "symbol"})
# Characters of a body whose words are found.
SEARCHED = 64 * 1024


def left_out(names: Iterable[str]) -> str:
    """For `words_without`: which names were left out."""
    return blake2b("\0".join(sorted(names)).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def texts_of(letter: DeadLetter, names: Set[str], pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Body and values of properties (`property_texts`), without those that are masked (`names`); nothing of
    bytes that are no message."""
    if not letter.body_kind:
        return []
    properties = [text for name, text in pairs if name not in names]
    body = masked_body(body_whole(letter), names, cut=letter.truncated)
    return [body or "", *properties]


def body_whole(letter: DeadLetter) -> str:
    """As far as it is searched. The row's own head suffices for a short one: no message is taken apart for
    it."""
    if len(letter.body_text) < HEAD_OF_TEXT:
        return "" if _is_hexadecimal(letter) else letter.body_text
    try:
        value = decode(bytes(letter.encoded)).body
    except MessageUndecodable:
        return ""
    return _text(value)


def _text(body: Typed) -> str:
    if isinstance(body.value, str):
        return body.value[: SEARCHED + 1]
    if not isinstance(body.value, bytes):
        return text_of(body)
    return body.value[:SEARCHED].decode("utf-8", "replace")


def _is_hexadecimal(letter: DeadLetter) -> bool:
    """Bytes that are no text; a text that only looks like it loses nothing but its own one word."""
    return letter.body_kind != "value" and letter.body_text.startswith("0x")


def property_texts(letter: DeadLetter) -> list[tuple[str, str]]:
    """Name and value of each property as people read them."""
    found = []
    for item in letter.properties:
        try:
            value = item["value"] if item["type"] in AS_STORED else text_of(from_json(item))
            found.append((str(item["name"]), value))
        except (KeyError, TypeError, ValueError):
            continue
    return found
