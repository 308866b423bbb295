"""Texts for people in which masked fields of JSON are not told. Pure."""

from typing import Any

from dlq.bodies import indented_json
from dlq.json_masks import HIDDEN, looks_like_json, masked_body


def names_in(value: Any, names: frozenset[str]) -> bool:
    """Whether parsed JSON has a field of one of these names, at any depth."""
    waiting = [value] if names else []
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if not names.isdisjoint(one):
                return True
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return False


def hides_text(text: str, names: frozenset[str]) -> bool:
    """Whether some of it is masked."""
    return masked_body(text, names) != text


def shown_text(text: str, names: frozenset[str]) -> str:
    """JSON indented, and with the values of these fields masked."""
    told = masked_body(text, names)
    if told is None:
        return HIDDEN
    return (indented_json(told) if looks_like_json(told) else None) or told
