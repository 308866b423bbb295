"""The body of a dead letter as people read it: indented, as text, as bytes. Nothing in it is ever carried
out. Pure."""

import json
import re
from dataclasses import dataclass, replace
from enum import Enum

from broker.port import BodyKind, Message
from contract.typed import Typed, text_of, to_json
from dlq.dead_letters.masks import Masks
from dlq.models import DeadLetter

SHOWN_TEXT = 256 * 1024
SHOWN_BYTES = 16 * 1024
BYTES_A_LINE = 16
DEEPEST = 30

JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
# The third: a document type whose declarations stand in it.
_XML_TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<!DOCTYPE[^<>\[]*\[[^\]]*\]\s*>|<[^<>]+>|[^<]+", re.DOTALL
)


class BodyFormat(Enum):
    """Ways to look at a body; their values are part of URLs."""

    JSON = "json"
    XML = "xml"
    TEXT = "text"
    HEX = "hex"


@dataclass(frozen=True, slots=True)
class Body:
    """`text` is None for what is no text. `raw` are the bytes of it. `kind` says what the producer sent."""

    kind: str
    raw: bytes
    text: str | None
    formats: tuple[BodyFormat, ...]


JMS_KINDS = {
    0: "Message",
    1: "ObjectMessage",
    2: "MapMessage",
    3: "BytesMessage",
    4: "StreamMessage",
    5: "TextMessage",
}


def body_of(message: Message, jms_kind: int | None) -> Body:
    raw, text = _content(message)
    kind = JMS_KINDS.get(jms_kind, "") if jms_kind is not None else ""
    formats = [
        body_format
        for body_format in (BodyFormat.JSON, BodyFormat.XML)
        if text is not None and pretty(text, body_format) is not None
    ]
    if text is not None:
        formats.append(BodyFormat.TEXT)
    return Body(kind or f"AMQP {message.body.type}", raw, text, (*formats, BodyFormat.HEX))


def _content(message: Message) -> tuple[bytes, str | None]:
    body = message.body
    if message.body_kind is BodyKind.DATA or body.type == "binary":
        raw = bytes(body.value)
        return raw, _decoded(raw)
    if body.type == "null":
        return b"", ""
    text = body.value if body.type in ("string", "symbol") else _structured(body)
    return text.encode("utf-8", "surrogatepass"), text


def _structured(body: Typed) -> str:
    """Maps, lists and single values with their types, so that nothing looks like what it is not."""
    if body.type in ("map", "list", "array", "described"):
        return json.dumps(to_json(body), ensure_ascii=False)
    return text_of(body)


def _decoded(raw: bytes) -> str | None:
    """UTF-8 text, or None where it is none or has so many control characters that it is no text."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    controls = sum(1 for character in text[:4096] if ord(character) < 32 and character not in "\t\r\n")
    return None if controls * 10 > min(len(text), 4096) else text


def render_body(body: Body, body_format: BodyFormat) -> str:
    """Returns what the page shows of it, bounded."""
    if body_format is BodyFormat.HEX or body.text is None:
        return hexadecimal(body.raw[:SHOWN_BYTES])
    text = body.text[:SHOWN_TEXT]
    return (pretty(text, body_format) or text) if body_format in (BodyFormat.JSON, BodyFormat.XML) else text


def cut(body: Body, body_format: BodyFormat) -> bool:
    if body_format is BodyFormat.HEX or body.text is None:
        return len(body.raw) > SHOWN_BYTES
    return len(body.text) > SHOWN_TEXT


def pretty(text: str, body_format: BodyFormat) -> str | None:
    """Indented, or None when `text` is nothing of that kind."""
    if len(text) > SHOWN_TEXT:
        return None
    return indented_json(text) if body_format is BodyFormat.JSON else indented_xml(text)


def indented_json(text: str) -> str | None:
    """New line ends only: no number, key or escape of the message changes."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    parts: list[str] = []
    depth = 0
    tokens = JSON_TOKEN.findall(text)
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        if token in "{[":
            depth += 1
            parts.append(token if following in "}]" else f"{token}\n{_margin(depth)}")
        elif token in "}]":
            depth -= 1
            parts.append(token if index and tokens[index - 1] in "{[" else f"\n{_margin(depth)}{token}")
        elif token == ",":
            parts.append(f",\n{_margin(depth)}")
        else:
            parts.append(": " if token == ":" else token)
    return "".join(parts)


def indented_xml(text: str) -> str | None:
    """Indents by tags alone: no parser, so no entity of a hostile document is ever expanded."""
    stripped = text.strip()
    if not (stripped.startswith("<") and stripped.endswith(">")) or _unclosed(stripped):
        return None
    tokens = _XML_TOKEN.findall(stripped)
    if sum(map(len, tokens)) != len(stripped):
        return None  # a lone "<" belongs to no token: what is shown would be less than what was sent
    lines: list[str] = []
    depth = 0
    opened = False
    for token in tokens:
        content = token.strip()
        if not content:
            continue
        closing = content.startswith("</")
        if closing:
            depth = max(0, depth - 1)
        if lines and ((opened and not content.startswith("<")) or (closing and opened)):
            lines[-1] += content
            opened = not closing and opened
            continue
        lines.append(_margin(depth) + content)
        opened = (
            content.startswith("<")
            and not closing
            and not content.startswith(("<?", "<!"))
            and content[-2:] != "/>"
        )
        depth += opened
    return "\n".join(lines)


def _unclosed(text: str) -> bool:
    """A comment or CDATA without an end would make the search for it quadratic; so would many document
    types."""
    return text.count("<!DOCTYPE") > 1 or any(
        text.rfind(start) > text.rfind(end) for start, end in (("<!--", "-->"), ("<![CDATA[", "]]>"))
    )


def _margin(depth: int) -> str:
    """Bounded, or a deep document would grow by its square."""
    return "  " * min(depth, DEEPEST)


def hexadecimal(raw: bytes) -> str:
    lines = []
    for offset in range(0, len(raw), BYTES_A_LINE):
        part = raw[offset : offset + BYTES_A_LINE]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{offset:08x}  {part.hex(' '):<{BYTES_A_LINE * 3 - 1}}  {letters}")
    return "\n".join(lines)


# -- the body of a dead letter as one person may see it ------------------------------------------------------


# Before the first character of JSON in any of its encodings.
_BEFORE = b"\xef\xbb\xbf\xfe\xff \t\r\n\0"


def visible_body(body: Body, letter: DeadLetter, masks: Masks) -> Body | None:
    """`body` itself where nothing in it is masked; with masked fields its text alone, never its bytes; None:
    nothing of it may be told, as it should be JSON and cannot be taken apart."""
    if not masks.names(letter):
        return body
    if body.text is None:
        return None if body.raw.lstrip(_BEFORE)[:1] in (b"{", b"[") else body
    text = masks.body(letter, body.text)
    if text is None or text == body.text:
        return body if text is not None else None
    formats = tuple(body_format for body_format in body.formats if body_format is not BodyFormat.HEX)
    return replace(body, text=text, raw=text.encode("utf-8", "surrogatepass"), formats=formats)
