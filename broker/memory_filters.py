"""The forms of filter that this product uses, for the memory adapter."""

import re
from collections.abc import Callable
from typing import Any

from broker.port import Message
from contract.properties import (
    ANNOTATED_ORIG_ADDRESS,
    ANNOTATED_ORIG_MESSAGE_ID,
    ANNOTATED_ORIG_QUEUE,
    ORIG_ADDRESS,
    ORIG_MESSAGE_ID,
    ORIG_QUEUE,
)

Predicate = Callable[[Message], bool]

_ANNOTATED = {
    ORIG_ADDRESS: ANNOTATED_ORIG_ADDRESS,
    ORIG_QUEUE: ANNOTATED_ORIG_QUEUE,
    ORIG_MESSAGE_ID: ANNOTATED_ORIG_MESSAGE_ID,
}
_NEVER = re.compile(r"1\s*=\s*0")
_NULL = re.compile(r"(\w+) IS (NOT )?NULL")
_NARROWED = re.compile(r"([^()]+) AND \(([^()]+)\)")
_COMPARED = re.compile(r"(\w+)\s*(=|<=|<|>=|>|<>)\s*(?:'([^']*)'|(-?\d+))")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: bool(one == other),
    "<>": lambda one, other: bool(one != other),
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}


def predicate(selector: str) -> Predicate:
    """Terms joined by AND, these by OR; and at the end perhaps ` AND (…)` of such. Raises ValueError for every other
    form, rather than to guess what the broker would do."""
    if not selector.strip():
        return lambda message: True
    if match := _NARROWED.fullmatch(selector):
        ends, chosen = _any_of(match[1]), _any_of(match[2])
        return lambda message: _readable(message) and ends(message) and chosen(message)
    found = _any_of(selector)
    return lambda message: _readable(message) and found(message)


def _any_of(selector: str) -> Predicate:
    every = [[_term(term.strip()) for term in part.split(" AND ")] for part in selector.split(" OR ")]
    return lambda message: any(all(term(message) for term in terms) for terms in every)


def _readable(message: Message) -> bool:
    """No filter of the broker matches a message with a text that is not good Unicode among its properties."""
    try:
        for name, item in message.properties.items():
            name.encode()
            if isinstance(item.value, str):
                item.value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _term(text: str) -> Predicate:
    if _NEVER.fullmatch(text):
        return lambda message: False
    if match := _NULL.fullmatch(text):
        name, negated = match[1], match[2] is not None
        return lambda message: (_value(message, name) is not None) == negated
    if match := _COMPARED.fullmatch(text):
        return _compared(match[1], match[2], match[3] if match[4] is None else int(match[4]))
    raise ValueError(f"Invalid filter: {text}")


def _compared(name: str, operator: str, wanted: str | int) -> Predicate:
    compare = _OPERATORS[operator]

    def matches(message: Message) -> bool:
        value = _value(message, name)
        return type(value) is type(wanted) and compare(value, wanted)

    return matches


def _value(message: Message, name: str) -> Any:
    item = message.properties.get(name) or message.annotations.get(_ANNOTATED.get(name, name))
    return None if item is None else item.value
