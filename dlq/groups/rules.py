"""Describes by what dead letters are put into groups, and the filter that finds the dead letters of one
group."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dlq.search.filter import LetterFilter
from dlq.search.visibility import found


@dataclass(frozen=True, slots=True)
class Kind:
    """`column` is that of a dead letter, empty for days; `field` the one of the filter
    (`dlq.search.filter`)."""

    name: str
    label: str | Promise
    column: str
    field: str

    def query(self, value: Any) -> str:
        """The filter of a group, as of an address."""
        if not self.column:
            day: date = value
            return urlencode({"since": day.isoformat(), "until": (day + timedelta(days=1)).isoformat()})
        return urlencode({self.field: value} if value else {"without": self.field})

    def value(self, stored: Any) -> Any:
        """Returns the value as both databases give it."""
        if self.name == "activation" and stored:
            return str(UUID(str(stored)))
        return stored or ""


KINDS = {
    kind.name: kind
    for kind in (
        Kind("fingerprint", _("Error group"), "fingerprint", "fingerprint"),
        Kind("exception", _("Exception"), "exception_type", "exception_type"),
        Kind("server", _("Server"), "server_name", "server"),
        Kind("activation", _("Activation"), "activation_uuid", "activation"),
        Kind("day", _("Day"), "", "since"),
    )
}


def kind_named(name: str) -> Kind:
    """The first one for a name that there is not."""
    return KINDS.get(name) or KINDS["fingerprint"]


# -- what of a filter holds for groups: only where dead letters lie ------------------------------------------
# Indexes count groups of whole queues; nothing else of a filter is in them, so the rest is said not to hold
# rather than dropped.


HOLDS = ("setting", "destination", "queue")


@dataclass(frozen=True, slots=True)
class Narrowed:
    """`query` is the whole filter as of an address, `left_out` what of it does not hold: label and value."""

    queues: list[str]
    query: str = ""
    left_out: tuple[tuple[str, str], ...] = ()
    problem: str = ""


def filter_query(query: QueryDict) -> str:
    """Returns what of a query string is a filter, to be carried on."""
    kept = query.copy()
    for name in [
        name for name in kept if name not in LetterFilter.base_filters or not any(kept.getlist(name))
    ]:
        del kept[name]
    return kept.urlencode()


def narrowed(data: QueryDict, user: object, queues: Sequence[str], *, queue: str = "") -> Narrowed:
    """`queues` are those that the person may see, `queue` the only one that the page is about."""
    query = filter_query(data)
    if not query:
        return Narrowed(list(queues))
    filters, _rows = found(query, user, queue=queue)
    said = QueryDict(query)
    left_out = [
        (
            str(filters.form.fields[name].label),
            ", ".join(_in_words(filters.form.fields[name], said.getlist(name))),
        )
        for name in said
        if name not in HOLDS and (name, said[name]) != ("state", "dead")
    ]
    if not filters.is_valid():
        return Narrowed([], query, tuple(left_out), filters.problem)
    only = filters.asked.queues
    return Narrowed([each for each in queues if only is None or each in only], query, tuple(left_out))


def _in_words(field: Any, values: Iterable[str]) -> list[str]:
    """Returns what the form calls a choice; of anything else what was said."""
    choices = {str(value): str(label) for value, label in getattr(field, "choices", ())}
    return [choices.get(value, value) for value in values]
