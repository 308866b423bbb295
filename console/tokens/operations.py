"""Describes what people do with a token: revoke it, also over REST. The secrets are nowhere."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from rest_framework import mixins, serializers
from rest_framework.viewsets import GenericViewSet

from console.audit import text as words
from console.models import ApiToken
from console.operations.operation import UNCHANGED, Act, Done, ModelPermission, Operation, Question, Resource
from console.operations.rest import OperationsMixin

words.DETAILS.declare({"user": _("user")})


class RevokesToken(Operation[Any]):
    """Revokes tokens of `on`, which have `revoked_at`."""

    label, icon, tone = _("Revoke"), "trash", "danger"

    def offered(self, token: Any) -> bool:
        return token.revoked_at is None

    def question(self, token: Any, by: Any, **named: Any) -> Question:
        title = gettext("Revoke token %(token)s?") % {"token": token}
        return Question(
            title, [_("Requests with this token are rejected immediately. This cannot be undone.")]
        )

    @transaction.atomic
    def run(self, token: Any, act: Act, **inputs: Any) -> Done:
        token = self.on.rows().select_for_update(of=("self",)).get(pk=token.pk)
        if token.revoked_at is not None:
            return Done(UNCHANGED)
        token.revoked_at = act.now
        token.save(update_fields=["revoked_at"])
        act.record()
        return Done(gettext("Token revoked: %(token)s") % {"token": token}, token)


class RevokeToken(RevokesToken):
    """Revokes the token: requests with it are refused."""

    code = "token.revoke"
    on = Resource(
        name="token",
        rows=lambda: ApiToken.objects.select_related("user"),
        key="pk",
        route="tokens/<int:pk>/",
        view="console.view_apitoken",
        list_page="console_apitoken_changelist",
        page="console_apitoken_change",
        title=_("API tokens"),
    )
    permission = ModelPermission("console.change_apitoken", _("Can change API token"))

    def detail(self, token: ApiToken) -> dict[str, Any]:
        return {"user": token.user.get_username(), "name": token.name}


class ApiTokenSerializer(serializers.ModelSerializer[ApiToken]):
    user = serializers.CharField(source="user.username", read_only=True)

    class Meta:
        model = ApiToken
        fields = ("id", "user", "name", "created_at", "last_used_at", "revoked_at")
        read_only_fields = fields


class ApiTokens(OperationsMixin, mixins.ListModelMixin, GenericViewSet[Any]):
    """API tokens; secrets are never returned."""

    queryset = ApiToken.objects.select_related("user").order_by("pk")
    serializer_class = ApiTokenSerializer
    operations = {RevokeToken: None}
