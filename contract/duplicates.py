"""How a setting names the key by which repeats of its messages are known: "" (no guard), "key" (the message
key), "property:NAME", or "pointer:/json/pointer" into a JSON body (RFC 6901)."""

import re
from typing import Any

KEY, PROPERTY, POINTER = "key", "property:", "pointer:"
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")


def check_key(text: str) -> None:
    """Raises ValueError whose text names the forms."""
    good = text in ("", KEY)
    good = good or (text.startswith(PROPERTY) and len(text) > len(PROPERTY))
    good = good or (text.startswith(POINTER) and _POINTER.fullmatch(text.removeprefix(POINTER)) is not None)
    if not good:
        raise ValueError("one of: key, property:NAME, pointer:/a/b, or nothing")


def found_at(pointer: str, value: Any) -> Any:
    """The text, number or truth value there; None where there is none, or something that is no key."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value if isinstance(value, (str, int, float)) and value != "" else None
