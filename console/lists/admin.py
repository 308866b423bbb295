"""Lists of the admin: machine facts are shown, never edited by hand; of a table that grows without end the
newest rows are paged by number, and never counted whole."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

# So many rows can be paged through; what lies behind is found with the filters.
MOST = 2_000


class BoundedPaginator(Paginator):
    """Reads at most MOST keys to know how many pages there are."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return len(rows.values_list("pk", flat=True)[:MOST])


class SinceFilter(admin.SimpleListFilter):
    """`date_hierarchy` would read the whole table for its links."""

    title = _("time")
    parameter_name = "since"
    instant = "at"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("1", _("last hour")), ("24", _("last 24 hours")), ("168", _("last 7 days"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        hours = self.value()
        if hours not in ("1", "24", "168"):
            return queryset
        return queryset.filter(**{f"{self.instant}__gte": timezone.now() - timedelta(hours=int(hours))})


class StartedFilter(SinceFilter):
    instant = "started_at"


class ReadOnlyAdmin(admin.ModelAdmin):
    """A bounded list and a page to look at."""

    list_per_page = 50
    list_max_show_all = 200
    show_full_result_count = False
    actions: Any = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
