"""Values from hostile places, made such that every database takes them, or refused with a reason."""

from typing import Any

from contract.typed import MARK, head_and_tail, storable
from contract.wire import ContractError

BIGGEST = 2**63 - 1
# A JSON number beyond this is kept as its text: databases and browsers would round or refuse it.
DIGITS = 18
# Levels of lists and objects in one value: deeper ones end the interpreter's or the database's patience.
DEEPEST = 50


def fit(text: str, limit: int) -> str:
    """`text` in at most `limit` characters: a name that is too long is cut rather than the record lost."""
    text = storable(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def ends(text: str, limit: int) -> str:
    """`text` in at most `limit` characters, its head and its tail: where it came from and how it ended."""
    text = storable(text)
    return text if len(text) <= limit else head_and_tail(text, limit - MARK)


def whole(value: int, path: str, *, least: int = 0, most: int = BIGGEST) -> int:
    """`value`, when a column takes it, of 64 bits unless told otherwise. Raises ContractError."""
    if not least <= value <= most:
        raise ContractError(path, f"must be between {least} and {most}")
    return value


def plain(value: Any, levels: int = DEEPEST) -> Any:
    """A JSON value that JSON columns take: texts and keys storable, numbers neither huge nor NaN. Raises
    ContractError for one that is nested too deep."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, (dict, list, tuple)) and not levels:
        raise ContractError("properties", f"nested deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        return {storable(str(key)): plain(item, levels - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, levels - 1) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < 10**DIGITS else str(value)
    if isinstance(value, float):
        return value if abs(value) != float("inf") and value == value else str(value)
    return storable(str(value))
