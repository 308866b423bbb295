"""Frozen dataclasses <-> JSON values, strictly: an unknown type or a wrong one is refused with its path.

Unknown keys are ignored, so that an older side can read what a newer one adds, and named by `unknown`; a
missing key takes the default.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

from contract.typed import storable

# -- errors: a class is a decision ---------------------------------------------------------------------------


class ContractError(ValueError):
    """Data does not have the agreed shape. Permanent: refuse it, keep the raw text, go on with the next."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'body'}: {problem}")
        self.path = path
        self.problem = problem


class UnsupportedVersion(ContractError):
    """The other side speaks a version that is too new or too old. Operator: upgrade the older of MA and
    KMA."""


# -- values --------------------------------------------------------------------------------------------------


T = TypeVar("T")
JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]


def dump(value: Any) -> JSON:
    """JSON value of a dataclass or of one of its fields. Instants are ISO 8601 in UTC."""
    if value is None or type(value) in (bool, int, float):
        return cast(JSON, value)  # most are: a heartbeat is answered with some thousands of values
    if type(value) is str:
        return storable(value)
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
    raise TypeError(f"not a wire type: {type(value).__name__}")


def load(kind: type[T], data: Any, path: str = "") -> T:
    """An instance of the dataclass `kind` from a JSON object. Raises ContractError with the path of what is
    wrong."""
    try:
        return cast(T, _reader(cast(Hashable, kind))(data))
    except _Wrong as wrong:
        where = path + wrong.path if path else wrong.path.removeprefix(".")
        raise ContractError(where, wrong.problem) from wrong.__cause__


class _Wrong(Exception):
    """`path` as far as it is known: who reads the whole of which this is a part puts its own part before
    it."""

    def __init__(self, problem: str, path: str = "") -> None:
        self.problem = problem
        self.path = path


def unknown(kind: type[Any], data: Any, path: str = "") -> Iterator[str]:
    """Paths of the keys that `load` ignores, also in what is within; items of lists have no number of their
    own."""
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
    return frozenset(name for name, _, _ in shape), tuple(
        pair for pair in inner if dataclasses.is_dataclass(pair[1])
    )


@cache
def _shape(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    hints = typing.get_type_hints(kind)
    missing = dataclasses.MISSING
    return tuple(
        (field.name, hints[field.name], field.default is missing and field.default_factory is missing)
        for field in dataclasses.fields(kind)
    )


Reader = Callable[[Any], Any]


@cache
def _reader(kind: Any) -> Reader:
    """Made once for each class: thousands of records a second are read."""
    fields = tuple((name, _reader_of(hint), required) for name, hint, required in _shape(kind))

    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise _Wrong("must be an object")
        values = {}
        for name, reader, required in fields:
            if name in data:
                try:
                    values[name] = reader(data[name])
                except _Wrong as wrong:
                    wrong.path = f".{name}{wrong.path}"
                    raise
            elif required:
                raise _Wrong("is missing", f".{name}")
        return kind(**values)

    return read


def _reader_of(hint: Any) -> Reader:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _optional(_reader_of(next(arg for arg in get_args(hint) if arg is not type(None))))
    if origin is tuple:
        return _items(_reader_of(get_args(hint)[0]))
    if origin in (dict, Mapping):
        return _mapping(_reader_of(get_args(hint)[1]))
    if dataclasses.is_dataclass(hint):
        return _reader(cast(Hashable, hint))
    if hint is Any:
        return lambda data: data
    return _scalar(hint)


def _optional(reader: Reader) -> Reader:
    return lambda data: None if data is None else reader(data)


def _items(reader: Reader) -> Reader:
    def read(data: Any) -> tuple[Any, ...]:
        if not isinstance(data, list):
            raise _Wrong("must be a list")
        found = []
        try:
            for item in data:
                found.append(reader(item))
        except _Wrong as wrong:
            wrong.path = f"[{len(found)}]{wrong.path}"
            raise
        return tuple(found)

    return read


def _mapping(reader: Reader) -> Reader:
    def read(data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise _Wrong("must be an object")
        found: dict[str, Any] = {}
        for key, item in data.items():
            try:
                found[str(key)] = reader(item)
            except _Wrong as wrong:
                wrong.path = f".{key}{wrong.path}"
                raise
        return found

    return read


def _scalar(hint: Any) -> Reader:
    convert = _conversion(hint)
    # What needs nothing but a look at its type, which is most of what comes.
    as_it_is, text = hint if hint in (bool, int, float) else None, hint is str

    def read(data: Any) -> Any:
        if type(data) is as_it_is or (text and type(data) is str and data.isascii() and "\0" not in data):
            return data
        try:
            return convert(data)
        except (ValueError, TypeError, OverflowError) as error:
            raise _Wrong(f"must be {getattr(hint, '__name__', hint)}: {error}") from error

    return read


def _conversion(hint: Any) -> Callable[[Any], Any]:
    """Raises ValueError, TypeError or OverflowError."""
    if hint is datetime:
        return _instant
    if hint is UUID:
        return lambda data: UUID(_exactly(str, data))
    if issubclass(hint, Enum):
        return cast(Callable[[Any], Any], hint)
    if hint is float:
        return lambda data: float(_exactly((int, float), data))
    if hint is str:
        return lambda data: storable(_exactly(str, data))
    return lambda data: _exactly(hint, data)


def _instant(data: Any) -> datetime:
    instant = datetime.fromisoformat(_exactly(str, data))
    if instant.tzinfo is None:
        raise ValueError("a timestamp needs a UTC offset")
    return instant.astimezone(UTC)


def _exactly(kind: Any, data: Any) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise ValueError(f"got {type(data).__name__}")
    return data


# -- how deep JSON values nest -------------------------------------------------------------------------------
# Nothing here recurses: what it guards against are values that a recursion cannot read.


# Of what anybody sends: nothing of ours nests a tenth as deep, and every reader of it recurses by level.
DEEPEST = 100


def deeper_than(value: Any, most: int) -> bool:
    """Whether lists and mappings are nested in more than `most` levels. A value that is neither has none."""
    level = [value] if isinstance(value, (dict, list)) else []
    depth = 0
    while level:
        depth += 1
        if depth > most:
            return True
        level = [
            each
            for item in level
            for each in (item.values() if isinstance(item, dict) else item)
            if isinstance(each, (dict, list))
        ]
    return False
