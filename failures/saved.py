"""Filters of protocols under a name: one's own, and those that others share."""

from datetime import datetime
from typing import Any

import structlog
from django.http import QueryDict

from agents.services.saved import FilterRefused, SavedFilters, nothing_to_save
from failures.finding.filters import ProtocolFilter, filter_part
from failures.models import SavedView

log = structlog.get_logger(__name__)


class _OfProtocols(SavedFilters[SavedView]):
    def filter_part(self, query: str, by: Any) -> str:
        kept = filter_part(QueryDict(query))
        if not kept:
            raise nothing_to_save()
        if problem := ProtocolFilter(kept).problem:
            raise FilterRefused("bad_filter", problem)
        return kept.urlencode()

    def told(self, action: str, saved: SavedView, now: datetime) -> None:
        """Not what it looks for: that may be personal."""
        log.info(f"view {action}d", view=saved.name, shared=saved.shared, by=saved.owner.get_username())


views = _OfProtocols(SavedView)
