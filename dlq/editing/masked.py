"""Texts for people in which masked fields of JSON are not told. Pure."""

import json
from typing import Any

from dlq.masking import MASK
from dlq.pages.bodies import indented_json


def names_in(value: Any, names: frozenset[str]) -> bool:
    """Whether parsed JSON has a field of one of these names, at any depth."""
    if not names:
        return False
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if not names.isdisjoint(one):
                return True
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return False


def shown_json(text: str, names: frozenset[str]) -> str | None:
    """Indented, with the values of these fields masked; None for what is no JSON."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not names_in(document, names):
        return indented_json(text) or text

    def hide(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name: MASK if name in names else value for name, value in pairs}

    return json.dumps(json.loads(text, object_pairs_hook=hide), indent=2, ensure_ascii=False)
