"""Decides what a person wants of one dead letter: a new body, properties set and removed. As JSON it is
carried from page to page.

`{"body": {"text": …} | {"base64": …}, "other_form": true, "set": [{"name", "type", "value"}], "remove":
["name"]}`; every part may be missing. Pure.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from contract.typed import Typed
from dlq.edit.rules.values import EditRefused, checked_name, typed_value, written

MOST_PROPERTIES = 5000


@dataclass(frozen=True, slots=True)
class Changes:
    """`text` and `content` are the new body as text or bytes, None: the old one. `other_form`: JSON or XML
    may become something else."""

    text: str | None = None
    content: bytes | None = None
    other_form: bool = False
    put: Mapping[str, Typed] = field(default_factory=dict)
    removed: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"other_form": self.other_form, "remove": list(self.removed)}
        data["set"] = [
            {"name": name, "type": item.type, "value": written(item)} for name, item in self.put.items()
        ]
        if self.text is not None:
            data["body"] = {"text": self.text}
        elif self.content is not None:
            data["body"] = {"base64": base64.b64encode(self.content).decode("ascii")}
        return data


def changes_of(data: Any) -> Changes:
    """The inverse. Raises EditRefused for what is no such thing."""
    if not isinstance(data, dict):
        raise _unreadable()
    text, content = _body(data.get("body"))
    sets, removed = data.get("set") or [], data.get("remove") or []
    if (
        not isinstance(sets, list)
        or not isinstance(removed, list)
        or len(sets) + len(removed) > MOST_PROPERTIES
    ):
        raise _unreadable()
    put = dict(named_value(each) for each in sets)
    names = tuple(dict.fromkeys(checked_name(_word(name)) for name in removed))
    if twice := put.keys() & set(names):
        raise EditRefused("twice", _("The property is both set and removed. Choose one."), min(twice))
    return Changes(text, content, data.get("other_form") is True, put, names)


def named_value(each: Any) -> tuple[str, Typed]:
    """Reads `{"name", "type", "value"}`; the value is a text as people write it, or a JSON number, boolean or
    null."""
    if not isinstance(each, dict):
        raise _unreadable()
    name = checked_name(_word(each.get("name")))
    return name, typed_value(_word(each.get("type", "string")), _written(each.get("value", "")), name)


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise _unreadable()


def _body(body: Any) -> tuple[str | None, bytes | None]:
    if body is None:
        return None, None
    if isinstance(body, dict) and isinstance(body.get("text"), str):
        return body["text"], None
    if isinstance(body, dict) and isinstance(body.get("base64"), str):
        try:
            return None, base64.b64decode(body["base64"], validate=True)
        except ValueError as error:
            raise _unreadable() from error
    raise _unreadable()


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise _unreadable()
    return value


def _unreadable() -> EditRefused:
    return EditRefused("unreadable", _("The changes have an invalid format."))
