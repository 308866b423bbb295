"""The form in which one dead letter is edited: its fields -> changes, and back. Works without JavaScript.

A row of a property is `p-<n>-name`, `p-<n>-type`, `p-<n>-value`, and `p-<n>-remove` where it is ticked. What
is left as it was shown is no change, so nothing is lost that a form cannot carry.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from broker.port import Message
from contract.names import BROKERS_OWN
from contract.typed import Typed, text_of
from dlq.dead_letters.rules.json_masks import HIDDEN
from dlq.edit.rules.body_text import LARGEST_BODY, Form, form_of, shown_text, text_in, text_of_body
from dlq.edit.rules.bulk_rule import MOST_OPERATIONS
from dlq.edit.rules.changes import Changes
from dlq.edit.rules.values import (
    LONGEST_NAME,
    EditRefused,
    checked_name,
    editable_value,
    is_locked,
    typed_value,
    written,
)

# Rows that are shown; a page of 5,000 inputs helps nobody. More can be named in an empty row.
MOST_ROWS = 200
EMPTY_ROWS = 4
# Steps of a page beside the form itself.
LOOK, CONFIRM = "look", "confirm"
SHOWN = 200


@dataclass(frozen=True, slots=True)
class PropertyRow:
    """`value` is what the input holds; `shown` what stands there where it cannot be written by hand."""

    number: int
    name: str
    type: str = "string"
    value: str = ""
    removed: bool = False
    fixed: bool = False
    shown: str = ""
    new: bool = False


@dataclass(frozen=True, slots=True)
class EditForm:
    """`rows` of properties that can be changed, then empty ones. `locked` stay: name and what is shown of it.
    `text` is None where the body is no text, or is hidden in part (`hidden`). `indented`: it is one line."""

    form: Form
    text: str | None
    hidden: bool
    indented: bool
    other_form: bool
    rows: list[PropertyRow]
    locked: list[tuple[str, str]]
    left_out: int

    @property
    def takes_file(self) -> bool:
        return self.form is not Form.FIXED and not self.hidden

    @property
    def invisible(self) -> bool:
        """Returns whether a person would not see all of the text."""
        return self.text is not None and any(
            not character.isprintable() and character not in "\r\n\t" for character in self.text
        )


def form_for(
    message: Message, masked: frozenset[str], changes: Changes, *, hidden: bool, jms_kind: int | None
) -> EditForm:
    """The dead letter as it is, with `changes` filled in."""
    text = None if hidden else text_of_body(message, jms_kind)
    if text is not None:
        text = changes.text if changes.text is not None else text
    shown = None if text is None else shown_text(text)
    free = {name: item for name, item in message.properties.items() if _is_free(name, masked)}
    names = sorted(free)
    rows = [_row(number, name, free[name], changes) for number, name in enumerate(names[:MOST_ROWS])]
    added = {name: item for name, item in changes.put.items() if name not in names[:MOST_ROWS]}
    for name, item in added.items():
        rows.append(PropertyRow(len(rows), name, item.type, written(item), new=True))
    for _number in range(EMPTY_ROWS):
        rows.append(PropertyRow(len(rows), "", new=True))
    return EditForm(
        form=form_of(message, jms_kind),
        text=shown,
        indented=shown != text,
        hidden=hidden,
        other_form=changes.other_form,
        rows=rows,
        locked=_locked(message, masked),
        left_out=max(0, len(names) - MOST_ROWS),
    )


def _is_free(name: str, masked: frozenset[str]) -> bool:
    """A form brings back only names of one line."""
    return (
        not is_locked(name, masked)
        and bool(name.strip())
        and len(name) <= LONGEST_NAME
        and name.isprintable()
    )


def _row(number: int, name: str, item: Typed, changes: Changes) -> PropertyRow:
    wanted = changes.put.get(name, item)
    fixed = not editable_value(wanted)
    return PropertyRow(
        number,
        name,
        type=wanted.type,
        value="" if fixed else written(wanted),
        removed=name in changes.removed,
        fixed=fixed,
        shown=text_of(wanted)[:SHOWN] if fixed else "",
    )


def _locked(message: Message, masked: frozenset[str]) -> list[tuple[str, str]]:
    names = [
        name for name in sorted(message.properties) if not _is_free(name, masked) and name not in BROKERS_OWN
    ]
    return [
        (name, HIDDEN if name in masked else text_of(message.properties[name])[:SHOWN])
        for name in names[:MOST_ROWS]
    ]


def frozen_in(request: HttpRequest, name: str) -> Any:
    """Reads what a page before this one carried as JSON. Raises EditRefused."""
    try:
        return json.loads(request.POST.get(name, ""))
    except (ValueError, RecursionError) as error:
        raise EditRefused("unreadable", _("The changes have an invalid format.")) from error


def changes_in(request: HttpRequest, message: Message, jms_kind: int | None) -> Changes:
    """Returns what the posted form changes in the dead letter. Raises EditRefused, naming the property."""
    data = request.POST
    put: dict[str, Typed] = {}
    removed: list[str] = []
    for number in _numbers(data):
        name = data.get(f"p-{number}-name", "")
        if not name.strip():
            continue
        if data.get(f"p-{number}-remove"):
            removed.append(checked_name(name))
        elif f"p-{number}-value" in data and (item := _put(data, number, name, message.properties.get(name))):
            if name in put:
                raise EditRefused("twice", _("The same property is set twice."), name)
            put[name] = item
    return Changes(
        text=_text(data, message, jms_kind),
        content=_file(request),
        other_form=bool(data.get("other_form")),
        put=put,
        removed=tuple(dict.fromkeys(removed)),
    )


def _numbers(data: QueryDict) -> Iterable[int]:
    found = {name[2:-5] for name in data if name.startswith("p-") and name.endswith("-name")}
    return sorted(int(number) for number in found if number.isdecimal() and len(number) < 6)


def _put(data: QueryDict, number: int, name: str, before: Typed | None) -> Typed | None:
    """None: as it was."""
    kind, value = data.get(f"p-{number}-type", "string"), data.get(f"p-{number}-value", "")
    if (
        before is not None
        and before.type == kind
        and (not editable_value(before) or written(before) == value)
    ):
        return None
    return typed_value(kind, value, checked_name(name))


def _text(data: QueryDict, message: Message, jms_kind: int | None) -> str | None:
    text = data.get("text")
    return None if text is None else text_in(text, text_of_body(message, jms_kind))


def _file(request: HttpRequest) -> bytes | None:
    """An empty file field is no empty body."""
    file = request.FILES.get("file")
    if file is None:
        return None
    content = file.read(LARGEST_BODY + 1)
    if len(content) > LARGEST_BODY:
        reason = _("The edited body is too large. The limit is %(n)s bytes.") % {"n": LARGEST_BODY}
        raise EditRefused("too_large", reason, _("File"))
    return bytes(content)


# -- the form of a rule for many dead letters ----------------------------------------------------------------
# Its fields → the JSON form of operations, and back. It works without JavaScript: a row is `o-<n>-op`,
# `o-<n>-place`, `o-<n>-type`, `o-<n>-value`. Pure.


EMPTY_RULE_ROWS = 3


@dataclass(frozen=True, slots=True)
class RuleRow:
    number: int
    op: str = ""
    place: str = ""
    type: str = "string"
    value: str = ""


def rows_in(data: QueryDict) -> list[RuleRow]:
    """Those that somebody filled in."""
    rows = []
    for number in range(MOST_OPERATIONS):
        op, place, kind, value = (
            data.get(f"o-{number}-{name}", "") for name in ("op", "place", "type", "value")
        )
        if op:
            rows.append(RuleRow(number, op, place, kind or "string", value))
    return rows


def operations_in(data: QueryDict) -> list[dict[str, Any]]:
    """Returns them as `rule_of` reads them; a place is never stripped: names may begin with a space."""
    return [_operation(row) for row in rows_in(data)]


def _operation(row: RuleRow) -> dict[str, Any]:
    if row.op == "set_property":
        return {"op": row.op, "name": row.place, "type": row.type, "value": row.value}
    if row.op == "remove_property":
        return {"op": row.op, "name": row.place}
    return {"op": row.op, "pointer": row.place} | ({"json": row.value} if row.op == "set_json" else {})


def rows_of(operations: Sequence[Mapping[str, Any]]) -> list[RuleRow]:
    """Returns the rows of the JSON form, for the form; then empty ones."""
    rows = [
        RuleRow(
            number,
            each["op"],
            each.get("name", each.get("pointer", "")),
            each.get("type", "string"),
            each.get("value", each.get("json", "")),
        )
        for number, each in enumerate(operations)
    ]
    return with_empty(rows)


def with_empty(rows: Sequence[RuleRow]) -> list[RuleRow]:
    """Numbered anew."""
    every = [*rows, *(RuleRow(0) for _row in range(EMPTY_RULE_ROWS))][:MOST_OPERATIONS]
    return [RuleRow(number, row.op, row.place, row.type, row.value) for number, row in enumerate(every)]
