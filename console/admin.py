"""Tokens in the admin: who has one, when it was used, and revoking it; the secret itself is nowhere.

Lists of the admin: machine facts are shown, never edited by hand; of a table that grows without end the
newest rows are paged by number, and never counted whole.
"""

from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from console.models import ApiToken
from console.operations.operation import perform
from console.tokens.operations import RevokesToken, RevokeToken
from console.ui.page import link

# So many rows can be paged through; what lies behind is found with the filters.
MOST = 2_000


class BoundedPaginator(Paginator):
    """Reads at most MOST keys to know how many pages there are."""

    most = MOST

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


class TokenAdmin(ReadOnlyAdmin):
    revoking: ClassVar[type[RevokesToken]]
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return not self.revoking.permission.why_not(request.user, None)

    @admin.action(description=_("Revoke the selected tokens"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet) -> None:
        count = sum(perform(self.revoking, token, request.user).changed for token in queryset)
        text = ngettext("%(count)d token revoked.", "%(count)d tokens revoked.", count) % {"count": count}
        self.message_user(request, text, messages.SUCCESS)

    @admin.display(description=_("Revoke"))
    def to_revoke(self, token: Any) -> str:
        if not self.revoking().offered(token):
            return ""
        return format_html(
            '<a href="{}">{}…</a>', link(f"{self.revoking.on.name}_revoke", token.pk), self.revoking.label
        )


@admin.register(ApiToken)
class ApiTokenAdmin(TokenAdmin):
    revoking = RevokeToken
    list_display = ("user", "name", "created_at", "last_used_at", "revoked_at", "to_revoke")
    list_select_related = ("user",)
