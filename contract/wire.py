"""Frozen dataclasses <-> JSON values, strictly: an unknown type or a wrong one is refused with its path.

Unknown keys are ignored, so that an older side can read what a newer one adds, and named by `unknown`; a missing key
takes the default.
"""

import dataclasses
import types
import typing
from collections.abc import Hashable, Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

from contract.errors import ContractError
from contract.text import storable

T = TypeVar("T")
JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]


def dump(value: Any) -> JSON:
    """JSON value of a dataclass or of one of its fields. Instants are ISO 8601 in UTC."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: dump(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return dump(value.value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable(str(key)): dump(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [dump(item) for item in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise TypeError(f"not a wire type: {type(value).__name__}")


def load(kind: type[T], data: Any, path: str = "") -> T:
    """An instance of the dataclass `kind` from a JSON object. Raises ContractError with the path of what is wrong."""
    if not isinstance(data, dict):
        raise ContractError(path, "must be an object")
    values = {}
    for name, hint, required in _shape(cast(Hashable, kind)):
        where = f"{path}.{name}" if path else name
        if name in data:
            values[name] = _value(hint, data[name], where)
        elif required:
            raise ContractError(where, "is missing")
    return kind(**values)


def unknown(kind: type[Any], data: Any, path: str = "") -> Iterator[str]:
    """Paths of the keys that `load` ignores, also in what is within; items of lists have no number of their own."""
    if isinstance(data, list):
        for item in data:
            yield from unknown(kind, item, path)
    if not isinstance(data, dict):
        return
    known, inner = _names(cast(Hashable, kind))
    if not data.keys() <= known:
        yield from (f"{path}.{name}" if path else str(name) for name in data if name not in known)
    for name, within in inner:
        if name in data:
            yield from unknown(within, data[name], f"{path}.{name}" if path else name)


@cache
def _names(kind: Any) -> tuple[frozenset[str], tuple[tuple[str, Any], ...]]:
    """All names, and those that hold dataclasses with their class."""
    shape = _shape(kind)
    inner = ((name, part) for name, hint, _ in shape for part in (hint, *get_args(hint)))
    return frozenset(name for name, _, _ in shape), tuple(pair for pair in inner if dataclasses.is_dataclass(pair[1]))


@cache
def _shape(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    hints = typing.get_type_hints(kind)
    missing = dataclasses.MISSING
    return tuple(
        (field.name, hints[field.name], field.default is missing and field.default_factory is missing)
        for field in dataclasses.fields(kind)
    )


def _value(hint: Any, data: Any, path: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _optional(hint, data, path)
    if origin is tuple:
        return _items(get_args(hint)[0], data, path)
    if origin is Mapping or origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _mapping(get_args(hint)[1], data, path)
    if dataclasses.is_dataclass(hint):
        return load(cast(type, hint), data, path)
    if hint is Any:
        return data
    return _scalar(hint, data, path)


def _optional(hint: Any, data: Any, path: str) -> Any:
    if data is None:
        return None
    return _value(next(arg for arg in get_args(hint) if arg is not type(None)), data, path)


def _items(hint: Any, data: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise ContractError(path, "must be a list")
    return tuple(_value(hint, item, f"{path}[{index}]") for index, item in enumerate(data))


def _mapping(hint: Any, data: Any, path: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ContractError(path, "must be an object")
    return {str(key): _value(hint, item, f"{path}.{key}") for key, item in data.items()}


def _scalar(hint: Any, data: Any, path: str) -> Any:
    try:
        if hint is datetime:
            return _instant(data)
        if hint is UUID:
            return UUID(_exactly(str, data))
        if isinstance(hint, type) and issubclass(hint, Enum):
            return hint(data)
        if hint is float:
            return float(_exactly((int, float), data))
        if hint is str:
            return storable(_exactly(str, data))
        return _exactly(hint, data)
    except (ValueError, TypeError, OverflowError) as error:
        raise ContractError(path, f"must be {getattr(hint, '__name__', hint)}: {error}") from error


def _instant(data: Any) -> datetime:
    instant = datetime.fromisoformat(_exactly(str, data))
    if instant.tzinfo is None:
        raise ValueError("an instant needs its offset")
    return instant.astimezone(UTC)


def _exactly(kind: Any, data: Any) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise ValueError(f"got {type(data).__name__}")
    return data
