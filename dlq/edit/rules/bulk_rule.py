"""A rule that edits many dead letters alike: operations in order. It applies to a dead letter as a whole, or
not at all. Pure.

`{"op": "set_property", "name", "type", "value"}`, `{"op": "remove_property", "name"}`, `{"op": "set_json",
"pointer", "json"}` (`json`: the text of a JSON value, kept as it is written), `{"op": "remove_json",
"pointer"}`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from broker.port import Message
from contract.typed import Typed
from dlq.dead_letters.rules.json_masks import HIDDEN
from dlq.edit.rules import json_pointer
from dlq.edit.rules.body_text import Form, form_of_text, problem_of_json, text_of_body, with_text
from dlq.edit.rules.changes import named_value
from dlq.edit.rules.diff import Change, change, masked_text, names_in, value_text
from dlq.edit.rules.values import EditRefused, checked_name, is_locked, written

MOST_OPERATIONS = 20
LONGEST_JSON = 64 * 1024
LONGEST_TOLD = 300
OPERATIONS = ("set_property", "remove_property", "set_json", "remove_json")


@dataclass(frozen=True, slots=True)
class Operation:
    """`item` is what a property is set to, `json` the text that a pointer sets."""

    op: str
    name: str = ""
    item: Typed | None = None
    tokens: tuple[str, ...] = ()
    pointer: str = ""
    json: str = ""

    @property
    def place(self) -> str:
        return self.name or self.pointer or "/"

    def to_json(self) -> dict[str, Any]:
        if self.item is not None:
            return {"op": self.op, "name": self.name, "type": self.item.type, "value": written(self.item)}
        if self.op == "remove_property":
            return {"op": self.op, "name": self.name}
        data = {"op": self.op, "pointer": self.pointer}
        return data | ({"json": self.json} if self.op == "set_json" else {})


@dataclass(frozen=True, slots=True)
class Rule:
    """`locked`: names that the person who made it may not see, so the rule leaves them alone."""

    operations: tuple[Operation, ...]
    locked: frozenset[str] = frozenset()

    def to_json(self) -> dict[str, Any]:
        return {"operations": [each.to_json() for each in self.operations], "locked": sorted(self.locked)}


@dataclass(frozen=True, slots=True)
class Applied:
    """`changes` as in `dlq.edit.rules.diff`, masked."""

    message: Message
    changes: list[Change]


def rule_of(data: Any, locked: frozenset[str] = frozenset()) -> Rule:
    """Reads its JSON form: a list of operations, or what `to_json` gives. Raises EditRefused, naming the
    operation."""
    if isinstance(data, dict):
        locked |= frozenset(map(str, data.get("locked") or ()))
        data = data.get("operations")
    if not isinstance(data, list) or not data:
        raise EditRefused("no_rule", _("The rule has no operations. Add at least one."))
    if len(data) > MOST_OPERATIONS:
        reason = _("The rule has too many operations. The limit is %(n)s.") % {"n": MOST_OPERATIONS}
        raise EditRefused("too_many", reason)
    operations = []
    for number, each in enumerate(data, 1):
        try:
            operations.append(_operation(each, locked))
        except EditRefused as refused:
            about = f"{number}, {refused.what}" if refused.what else str(number)
            raise EditRefused(refused.code, refused.reason, _("Operation %(n)s") % {"n": about}) from refused
    return Rule(tuple(operations), locked)


def _operation(data: Any, locked: frozenset[str]) -> Operation:
    op = data.get("op") if isinstance(data, dict) else None
    if op not in OPERATIONS:
        raise EditRefused("no_operation", _("Unknown operation."))
    if op in ("set_property", "remove_property"):
        name, item = (
            named_value(data) if op == "set_property" else (checked_name(str(data.get("name", ""))), None)
        )
        if is_locked(name, locked):
            raise EditRefused("locked", _("This property cannot be changed."), name)
        return Operation(op, name=name, item=item)
    place = data.get("pointer")
    if not isinstance(place, str):
        raise EditRefused("bad_pointer", _("A JSON pointer is missing."))
    tokens = json_pointer.parse(place)
    if op == "remove_json" and not tokens:
        raise EditRefused("bad_pointer", _("The whole document cannot be removed."))
    operation = Operation(op, tokens=tokens, pointer=place, json=_json_text(data) if op == "set_json" else "")
    if is_hidden(operation, locked):
        raise EditRefused("locked", _("This field cannot be changed."), place)
    return operation


def is_hidden(operation: Operation, names: frozenset[str]) -> bool:
    """Returns whether it touches one of these properties or fields: at its place, or within what it sets."""
    if operation.name in names or not names.isdisjoint(operation.tokens):
        return True
    return operation.op == "set_json" and bool(names) and names_in(json.loads(operation.json), names)


def _json_text(data: dict[str, Any]) -> str:
    text = (
        json.dumps(data["value"], ensure_ascii=False)
        if "value" in data and "json" not in data
        else data.get("json")
    )
    if not isinstance(text, str) or len(text) > LONGEST_JSON:
        raise _no_json(_("too long, or missing"))
    if problem := problem_of_json(text):
        raise _no_json(problem)
    return text.strip()


def _no_json(problem: str) -> EditRefused:
    reason = _("The value is not JSON: %(problem)s. Put text in quotes.") % {"problem": problem}
    return EditRefused("bad_value", reason)


def apply(
    rule: Rule,
    message: Message,
    masked: frozenset[str],
    jms_kind: int | None = None,
    *,
    locked: frozenset[str] = frozenset(),
) -> Applied:
    """`masked` are the names that the changes do not tell, `locked` more that the rule leaves alone: what the
    person who made it may not see of this dead letter. Raises EditRefused: the dead letter stays as it is."""
    changes: list[Change] = []
    result, locked = message, locked | rule.locked
    for operation in rule.operations:
        if is_hidden(operation, locked):
            raise EditRefused(
                "locked", _("The rule affects a part of the message that cannot be changed."), operation.place
            )
        result, done = _APPLY[operation.op](operation, result, locked, masked, jms_kind)
        changes += done
    if result == message:
        raise EditRefused("unchanged", _("The rule changes nothing in this message."))
    return Applied(result, changes)


Step = tuple[Message, Sequence[Change]]


def _property(
    operation: Operation,
    message: Message,
    locked: frozenset[str],
    masked: frozenset[str],
    jms_kind: int | None,
) -> Step:
    name, before = operation.name, message.properties.get(operation.name)
    if before == operation.item:
        return message, ()
    wanted = {**message.properties, name: operation.item}
    properties = {each: item for each, item in wanted.items() if item is not None}
    hidden = name in masked
    told = change(name, value_text(before, hidden=hidden), value_text(operation.item, hidden=hidden))
    return replace(message, properties=properties), (told,)


def _json(
    operation: Operation,
    message: Message,
    locked: frozenset[str],
    masked: frozenset[str],
    jms_kind: int | None,
) -> Step:
    text = text_of_body(message, jms_kind)
    if text is None or form_of_text(text) is not Form.JSON:
        raise EditRefused("no_json", _("The body is not JSON."))
    before = _value_at(text, operation.tokens)
    if before is not None and locked and names_in(json.loads(before), locked):
        raise EditRefused(
            "locked",
            _("The value contains a field that cannot be changed. Change the other fields separately."),
            operation.pointer,
        )
    if operation.op == "set_json":
        new, after = json_pointer.put(text, operation.tokens, operation.json), operation.json
    else:
        new, after = json_pointer.remove(text, operation.tokens), None
    if new == text:
        return message, ()
    changed = with_text(message, new, other_form=True, jms_kind=jms_kind)
    told = change(
        operation.pointer or "/", *(_told(value, operation.tokens, masked) for value in (before, after))
    )
    return changed, (told,)


def _value_at(text: str, tokens: tuple[str, ...]) -> str | None:
    try:
        start, end = json_pointer.locate(text, tokens)
    except EditRefused:
        return None
    return text[start:end]


def _told(value: str | None, tokens: tuple[str, ...], masked: frozenset[str]) -> str | None:
    if value is None:
        return None
    return HIDDEN if masked.intersection(tokens) else masked_text(value, masked)


_APPLY: dict[str, Callable[[Operation, Message, frozenset[str], frozenset[str], int | None], Step]] = {
    "set_property": _property, "remove_property": _property, "set_json": _json, "remove_json": _json,
}  # fmt: skip


def describe_rule(rule: Rule, masked: frozenset[str]) -> list[dict[str, str]]:
    """Returns for people `op`, `place` and `value` of each operation; of `masked` names no value."""
    return [
        {
            "op": each.op,
            "place": each.place[:LONGEST_TOLD],
            "value": HIDDEN if is_hidden(each, masked) else _value_text(each)[:LONGEST_TOLD],
        }
        for each in rule.operations
    ]


def _value_text(operation: Operation) -> str:
    return value_text(operation.item) or operation.json
