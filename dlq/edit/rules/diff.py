"""Decides what an edit changes, for people: bounded, masked. Pure.

A list of `{"what", "before", "after"}`, texts; None: it was, or will be, not there. The body has `lines` too:
a unified diff, of JSON indented. A stored one has `masked`, the names that were masked when it was stored.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from broker.port import Message
from contract.typed import Typed, storable, text_of
from dlq.dead_letters.rules.body import hexadecimal, indented_json, indented_xml
from dlq.dead_letters.rules.json_masks import HIDDEN, looks_like_json, masked_body
from dlq.dead_letters.rules.parser import body_size
from dlq.edit.rules.body_text import BODY, text_of_body

# -- texts for people in which masked fields of JSON are not told --------------------------------------------
# Pure.


def names_in(value: Any, names: frozenset[str]) -> bool:
    """Returns whether parsed JSON has a field of one of these names, at any depth."""
    waiting = [value] if names else []
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if not names.isdisjoint(one):
                return True
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return False


def hides_text(text: str, names: frozenset[str]) -> bool:
    """Returns whether some of it is masked."""
    return masked_body(text, names) != text


def masked_text(text: str, names: frozenset[str]) -> str:
    """JSON indented, and with the values of these fields masked."""
    told = masked_body(text, names)
    if told is None:
        return HIDDEN
    return (indented_json(told) if looks_like_json(told) else None) or told


Change = dict[str, Any]

LONGEST_VALUE = 200
MOST_CHANGES = 200
# Of the diff of a body.
MOST_LINES, LONGEST_LINE = 400, 200
# Lines that are compared at all: comparing takes the square of them.
COMPARED = 1500
CONTEXT = 3


def changes_between(
    before: Message, after: Message, masked: frozenset[str], jms_kind: int | None = None
) -> list[Change]:
    """Empty: nothing that people can change is different."""
    changes = property_changes(before.properties, after.properties, masked)
    if before.body != after.body:
        changes.insert(0, _body_change(before, after, masked, jms_kind))
    if len(changes) > MOST_CHANGES:
        left_out = len(changes) - MOST_CHANGES
        return [
            *changes[:MOST_CHANGES],
            change(_("other changed properties: %(n)s") % {"n": left_out}, None, None),
        ]
    return changes


def change(what: str, before: str | None, after: str | None) -> Change:
    return {"what": storable(what)[:300], "before": _bounded(before), "after": _bounded(after)}


def property_changes(
    before: Mapping[str, Typed], after: Mapping[str, Typed], masked: frozenset[str]
) -> list[Change]:
    names = [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]
    return [
        change(name, *(value_text(items.get(name), hidden=name in masked) for items in (before, after)))
        for name in sorted(names)
    ]


def value_text(item: Typed | None, *, hidden: bool = False) -> str | None:
    """Returns the value with its type: 7 and "7" are two."""
    if item is None or hidden:
        return HIDDEN if hidden and item is not None else None
    return f"{text_of(item)[: LONGEST_VALUE + 1]} ({item.type})"


def _bounded(text: str | None) -> str | None:
    if text is None:
        return None
    safe = storable(text)
    return safe if len(safe) <= LONGEST_VALUE else f"{safe[:LONGEST_VALUE]}…"


def _body_change(before: Message, after: Message, masked: frozenset[str], jms_kind: int | None) -> Change:
    sizes = [_("%(n)s bytes") % {"n": body_size(message)} for message in (before, after)]
    texts = [_readable(message, masked, jms_kind) for message in (before, after)]
    return change(BODY, *sizes) | {"lines": unified(*texts)}


def _readable(message: Message, masked: frozenset[str], jms_kind: int | None) -> str:
    text = text_of_body(message, jms_kind)
    if text is None:
        if masked:
            return HIDDEN
        return (
            hexadecimal(message.body.value[: 16 * COMPARED]) if isinstance(message.body.value, bytes) else ""
        )
    shown = masked_text(text, masked)
    return indented_xml(shown) or shown


def unified(before: str, after: str) -> list[str]:
    """Lines that begin with "+", "-", " " or "@@"; a last one says how many are left out."""
    old, new = _lines(before), _lines(after)
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    since = max(0, same - CONTEXT)
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    until = max(0, tail - CONTEXT)
    old, new = old[since : len(old) - until], new[since : len(new) - until]
    found = list(difflib.unified_diff(old[:COMPARED], new[:COMPARED], lineterm="", n=CONTEXT))[2:]
    place = _("line") + f" {since + 1}"
    shown = [f"@@ {place} @@", *(line for line in found if not line.startswith("@@"))]
    left_out = max(0, len(shown) - MOST_LINES) + max(0, len(old) - COMPARED) + max(0, len(new) - COMPARED)
    if not left_out:
        return shown
    return [*shown[:MOST_LINES], "@@ " + _("lines not shown: %(n)s") % {"n": left_out} + " @@"]


def _lines(text: str) -> list[str]:
    """Long lines in pieces: a change at their end is seen too."""
    pieces = []
    for line in storable(text).splitlines():
        pieces += [line[start : start + LONGEST_LINE] for start in range(0, len(line), LONGEST_LINE)] or [""]
    return pieces


# -- a diff that was stored, as one person may see it --------------------------------------------------------


def stored_changes(changes: Iterable[Change], masked: frozenset[str]) -> list[Change]:
    """Returns them as they are kept: `masked` is what they do not tell."""
    return [each | ({"masked": sorted(masked)} if masked else {}) for each in changes]


def visible_changes(stored: Iterable[Change], hidden: frozenset[str]) -> list[Change]:
    """`hidden`: what this person may not see. A setting may mask more now than when they were stored; of that
    they say only that it changed. `hides_lines` is where the lines of a body are left out."""
    return [_visible(each, hidden - frozenset(map(str, each.get("masked") or ()))) for each in stored]


def _visible(stored: Change, hidden: frozenset[str]) -> Change:
    before, after = stored.get("before"), stored.get("after")
    told: Change = {"what": str(stored.get("what") or "")}
    for name, text in (("before", before), ("after", after)):
        told[name] = HIDDEN if text is not None and _tells(hidden, told["what"], str(text)) else text
    lines = stored.get("lines")
    if lines and hidden:
        # A field may go over more lines than are shown of it: none of them can be left out alone.
        return told | {"hides_lines": True}
    return told | ({"lines": lines} if lines else {})


def _tells(hidden: Iterable[str], *texts: str) -> bool:
    return any(name and name in text for name in hidden for text in texts)
