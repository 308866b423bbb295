"""Pages of this app and its routes under /api/v1/."""

from django.urls import path

from console.audit import web as audit
from console.audit.web import Audit
from console.operations.web import add_operations
from console.tokens.operations import ApiTokens, RevokeToken
from console.ui.page import add_page

urlpatterns = [
    path("audit/", Audit.as_view(), name="audit"),
    path("tokens/", ApiTokens.as_view({"get": "list"}), name="tokens"),
    path("tokens/<int:pk>/revoke/", ApiTokens.as_view({"post": "revoke"}), name="token-revoke"),
]


def register() -> None:
    add_page("audit/", audit.audit_page, "audit")
    add_operations(RevokeToken)
