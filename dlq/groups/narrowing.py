"""What of a filter holds for groups: only where letters lie. Indexes count groups of whole queues; nothing
else of a filter is in them, so the rest is said not to hold rather than dropped."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from dlq.finding.filters import LetterFilter
from dlq.letters_for import found

HOLDS = ("setting", "destination", "queue")


@dataclass(frozen=True, slots=True)
class Narrowed:
    """`query` is the whole filter as of an address, `left_out` what of it does not hold: label and value."""

    queues: list[str]
    query: str = ""
    left_out: tuple[tuple[str, str], ...] = ()
    problem: str = ""


def filter_query(query: QueryDict) -> str:
    """What of a query string is a filter, to be carried on."""
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
    """What the form calls a choice; of anything else what was said."""
    choices = {str(value): str(label) for value, label in getattr(field, "choices", ())}
    return [choices.get(value, value) for value in values]
