"""Tokens in the admin: who has one, when it was used, and revoking it. The secret itself is nowhere."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from console.lists.admin import ReadOnlyAdmin
from console.models import ApiToken
from console.operations.operation import perform
from console.tokens.operations import RevokesToken, RevokeToken
from console.ui.page import link


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
