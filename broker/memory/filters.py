"""The forms of filter that this product uses, for the memory adapter."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from broker.port import Message
from contract.names import (
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
_COMPARED = re.compile(r"(\w+)\s*(=|<=|<|>=|>|<>)\s*(?:'((?:[^']|'')*)'|(-?\d+))")
_PIECE = re.compile(
    rf"\s*([()]|AND\b|OR\b|(?:{_NEVER.pattern})|(?:{_NULL.pattern})|(?:{_COMPARED.pattern}))\s*"
)
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: bool(one == other),
    "<>": lambda one, other: bool(one != other),
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}


def predicate(selector: str) -> Predicate:
    """Terms joined by AND, these by OR, nested in parentheses. Raises ValueError for every other form, rather
    than to guess what the broker would do."""
    if not selector.strip():
        return lambda message: True
    pieces = _Pieces(selector)
    found = _any_of(pieces)
    if pieces.next:
        raise ValueError(f"Invalid filter: {pieces.next}")
    return lambda message: _readable(message) and found(message)


class _Pieces:
    """Of a filter, one after the other; `next` is empty at the end."""

    def __init__(self, selector: str) -> None:
        self._selector, self._at, self.next = selector, 0, ""
        self.go_on()

    def go_on(self) -> str:
        """The piece that was the next one."""
        taken = self.next
        if self._at == len(self._selector):
            self.next = ""
            return taken
        match = _PIECE.match(self._selector, self._at)
        if match is None:
            raise ValueError(f"Invalid filter: {self._selector[self._at :]}")
        self._at, self.next = match.end(), match[1]
        return taken


def _any_of(pieces: _Pieces) -> Predicate:
    return _joined(pieces, "OR", _all_of, any)


def _all_of(pieces: _Pieces) -> Predicate:
    return _joined(pieces, "AND", _one, all)


def _joined(
    pieces: _Pieces,
    word: str,
    part: Callable[[_Pieces], Predicate],
    together: Callable[[Iterable[bool]], bool],
) -> Predicate:
    every = [part(pieces)]
    while pieces.next == word:
        pieces.go_on()
        every.append(part(pieces))
    return lambda message: together(each(message) for each in every)


def _one(pieces: _Pieces) -> Predicate:
    if pieces.next != "(":
        return _term(pieces.go_on())
    pieces.go_on()
    inner = _any_of(pieces)
    if pieces.go_on() != ")":
        raise ValueError("Invalid filter: a ( without its )")
    return inner


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
        return _compared(match[1], match[2], int(match[4]) if match[4] else match[3].replace("''", "'"))
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
