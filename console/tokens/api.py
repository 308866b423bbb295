"""/api/v1/tokens/: the tokens of people. The secrets are nowhere."""

from typing import Any

from rest_framework import mixins, serializers
from rest_framework.viewsets import GenericViewSet

from console.operations.rest import OperationsMixin
from console.tokens.models import ApiToken
from console.tokens.operations import RevokeToken


class ApiTokenSerializer(serializers.ModelSerializer[ApiToken]):
    user = serializers.CharField(source="user.username", read_only=True)

    class Meta:
        model = ApiToken
        fields = ("id", "user", "name", "created_at", "last_used_at", "revoked_at")
        read_only_fields = fields


class ApiTokens(OperationsMixin, mixins.ListModelMixin, GenericViewSet[Any]):
    queryset = ApiToken.objects.select_related("user").order_by("pk")
    serializer_class = ApiTokenSerializer
    operations = {RevokeToken: None}
