"""/api/v1/audit/: who did what, or tried to, newest first."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import generics, serializers

from console.audit.models import AuditEntry
from console.audit.text import ACTIONS
from console.audit.web import AuditFilter
from console.rest.lists import ByKey


class AuditSerializer(serializers.ModelSerializer[AuditEntry]):
    by = serializers.CharField(source="by_name")
    setting = serializers.CharField(source="setting_key")

    class Meta:
        model = AuditEntry
        fields = (
            "id", "at", "by", "action", "result", "target", "operation", "setting", "letter", "scope",
            "reason",
            "counts", "detail",
        )  # fmt: skip


class AuditSchema(AutoSchema):
    """Codes of actions are declared where the operations are: all of them are known when it is asked for."""

    def get_override_parameters(self) -> list[Any]:
        return [
            OpenApiParameter("person", str, description="Exactly this user name."),
            OpenApiParameter(
                "action",
                str,
                enum=list(ACTIONS),
                description="Of several codes with one meaning the first finds all.",
            ),
            OpenApiParameter("setting", str, description="The key of a launch setting."),
            OpenApiParameter("result", str, enum=["done", "refused", "failed"]),
            OpenApiParameter(
                "operation", OpenApiTypes.UUID, description="All of one replay, or of another job."
            ),
            OpenApiParameter("letter", int, description="Of this letter, and of the replays that it was in."),
            OpenApiParameter("target", str),
            OpenApiParameter("since", OpenApiTypes.DATETIME, description="Inclusive."),
            OpenApiParameter("until", OpenApiTypes.DATETIME, description="Exclusive."),
            OpenApiParameter("span", str, enum=["1h", "1d", "7d"]),
        ]


class Audit(ByKey, generics.ListAPIView[AuditEntry]):
    """The letters of an entry with an `operation` are those of that replay."""

    queryset = AuditEntry.objects.all()
    serializer_class = AuditSerializer
    schema = AuditSchema()

    def get_queryset(self) -> QuerySet[AuditEntry]:
        wanted = AuditFilter(self.request.query_params, super().get_queryset())
        if "action" in wanted.errors:
            raise serializers.ValidationError(
                {"action": f"There is no such action; there are: {', '.join(ACTIONS)}."}
            )
        if not wanted.is_valid():
            raise serializers.ValidationError(wanted.errors)
        found: QuerySet[AuditEntry] = wanted.qs
        return found
