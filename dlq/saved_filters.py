"""Filters of dead letters under a name. Whoever uses one finds what they may see themselves, nothing more."""

from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext_lazy as _

from console.models import SavedFilter
from console.saved_filters.operations import SavedFilters
from console.saved_filters.web import OneSavedFilter, SavedFilterList, SavedFilterPages
from console.ui.page import link
from dlq.api.dead_letters import SeesLetters
from dlq.dead_letters.masks import everybodys_masks
from dlq.models import DeadLetter
from dlq.pages.page_head import sees_letters
from dlq.search.filter import LetterFilter
from dlq.search.visibility import found


class SavedFiltersOfLetters(SavedFilters):
    word, filters = "dead_letters", LetterFilter

    def checked(self, query: QueryDict, by: Any) -> LetterFilter:
        return found(query, by)[0]

    def why_not_shared(self, query: str, by: Any) -> str:
        """What somebody may look for and others may not is not told to them by a filter."""
        filters = LetterFilter(QueryDict(query), DeadLetter.objects.none(), user=by)
        filters.masks = everybodys_masks()
        return filters.problem

    def url_of(self, saved: SavedFilter) -> str:
        """Returns for one setting its own list, where dead letters can be chosen and given back."""
        query = QueryDict(saved.query).copy()
        key = query.get("setting", "")
        if not key or "/" in key:
            return f"{link('all_dead_letters')}?{saved.query}"
        query.pop("setting")
        return f"{link('dead_letters_of', key)}?{query.urlencode()}"


saved_filters = SavedFiltersOfLetters()
pages = SavedFilterPages(
    filters=saved_filters,
    guard=sees_letters,
    route="saved-filters/",
    name="saved_filter",
    title=_("Saved filters"),
    about=_(
        "Your own and shared filters for dead letters. Each filter finds only messages that you can view."
    ),
    how=_("Set a filter in a list of dead letters, then choose “Save this filter…”."),
    section=(_("Dead letters"), "dead_letters"),
    listed=(_("All dead letters"), "all_dead_letters"),
)


def bar_of(request: HttpRequest, key: str, query: str) -> dict[str, Any]:
    """Returns what a list shows of saved filters. `query` is the filter that it shows; `key` the setting that
    it is of."""
    kept = saved_filters.filter_part(QueryDict(query))
    if key and kept:
        kept["setting"] = key
    return pages.bar(request, kept)


class SavedLetterFilters(SeesLetters, SavedFilterList):
    filters = saved_filters


class OneSavedLetterFilter(SeesLetters, OneSavedFilter):
    filters = saved_filters
