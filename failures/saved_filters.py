"""Filters of protocols under a name."""

from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from console.models import SavedFilter
from console.saved_filters.operations import SavedFilters
from console.saved_filters.web import OneSavedFilter, SavedFilterList, SavedFilterPages
from console.ui.page import link, needs
from failures.protocols.filter import ProtocolFilter

VIEW = "failures.view_failureprotocol"
MAY = dict.fromkeys(("get", "post", "patch", "delete"), (VIEW,))


class SavedFiltersOfProtocols(SavedFilters):
    word, filters = "protocols", ProtocolFilter

    def checked(self, query: QueryDict, by: Any) -> ProtocolFilter:
        return ProtocolFilter(query, user=by)

    def why_not_shared(self, query: str, by: Any) -> str:
        """What somebody may look for and others may not is not told to them by a filter."""
        return ProtocolFilter(QueryDict(query)).problem

    def url_of(self, saved: SavedFilter) -> str:
        return f"{link('protocols')}?{saved.query}"


saved_filters = SavedFiltersOfProtocols()
pages = SavedFilterPages(
    filters=saved_filters,
    guard=needs(VIEW),
    route="protocols/saved/",
    name="saved_view",
    title=_("Saved failure filters"),
    about=_("Your own and shared filters for failures."),
    how=_("Set a filter in the failure list, then choose “Save this filter…”."),
    section=(_("Failures"), "protocols"),
    listed=(_("Failures"), "protocols"),
)


class SavedProtocolFilters(SavedFilterList):
    filters, action_permissions = saved_filters, MAY


class OneSavedProtocolFilter(OneSavedFilter):
    filters, action_permissions = saved_filters, MAY
