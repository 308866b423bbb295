"""Tokens in the admin: who has one, when it was used, and revoking it. The secret itself is nowhere."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from console.lists.admin import ReadOnlyAdmin
from console.tokens.models import ApiToken


class TokenAdmin(ReadOnlyAdmin):
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        meta = self.model._meta
        return request.user.has_perm(f"{meta.app_label}.change_{meta.model_name}")

    @admin.action(description=_("Revoke the selected tokens"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet) -> None:
        count = queryset.filter(revoked_at=None).update(revoked_at=timezone.now())
        text = ngettext("%(count)d token revoked.", "%(count)d tokens revoked.", count) % {"count": count}
        self.message_user(request, text, messages.SUCCESS)


@admin.register(ApiToken)
class ApiTokenAdmin(TokenAdmin):
    list_display = ("user", "name", "created_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
