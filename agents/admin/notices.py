"""Who is told of trips."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import NoticeTarget
from agents.notices.operations import DeleteTarget, save_target
from console.audit.forms import RecordedAdmin
from console.operations.operation import Act
from console.ui.text import masked


@admin.register(NoticeTarget)
class NoticeTargetAdmin(RecordedAdmin, admin.ModelAdmin):
    list_display = ("channel", "seen_address", "setting", "pool", "created_at")
    list_select_related = ("setting", "pool")
    list_filter = ("channel", "pool")
    list_per_page = 50
    fieldsets = (
        (
            None,
            {
                "fields": ("setting", "pool"),
                "description": gettext_lazy(
                    "Of one setting, or of every setting of a pool: choose one of the two."
                ),
            },
        ),
        (
            gettext_lazy("Told through"),
            {
                "fields": ("channel", "address"),
                "description": gettext_lazy(
                    "An e-mail address, or the address of a webhook. The secret that signs a webhook's body "
                    "is shown "
                    "once, when the target is saved."
                ),
            },
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: NoticeTarget | None = None) -> Any:
        """Who may only look sees of a webhook no more than its host."""
        if obj is None or self.has_change_permission(request, obj):
            return self.fieldsets
        owner, (title, rest) = self.fieldsets
        return owner, (title, {**rest, "fields": ("channel", "seen_address")})

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Nobody finds out by searching what is not shown."""
        return ("address",) if request.user.has_perm("agents.change_noticetarget") else ()

    def get_readonly_fields(self, request: HttpRequest, obj: NoticeTarget | None = None) -> tuple[str, ...]:
        return () if obj is None or self.has_change_permission(request, obj) else ("seen_address",)

    @admin.display(description=gettext_lazy("address"))
    def seen_address(self, obj: NoticeTarget) -> str:
        return masked(obj.address)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """By the operation, which leaves the entry."""
        deletion = DeleteTarget()
        deletion.run(obj, Act(deletion, obj, request.user, timezone.now(), {}))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[NoticeTarget]) -> None:
        for target in queryset:
            self.delete_model(request, target)

    def save_model(self, request: HttpRequest, obj: NoticeTarget, form: Any, change: bool) -> None:
        if secret := save_target(obj):
            text = _("The secret that signs the webhook, shown now and never again: %(secret)s")
            messages.warning(request, text % {"secret": secret})
