"""Who is told of trips."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import NoticeTarget
from agents.services.notice_targets import save_target


@admin.register(NoticeTarget)
class NoticeTargetAdmin(admin.ModelAdmin):
    list_display = ("channel", "address", "setting", "pool", "created_at")
    list_select_related = ("setting", "pool")
    list_filter = ("channel", "pool")
    search_fields = ("address",)
    list_per_page = 50
    fieldsets = (
        (
            None,
            {
                "fields": ("setting", "pool"),
                "description": gettext_lazy("Of one setting, or of every setting of a pool: choose one of the two."),
            },
        ),
        (
            gettext_lazy("Told through"),
            {
                "fields": ("channel", "address"),
                "description": gettext_lazy(
                    "An e-mail address, or the address of a webhook. The secret that signs a webhook's body is shown "
                    "once, when the target is saved."
                ),
            },
        ),
    )

    def save_model(self, request: HttpRequest, obj: NoticeTarget, form: Any, change: bool) -> None:
        if secret := save_target(obj):
            text = _("The secret that signs the webhook, shown now and never again: %(secret)s")
            messages.warning(request, text % {"secret": secret})
