"""The body of a message as something to edit: as which text, and what a new text must be. Pure."""

import json
from dataclasses import replace
from enum import Enum
from typing import Any, NoReturn
from xml.parsers import expat

from django.utils.translation import gettext as _

from broker.port import BodyKind, Message
from contract.typed import Typed, storable
from dlq.dead_letters.rules.body import JSON_TOKEN, BodyFormat, pretty
from dlq.edit.rules.values import EditRefused

BODY = "body"
JMS_TEXT = 5
# Bytes of an edited body: what the index keeps whole.
LARGEST_BODY = 1024 * 1024
DEEPEST = 200


class Form(Enum):
    """Holds how a body is edited. BYTES: as hexadecimal digits or a file; FIXED: not at all."""

    JSON = "json"
    XML = "xml"
    TEXT = "text"
    BYTES = "bytes"
    FIXED = "fixed"

    @property
    def is_text(self) -> bool:
        return self in (Form.JSON, Form.XML, Form.TEXT)


def form_of(message: Message, jms_kind: int | None = None) -> Form:
    text = text_of_body(message, jms_kind)
    if text is not None:
        return form_of_text(text)
    return (
        Form.BYTES if isinstance(message.body.value, bytes) and message.body.type == "binary" else Form.FIXED
    )


def form_of_text(text: str) -> Form:
    head = text.lstrip()[:1]
    if head in ("{", "[") and not problem_of_json(text):
        return Form.JSON
    return Form.XML if head == "<" and not problem_of_xml(text) else Form.TEXT


def text_of_body(message: Message, jms_kind: int | None = None) -> str | None:
    """The text to edit; None where the body is none, or one that a form would not bring back as it is."""
    body = message.body
    if body.type == "null" and message.body_kind is BodyKind.VALUE:
        return "" if jms_kind == JMS_TEXT else None
    if body.type == "string":
        text = body.value
    elif body.type == "binary":
        try:
            text = body.value.decode()
        except UnicodeDecodeError:
            return None
    else:
        return None
    return text if storable(text) == text else None


def with_text(message: Message, text: str, *, other_form: bool, jms_kind: int | None = None) -> Message:
    """`message` with that body, of the type that it had. JSON stays JSON and XML well-formed XML unless
    `other_form`.

    Line ends are those of the old text: a form of a browser makes all of them CR LF. Raises EditRefused."""
    old = text_of_body(message, jms_kind)
    if old is None:
        raise EditRefused("body_fixed", _("Cannot edit the body: it is not text."), BODY)
    if unix(text) == unix(old):
        return message
    text = text if "\r\n" in old else unix(text)
    if storable(text) != text:
        raise EditRefused(
            "bad_text", _("The text contains characters that are not valid Unicode. Remove them."), BODY
        )
    if not other_form:
        check_form(form_of_text(old), text)
    return (
        with_bytes(message, text.encode()) if message.body.type == "binary" else _with_string(message, text)
    )


def check_form(form: Form, text: str) -> None:
    """Raises EditRefused where `text` is not of the form that the body had."""
    if form is Form.JSON and (problem := problem_of_json(text)):
        reason = _("The body was JSON, but the new body is not: %(problem)s.") % {"problem": problem}
        raise EditRefused("no_json", reason, BODY)
    if form is Form.XML and (problem := problem_of_xml(text)):
        reason = _("The body was XML, but the new body is not: %(problem)s.") % {"problem": problem}
        raise EditRefused("no_xml", reason, BODY)


def _with_string(message: Message, text: str) -> Message:
    _check_size(len(text.encode()))
    return replace(message, body=Typed("string", text))


def with_bytes(message: Message, content: bytes) -> Message:
    """Raises EditRefused for a body that is not bytes."""
    if message.body.type != "binary":
        raise EditRefused(
            "body_fixed", _("Cannot replace the body with a file: the body is not binary."), BODY
        )
    _check_size(len(content))
    return replace(message, body=Typed("binary", content))


def _check_size(size: int) -> None:
    if size > LARGEST_BODY:
        reason = _("The edited body is too large. The limit is %(n)s bytes.") % {"n": LARGEST_BODY}
        raise EditRefused("too_large", reason, BODY)


# -- JSON on one line, as a form shows it --------------------------------------------------------------------


def shown_text(text: str) -> str:
    """Indents JSON that is one line; another text, and JSON that has lines of its own, is shown as it is."""
    if "\n" in text.strip() or form_of_text(text) is not Form.JSON:
        return text
    indented = pretty(text, BodyFormat.JSON)
    return indented if indented is not None and len(indented) <= LARGEST_BODY else text


def text_in(shown: str, before: str | None) -> str | None:
    """Returns the body that a form means which showed `before` by `shown_text`; None: it is as it was.

    JSON that was one line becomes one again, spaced as it was: a consumer may read by lines."""
    if before is None:
        return shown
    was_shown = shown_text(before)
    if unix(shown) in (unix(before), unix(was_shown)):
        return None
    if was_shown == before or form_of_text(shown) is not Form.JSON:
        return shown
    commas, colons = (_space_after(mark, before) for mark in ",:")
    after = {",": colons if commas is None else commas, ":": commas if colons is None else colons}
    line = "".join(token + (after.get(token) or "") for token in JSON_TOKEN.findall(shown))
    start, end = (before[: len(before) - len(before.lstrip())], before[len(before.rstrip()) :])
    return f"{start}{line}{end}"


def _space_after(mark: str, text: str) -> str | None:
    """Returns the space after the first such mark outside of strings; None: there is no such mark."""
    for token in JSON_TOKEN.finditer(text):
        if token[0] == mark:
            rest = text[token.end() :]
            return rest[: len(rest) - len(rest.lstrip())]
    return None


def unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def problem_of_json(text: str) -> str:
    """Where it is no strict JSON; nothing of the text itself. Empty: it is."""
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        return f"{error.msg}, line {error.lineno} column {error.colno}"
    except RecursionError:
        return _("nested too deeply")
    except ValueError as error:  # NaN, or a number too long to be read
        return str(error)[:100]
    return ""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class _Refused(Exception):
    """Well-formed perhaps, but nothing that is taken."""


def problem_of_xml(text: str) -> str:
    """Empty: it is well-formed. Nothing of it is ever fetched or expanded: a document type is refused as
    such."""
    depth = 0

    def refuse(*_arguments: Any) -> NoReturn:
        raise _Refused(_("a DOCTYPE is not allowed"))

    def begin(*_arguments: Any) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise _Refused(_("nested too deeply"))

    def end(*_arguments: Any) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    try:
        # The text is Unicode already, whatever encoding its first line names.
        parser.Parse(text, True)
    except expat.ExpatError as error:
        return f"{expat.ErrorString(error.code)}, line {error.lineno} column {error.offset + 1}"
    except (_Refused, ValueError) as error:
        return str(error)
    return ""
