"""What a file changes, so that a person can read it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Longer values are cut in the middle of a difference: the file itself has them.
SHOWN = 200


@dataclass(frozen=True, slots=True)
class Change:
    """`old` is None where the object is new. `path`: settings/orders, or settings/orders/breaker_m."""

    path: str
    old: str | None
    new: str

    def __str__(self) -> str:
        return f"+ {self.path}: {self.new}" if self.old is None else f"~ {self.path}: {self.old} → {self.new}"


def between(path: str, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[Change]:
    """Field by field; `old` is None for an object that is not there yet."""
    if old is None:
        return [
            Change(path, None, "new"),
            *(Change(f"{path}/{name}", None, shown(new[name])) for name in new),
        ]
    return [
        Change(f"{path}/{name}", shown(old.get(name)), shown(value))
        for name, value in new.items()
        if not same(old.get(name), value)
    ]


def same(old: Any, new: Any) -> bool:
    """3 and 3.0 are the same; True and 1 are not."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(same(*pair) for pair in zip(old, new, strict=True))
    return bool(old == new)


def shown(value: Any) -> str:
    if value is None:
        return "none"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"
