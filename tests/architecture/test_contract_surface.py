"""What KMA and MA say to each other. A change shows as a diff of an approved file."""

import dataclasses
import typing
from typing import Any

from contract import messages, wire
from tests.architecture.approval import assert_approved

MODULES = ("contract.messages", "contract.records")


def test_the_wire_records_are_as_approved() -> None:
    lines = []
    for name, kind in sorted(vars(messages).items()):
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ in MODULES:
            hints = typing.get_type_hints(kind)
            for field in dataclasses.fields(kind):
                lines.append(f"{name}.{field.name}: {_type(hints[field.name])}{_default(field)}")
    assert_approved("wire.txt", f"version {messages.VERSION}\n" + "\n".join(lines))


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
