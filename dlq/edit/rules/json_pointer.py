"""RFC 6901 JSON pointers over the text of a document: one value is set or removed, every other character
stays. Pure.

Parsing and writing a document anew would change its numbers (1.10, 1e400), the order of doubled names, and
its layout.
"""

import json
import re
from dataclasses import dataclass

from django.utils.translation import gettext as _

from dlq.edit.rules.values import EditRefused

LONGEST = 1000
_SPACE = re.compile(r"[ \t\r\n]*")
_INDEX = re.compile(r"(0|[1-9]\d{0,8})\Z", re.ASCII)
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Member:
    """One value in its container. `begin`: of the name or of the item itself, `start`-`end`: of the value."""

    name: str
    begin: int
    start: int
    end: int


def parse(pointer: str) -> tuple[str, ...]:
    """The reference tokens. Raises EditRefused."""
    if (
        len(pointer) > LONGEST
        or (pointer and not pointer.startswith("/"))
        or re.search(r"~(?![01])", pointer)
    ):
        raise EditRefused("bad_pointer", _("Invalid JSON pointer. Example: /order/lines/0/sum."))
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def locate(text: str, tokens: tuple[str, ...]) -> tuple[int, int]:
    """(start, end) of the value. Raises EditRefused (`pointer_missing`); the text is strict JSON."""
    start = _space(text, 0)
    for token in tokens:
        found = _chosen(text, _members(text, start), start, token)
        if found is None:
            raise _missing()
        start = found.start
    return start, _value_end(text, start)


def put(text: str, tokens: tuple[str, ...], value: str) -> str:
    """`value` is JSON text. It replaces what is there, or is added to the object or, as `-`, at the end of
    the list that the pointer leads to; containers are never made up. Raises EditRefused."""
    if not tokens:
        start, end = locate(text, ())
        return text[:start] + value + text[end:]
    start, _end = locate(text, tokens[:-1])
    members = _members(text, start)
    if members is None:
        raise _missing()
    found = _chosen(text, members, start, tokens[-1])
    if found is not None:
        return text[: found.start] + value + text[found.end :]
    in_list = text[start] == "["
    if in_list and tokens[-1] != "-":
        raise _missing()
    addition = value if in_list else f"{json.dumps(tokens[-1], ensure_ascii=False)}: {value}"
    if not members:
        return text[: start + 1] + addition + text[start + 1 :]
    return f"{text[: members[-1].end]}, {addition}{text[members[-1].end :]}"


def remove(text: str, tokens: tuple[str, ...]) -> str:
    """Removes that member or item. Raises EditRefused."""
    if not tokens:
        raise EditRefused("bad_pointer", _("The whole document cannot be removed."))
    start, _end = locate(text, tokens[:-1])
    members = _members(text, start) or []
    found = _chosen(text, members, start, tokens[-1])
    if found is None:
        raise _missing()
    at = members.index(found)
    if at + 1 < len(members):
        return text[: found.begin] + text[members[at + 1].begin :]
    since = members[at - 1].end if at else start + 1
    return text[:since] + text[found.end :]


def _missing() -> EditRefused:
    return EditRefused("pointer_missing", _("The document has nothing at this path."))


def _chosen(text: str, members: list[Member] | None, start: int, token: str) -> Member | None:
    """Returns the last of doubled names: the one that readers see."""
    if not members:
        return None
    if text[start] == "[":
        index = int(token) if _INDEX.match(token) else -1
        return members[index] if 0 <= index < len(members) else None
    return next((member for member in reversed(members) if member.name == token), None)


def _members(text: str, start: int) -> list[Member] | None:
    """Returns members of the object or list that begins at `start`; None where there is neither."""
    if text[start] not in "{[":
        return None
    in_list = text[start] == "["
    members: list[Member] = []
    at = _space(text, start + 1)
    while text[at] not in "}]":
        begin, name = at, ""
        if not in_list:
            name, at = _DECODER.raw_decode(text, at)
            at = _space(text, _space(text, at) + 1)  # over the colon
        end = _value_end(text, at)
        members.append(Member(name, begin, at, end))
        at = _space(text, end)
        if text[at] == ",":
            at = _space(text, at + 1)
    return members


def _value_end(text: str, start: int) -> int:
    return _DECODER.raw_decode(text, start)[1]


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
