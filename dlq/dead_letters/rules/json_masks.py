"""Masked fields of JSON bodies, at any depth, without a change of anything else in the text. Pure.

A text that should be JSON and is not cannot be taken apart, so nothing of it is told. What is no JSON at all
has no fields: it is told whole, unless a masked name stands in it like one of JSON.
"""

import json
import re
from collections.abc import Iterable, Iterator, Set

HIDDEN = "•••"
_MASKED = json.dumps(HIDDEN, ensure_ascii=False)
# A string, a mark, or anything else that is no space. Possessive: a string without its end is given up at
# once.
_TOKEN = re.compile(r'\s*+("(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++)', re.DOTALL)
_BARE = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|NaN|-?Infinity")
_BEGUN = re.compile(r"-?\d*\.?\d*(?:[eE][+-]?\d*)?")
_NAMES = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_BEFORE = "\ufeff \t\r\n"


# How lists and maps with types are written down (contract.typed): not as fields, so they are told whole or
# not at all.
_TYPED = re.compile(r'(?:\[\[?)?\{"type": "[a-z0-9]+", "value": ')


def looks_like_json(text: str) -> bool:
    return text.lstrip(_BEFORE)[:1] in ("{", "[")


def masked_body(text: str, names: Set[str], *, cut: bool = False) -> str | None:
    """`text` with the values of the fields `names` replaced; None: nothing of it may be told. `cut`: there
    was more."""
    if not names:
        return text
    if _TYPED.match(text):
        return None if cut or _has_a_name(text, names) else text
    if not looks_like_json(text):
        return None if _names_a_field(text, names) else text
    if cut:
        return None
    try:
        json.loads(text.lstrip(_BEFORE))
    except (ValueError, RecursionError):
        return None
    masked, whole = _walk(text, names)
    return masked if whole else None


def masked_head(text: str, names: Set[str]) -> str:
    """The begin of a body, of which nobody knows whether it goes on as it begins: told as far as it is
    JSON."""
    if not names:
        return text
    if _TYPED.match(text):
        return HIDDEN
    if not looks_like_json(text):
        return HIDDEN if _names_a_field(text, names) else text
    masked, whole = _walk(text, names)
    return masked if whole else masked + HIDDEN


def _names_a_field(text: str, names: Iterable[str]) -> bool:
    return any(re.search(rf'"{re.escape(name)}\\*"\s*+:', text) for name in names)


def _has_a_name(text: str, names: Iterable[str]) -> bool:
    return any(json.dumps(name, ensure_ascii=False) in text for name in names)


class _Ends(Exception):
    """The text ends before its JSON does (`cut`), or it is none from `position` on."""

    def __init__(self, position: int, *, cut: bool) -> None:
        super().__init__(position)
        self.position, self.cut = position, cut


def _walk(text: str, names: Set[str]) -> tuple[str, bool]:
    """The masked text as far as it is JSON, and whether there is nothing else in it."""
    spans: list[tuple[int, int]] = []
    hidden_from, hidden_level, level, key, end = -1, 0, 0, "", len(text)
    whole = True
    try:
        for kind, start, stop in _parts(text):
            if kind == "key":
                key = _decoded(text[start:stop])
                continue
            if hidden_from < 0 and (key in names or (kind == "scalar" and _holds(text[start:stop], names))):
                hidden_from, hidden_level = start, level
            key = ""
            level += {"open": 1, "close": -1}.get(kind, 0)
            if hidden_from >= 0 and kind != "open" and level == hidden_level:
                spans.append((hidden_from, stop))
                hidden_from = -1
    except _Ends as ends:
        whole, end = ends.cut, len(text) if ends.cut else ends.position
        if hidden_from >= 0 or key in names or _holds(text[ends.position : end].lstrip(), names):
            spans.append((hidden_from if hidden_from >= 0 else ends.position, end))
    return _without(text[:end], spans), whole


def _holds(scalar: str, names: Set[str]) -> bool:
    """Returns whether it is a string with JSON in it that has such a field: the whole of it is masked
    then."""
    if not scalar.startswith('"'):
        return False
    if _names_a_field(scalar, names):
        return True
    if "\\" not in scalar:
        return False
    inner = _decoded(scalar)
    return looks_like_json(inner) and masked_body(inner, names) != inner


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    told, copied = [], 0
    for start, stop in spans:
        told += [text[copied:start], _MASKED]
        copied = stop
    return "".join([*told, text[copied:]])


def _decoded(key: str) -> str:
    """An escape may spell a name in another way."""
    try:
        return str(json.loads(key, strict=False))
    except ValueError:
        return key[1:-1]


def _parts(text: str) -> Iterator[tuple[str, int, int]]:
    """Keys, scalars, begins and ends of containers with their places. Raises _Ends."""
    depth: list[str] = []
    expected, position = "value", len(text) - len(text.lstrip(_BEFORE))
    while expected != "nothing":
        found = _TOKEN.match(text, position)
        if found is None:
            rest = text[position:].strip()
            raise _Ends(position, cut=not rest or (rest[0] == '"' and expected in _TAKES_A_STRING))
        token, start, stop = found[found.lastindex or 0], found.start(found.lastindex or 0), found.end()
        kind = _kind(expected, token, depth)
        if not kind:
            raise _Ends(position, cut=stop == len(text) and expected in _TAKES_A_VALUE and _begins(token))
        position = stop
        if kind in ("key", "scalar", "open", "close"):
            yield kind, start, stop
        if kind == "open":
            depth.append(token)
        elif kind == "close":
            depth.pop()
        expected = _after(kind, depth)
    if text[position:].strip():
        raise _Ends(position, cut=False)


_TAKES_A_VALUE = ("value", "value or end")
_TAKES_A_STRING = (*_TAKES_A_VALUE, "key", "key or end")
_CLOSES = {"{": "}", "[": "]"}


def _kind(expected: str, token: str, depth: list[str]) -> str:
    """Empty: it does not belong here."""
    closes = bool(depth) and token == _CLOSES[depth[-1]]
    if expected in _TAKES_A_VALUE:
        if token in _CLOSES:
            return "open"
        if token[0] == '"' or _BARE.fullmatch(token):
            return "scalar"
        return "close" if closes and expected == "value or end" else ""
    if expected in ("key", "key or end"):
        if token[0] == '"':
            return "key"
        return "close" if closes and expected == "key or end" else ""
    if expected == "colon":
        return "colon" if token == ":" else ""
    if token == ",":
        return "comma"
    return "close" if closes else ""


def _after(kind: str, depth: list[str]) -> str:
    in_object = depth[-1:] == ["{"]
    if kind == "open":
        return "key or end" if in_object else "value or end"
    if kind == "comma":
        return "key" if in_object else "value"
    if kind in ("key", "colon"):
        return "colon" if kind == "key" else "value"
    return "comma or end" if depth else "nothing"


def _begins(token: str) -> bool:
    """Returns whether more characters could make it a number or a name of JSON."""
    return bool(_BEGUN.fullmatch(token)) or any(name.startswith(token) for name in _NAMES)
