"""/api/v1/protocols/: KMAs bring records, people look at protocols."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import generics, serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from agents.api.authentication import IsServer, ServerTokenAuthentication, server_of
from agents.api.pagination import KeysetPages
from contract.messages import MAX_BATCH_BYTES
from failures.api.intake import take
from failures.api.parsing import RecordParser
from failures.models import FailureProtocol

# Long, and of one protocol only: not in lists.
WHOLE_ONLY = ("traceback", "properties")
# Ids by which rows join; people get the names beside them.
INTERNAL = ("setting", "activation", "run", "server")


class ProtocolSerializer(serializers.ModelSerializer[FailureProtocol]):
    class Meta:
        model = FailureProtocol
        exclude = INTERNAL


class ProtocolHeadSerializer(serializers.ModelSerializer[FailureProtocol]):
    class Meta:
        model = FailureProtocol
        exclude = (*INTERNAL, *WHOLE_ONLY)


class ProtocolQuery(serializers.Serializer[Any]):
    """What a list may be narrowed to. Instants: `since` inclusive, `until` exclusive."""

    setting = serializers.CharField(source="setting_key", required=False)
    activation = serializers.UUIDField(source="activation_uuid", required=False)
    server = serializers.CharField(source="server_name", required=False)
    message_key = serializers.CharField(required=False)
    exception_type = serializers.CharField(required=False)
    fingerprint = serializers.CharField(required=False)
    outcome = serializers.CharField(required=False)
    temporary = serializers.BooleanField(required=False, allow_null=True, default=None)
    since = serializers.DateTimeField(source="occurred_at__gte", required=False)
    until = serializers.DateTimeField(source="occurred_at__lt", required=False)


class Newest(KeysetPages):
    ordering = ("-occurred_at", "-id")


class Protocols(generics.ListAPIView[FailureProtocol]):
    queryset = FailureProtocol.objects.defer(*WHOLE_ONLY)
    serializer_class = ProtocolHeadSerializer
    pagination_class = Newest
    filter_backends = ()
    parser_classes = (RecordParser,)
    body_limit = MAX_BATCH_BYTES

    def _is_intake(self) -> bool:
        return getattr(self.request, "method", "") == "POST"

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [ServerTokenAuthentication()] if self._is_intake() else super().get_authenticators()

    def get_permissions(self) -> list[Any]:
        return [IsServer()] if self._is_intake() else list(super().get_permissions())

    def get_throttles(self) -> list[BaseThrottle]:
        return [] if self._is_intake() else super().get_throttles()

    def get_queryset(self) -> QuerySet[FailureProtocol]:
        query = ProtocolQuery(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        wanted = {name: value for name, value in query.validated_data.items() if value is not None}
        return super().get_queryset().filter(**wanted)

    @extend_schema(parameters=[ProtocolQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        description="For KMAs: at most 500 records of one spool, in order, plain or gzip. 2xx only after the commit.",
        request=OpenApiTypes.OBJECT,
        responses=inline_serializer(
            "RecordReceipt",
            {
                "stored_up_to": serializers.IntegerField(),
                "new": serializers.IntegerField(),
                "known": serializers.IntegerField(),
                "refused": serializers.ListField(child=serializers.DictField()),
                "version": serializers.IntegerField(),
            },
        ),
    )
    def post(self, request: Request) -> Response:
        return Response(take(server_of(request), request.data))


class OneProtocol(generics.RetrieveAPIView[FailureProtocol]):
    queryset = FailureProtocol.objects.all()
    serializer_class = ProtocolSerializer
