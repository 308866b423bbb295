"""What KMA and MA say to each other, and the names that stand on messages, queues and what is kept. A change
shows as a diff of an approved file."""

import dataclasses
import typing
from enum import Enum
from typing import Any

from contract import messages, names, records, wire
from tests.architecture.approval import assert_approved

MODULES = ("contract.messages", "contract.records")


def test_the_wire_records_are_as_approved() -> None:
    lines, enums = [], dict[str, type[Enum]]()
    for name, kind in sorted({**vars(messages), **vars(records)}.items()):
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ in MODULES:
            hints = typing.get_type_hints(kind)
            for field in dataclasses.fields(kind):
                hint = hints[field.name]
                lines.append(f"{name}.{field.name}: {_type(hint)}{_default(field)}")
                if isinstance(hint, type) and issubclass(hint, Enum):
                    enums[hint.__name__] = hint
    lines += [f"{name}: {', '.join(each.value for each in enums[name])}" for name in sorted(enums)]
    lines += [f"kind {word}: {kind.__name__}" for word, kind in records.KINDS.items()]
    numbers = (f"{name} {value}" for name, value in vars(messages).items() if isinstance(value, int))
    assert_approved("wire.txt", "\n".join([*numbers, *lines]))


def _type(hint: Any) -> str:
    return (
        str(hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else hint)
        .replace("contract.messages.", "")
        .replace("contract.records.", "")
    )


def _default(field: Any) -> str:
    if field.default is not dataclasses.MISSING:
        return f" = {wire.dump(field.default)!r}"
    return " = {}" if field.default_factory is not dataclasses.MISSING else ""


def test_the_names_on_messages_and_queues_are_as_approved() -> None:
    lines = []
    for name, value in vars(names).items():
        if name.isupper() and not name.startswith("_"):
            words = [value] if isinstance(value, str) else sorted(value)
            lines.append(f"{name}: {' '.join(words)}")
    assert_approved("names.txt", "\n".join(lines))
