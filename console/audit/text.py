"""Words for what entries hold as codes. Every app declares its own in its `audit_codes`, or in its `apps`
where they are few; what nobody has declared is shown as it is stored."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from django.utils.functional import Promise
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from console.ui.amounts import number

T = TypeVar("T")
Text = str | Promise


class Declared(dict[str, T]):
    """Audit codes by code, each declared by one app."""

    def declare(self, some: Mapping[str, T]) -> None:
        """Raises ValueError for a code that is declared already."""
        if twice := sorted(self.keys() & some.keys()):
            raise ValueError(f"declared twice for the audit: {', '.join(twice)}")
        self.update(some)


class TargetPage(NamedTuple):
    """Its name among the site's addresses, and the field of an entry that it is asked for with; empty: with
    the id in its target. `query`: as `console.ui.page.link_to`."""

    name: str
    field: str = ""
    query: str = ""


# An attempt that was refused may have a code of its own: with the same words, after the first code of these
# words.
ACTIONS = Declared[Text]()
SCOPES = Declared[Text]()
COUNTS = Declared[Text]()
# What stands in `detail`, by its name; a reason and what columns show is not here.
DETAILS = Declared[Text]()
# Of a detail: the words of its values, or what finds them.
VALUES = Declared[Mapping[str, Text] | Callable[[Any], Text]]()
# By the kind of the target.
PAGES = Declared[TargetPage]()

ACTIONS.declare({"token.issue": _("issue a token")})
# `why`: of every refusal (`console.audit.log.record_refused`).
DETAILS.declare({"name": _("name"), "why": _("reason")})


def listed_actions() -> list[tuple[str, Text]]:
    """Returns what a person can choose from: each name once, with its first code."""
    first: dict[str, tuple[str, Text]] = {}
    for code, words in ACTIONS.items():
        first.setdefault(str(words), (code, words))
    return [first[name] for name in sorted(first)]


def codes_of(action: str) -> list[str]:
    """Returns for a first code every one of its name; for another only itself."""
    same = [code for code, words in ACTIONS.items() if str(words) == str(ACTIONS.get(action, ""))]
    return same if same[:1] == [action] else [action]


def first_code(action: str) -> str:
    """Returns what finds this action and its attempts."""
    return next(
        (code for code, words in ACTIONS.items() if str(words) == str(ACTIONS.get(action, ""))), action
    )


def action_words(action: str) -> Text:
    return ACTIONS.get(action, action)


def scope_words(scope: str) -> Text:
    return SCOPES.get(scope, scope)


def count_words(counts: Any) -> list[tuple[Any, Any]]:
    """What is none is left out."""
    pairs = counts.items() if isinstance(counts, dict) else []
    found = [(name, value) for name, value in pairs if value]
    return [(COUNTS.get(name, name), number(each) if type(each) is int else each) for name, each in found]


def detail_words(name: str, value: Any) -> tuple[Text, str]:
    """A fact of an entry as people read it: no lists and no codes."""
    return DETAILS.get(name, name), _value_words(name, value)


def _value_words(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return _now("yes") if value else _now("no")
    if isinstance(value, list):
        between = "; " if any(isinstance(each, dict) for each in value) else ", "
        return between.join(_value_words(name, each) for each in value)
    words = VALUES.get(name, {})
    if callable(words):
        return str(words(value))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {each}" for key, each in value.items())
    return str(words.get(str(value), value))
