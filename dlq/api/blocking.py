"""/api/v1/settings/<key>/blocking/: the message that blocks an ordered subscription, and giving it up."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.audit.log import LONGEST_REASON
from console.audit.refusals import Audited
from console.operations.operation import check_allowed, perform
from console.operations.rest import as_problems
from contract.messages import BlockedMessage
from dlq.api.waiting import ANYBODY
from dlq.waiting.blocking import blocking_of, mark_of
from dlq.waiting.operations import MESSAGES, GiveUpBlocked


class BlockingSerializer(serializers.Serializer[Any]):
    message_key = serializers.CharField(source="blocked.key")
    attempt = serializers.IntegerField(source="blocked.attempt", help_text="The last one that was made.")
    retry_seconds = serializers.FloatField(
        source="blocked.retry_seconds",
        allow_null=True,
        help_text="Between attempts; null: when a person asks.",
    )
    server = serializers.CharField()
    told_at = serializers.DateTimeField(allow_null=True)


class BlockingLookSerializer(serializers.Serializer[Any]):
    blocking = BlockingSerializer(allow_null=True)


class GiveUpSerializer(serializers.Serializer[Any]):
    """The message and the attempt that were seen: another one is not meant."""

    message_key = serializers.CharField(max_length=2000, trim_whitespace=False)
    attempt = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    reason = serializers.CharField(max_length=LONGEST_REASON)


class BlockingMessage(Audited, APIView):
    action_permissions = ANYBODY
    audit_action = GiveUpBlocked.code

    @extend_schema(responses=BlockingLookSerializer)
    def get(self, request: Request, key: str) -> Response:
        """As its server told with its last heartbeat; null where nothing blocks."""
        setting = get_object_or_404(MESSAGES.rows_for(request.user), key=key)
        return Response(BlockingLookSerializer({"blocking": blocking_of(setting)}).data)

    @extend_schema(request=GiveUpSerializer, responses={202: None})
    def post(self, request: Request, key: str) -> Response:
        """Wants it among the dead letters: 202, its server does it with its next heartbeat, unless it tries
        it again before. 409 where it does not block any more."""
        setting = get_object_or_404(MESSAGES.rows_for(request.user), key=key)
        with as_problems("message_key"):
            check_allowed(GiveUpBlocked, setting, request.user)
            form = GiveUpSerializer(data=request.data)
            form.is_valid(raise_exception=True)
            said = form.validated_data
            seen = mark_of(BlockedMessage(said["message_key"], said["attempt"]))
            perform(GiveUpBlocked, setting, request.user, seen=seen, reason=said["reason"])
        return Response(status=status.HTTP_202_ACCEPTED)
