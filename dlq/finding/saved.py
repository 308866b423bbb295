"""Filters of dead letters under a name: one's own, and those that others share. Whoever uses one finds what
they may see themselves, nothing more."""

from datetime import datetime
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from agents.services.saved import (
    LONGEST_NAME,
    LONGEST_QUERY,
    MOST,
    FilterRefused,
    SavedFilters,
    nothing_to_save,
)
from console.audit.log import record, record_refused
from dlq.finding.filters import PAGE_OWN, LetterFilter
from dlq.letters_for import found
from dlq.masking import Masks
from dlq.masks import everybodys_masks
from dlq.models import DeadLetter, SavedFilter

__all__ = [
    "LONGEST_NAME", "LONGEST_QUERY", "MOST", "FilterRefused", "change", "delete", "filter_part", "save",
    "saved_for"
]  # fmt: skip


class _OfLetters(SavedFilters[SavedFilter]):
    def filter_part(self, query: str, by: Any) -> str:
        given = QueryDict(query)
        wrong = [name for name in given if name not in LetterFilter.base_filters and name not in PAGE_OWN]
        kept = filter_part(given)
        if not kept and not wrong:
            raise nothing_to_save()
        filters, _rows = found(given, by)
        if problem := filters.problem:
            raise FilterRefused("bad_filter", problem)
        return kept.urlencode()

    def check_shared(self, query: str, by: Any) -> None:
        """What somebody may look for and others may not is not told to them by a filter."""
        filters = LetterFilter(QueryDict(query), DeadLetter.objects.none(), user=by)
        masks: Masks = everybodys_masks()
        filters.form.masks = masks
        if not filters.is_valid():
            raise FilterRefused("masked", filters.problem, _("Keep it for yourself."))

    def told(self, action: str, saved: SavedFilter, now: datetime) -> None:
        """Not what it looks for: that may be masked."""
        detail = {"name": saved.name, "shared": saved.shared}
        record(f"{action}_filter", by=saved.owner, now=now, target=f"filter:{saved.pk}", detail=detail)

    def told_refused(self, saved: SavedFilter, by: Any, why: str) -> None:
        record_refused("change_filter", by=by, target=f"filter:{saved.pk}", why=why)


_saved = _OfLetters(SavedFilter)
saved_for, save, change, delete = _saved.usable, _saved.save, _saved.change, _saved.delete


def filter_part(query: QueryDict) -> QueryDict:
    """What of an address is a filter, without what is empty and without what holds anyway."""
    kept = query.copy()
    for name in list(kept):
        if name not in LetterFilter.base_filters or not any(kept.getlist(name)):
            del kept[name]
    if kept.getlist("state") == ["dead"]:
        del kept["state"]
    return kept
