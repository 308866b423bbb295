"""/api/v1/settings/<key>/waiting/: what waits for a setting; /api/v1/waiting-actions/: what is done with
it."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.audit.log import LONGEST_REASON
from console.audit.refusals import Audited
from console.broker import management
from console.operations.operation import check_allowed, perform
from console.operations.rest import as_problems, performing, performing_by
from console.rest.lists import ByKey, asked_in
from console.rest.serializers import QuerySerializer
from contract.messages import BlockedMessage
from dlq.api.subscription_serializers import (
    WaitingActionSerializer,
    WaitingAskSerializer,
    WaitingItemSerializer,
    WaitingLookSerializer,
    page_data,
)
from dlq.dead_letters.masks import masks_for
from dlq.models.message_action import WaitingAction, WaitingItem, WaitingPart, WaitingState
from dlq.subscriptions.operations import (
    BY_KIND,
    MESSAGE_ACTIONS,
    MESSAGES,
    CancelAction,
    GiveUpBlocked,
    blocking_of,
    mark_of,
)
from dlq.subscriptions.queries import PARTS, ask_broker, bodies_of, heads_for, message_page
from dlq.subscriptions.requests import Selection

# Asked in the view: a pool may grant what no permission does.
ANYBODY: dict[str, tuple[str, ...]] = {"get": (), "post": (), "delete": ()}


class LookQuery(serializers.Serializer[Any]):
    part = serializers.ChoiceField(PARTS, default=WaitingPart.WAITING.value)
    start = serializers.IntegerField(default=0, min_value=0, max_value=100_000)


class Waiting(Audited, APIView):
    """Lists waiting messages as the broker reports them, 50 per page, and acts on them."""

    action_permissions = ANYBODY

    @extend_schema(parameters=[LookQuery], responses=WaitingLookSerializer)
    def get(self, request: Request, key: str) -> Response:
        """One part of the waiting messages. `told`: number of messages that the broker lists (null: too
        many). `next`: start of the next page."""
        wanted = asked_in(request, LookQuery)
        setting, masks = get_object_or_404(MESSAGES.rows_for(request.user), key=key), masks_for(request.user)
        told_by = ask_broker(management(), setting, wanted["part"], wanted["start"])
        found = message_page(told_by, setting, masks, bodies_of(told_by, setting, heads_for(masks)))
        return Response(WaitingLookSerializer(page_data(found)).data)

    @extend_schema(
        request=WaitingAskSerializer,
        responses={201: WaitingActionSerializer},
        extensions=performing_by({each.code: {"action": str(kind)} for kind, each in BY_KIND.items()}),
    )
    def post(self, request: Request, key: str) -> Response:
        """Queues the action for a worker. 409 with the reason if it is not possible now."""
        ask = WaitingAskSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        said = ask.validated_data
        operation = BY_KIND[said["action"]]
        self.audit_action = operation.code
        setting = get_object_or_404(MESSAGES.rows_for(request.user), key=key)
        chosen = Selection(said["part"], said.get("messages"), said.get("most"))
        with as_problems("messages"):
            done = perform(operation, setting, request.user, chosen=chosen, reason=said["reason"])
        return Response(WaitingActionSerializer(done.made).data, status=status.HTTP_201_CREATED)


# -- actions -------------------------------------------------------------------------------------------------


class ActionQuery(QuerySerializer):
    setting = serializers.CharField(required=False, source="setting_key")
    state = serializers.ChoiceField(WaitingState.choices, required=False)


class WaitingActions(ByKey, generics.ListAPIView[WaitingAction]):
    queryset = WaitingAction.objects.all()
    serializer_class = WaitingActionSerializer
    ordering = ("-created_at", "-id")
    action_permissions = ANYBODY

    def get_queryset(self) -> QuerySet[WaitingAction]:
        return MESSAGE_ACTIONS.rows_for(self.request.user).filter(**asked_in(self.request, ActionQuery))

    @extend_schema(parameters=[ActionQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class OneWaitingAction(generics.RetrieveAPIView[WaitingAction]):
    queryset = WaitingAction.objects.all()
    serializer_class = WaitingActionSerializer
    action_permissions = ANYBODY

    def get_queryset(self) -> QuerySet[WaitingAction]:
        return MESSAGE_ACTIONS.rows_for(self.request.user)


class WaitingItems(ByKey, generics.ListAPIView[WaitingItem]):
    """The messages of one action with their outcomes."""

    queryset = WaitingItem.objects.all()
    serializer_class = WaitingItemSerializer
    ordering = ("id",)
    action_permissions = ANYBODY

    def get_queryset(self) -> QuerySet[WaitingItem]:
        action = get_object_or_404(MESSAGE_ACTIONS.rows_for(self.request.user), pk=self.kwargs["pk"])
        return super().get_queryset().filter(action=action)


class StopWaiting(Audited, APIView):
    action_permissions = ANYBODY
    audit_action = CancelAction.code

    @extend_schema(
        request=None,
        responses={200: WaitingActionSerializer},
        description=CancelAction.__doc__,
        extensions=performing(CancelAction),
    )
    def post(self, request: Request, pk: Any) -> Response:
        action = get_object_or_404(MESSAGE_ACTIONS.rows_for(request.user), pk=pk)
        with as_problems("action"):
            perform(CancelAction, action, request.user)
        action.refresh_from_db()
        return Response(WaitingActionSerializer(action).data)


# -- /api/v1/settings/<key>/blocking/ ------------------------------------------------------------------------


class BlockingSerializer(serializers.Serializer[Any]):
    message_key = serializers.CharField(source="blocked.key")
    attempt = serializers.IntegerField(source="blocked.attempt", help_text="Number of the latest attempt.")
    retry_seconds = serializers.FloatField(
        source="blocked.retry_seconds",
        allow_null=True,
        help_text="Seconds until the next attempt; null: retried only on request.",
    )
    server = serializers.CharField()
    told_at = serializers.DateTimeField(allow_null=True)


class BlockingLookSerializer(serializers.Serializer[Any]):
    blocking = BlockingSerializer(allow_null=True)


class GiveUpSerializer(serializers.Serializer[Any]):
    """The blocking message and attempt as you saw them. If they differ now, the request is refused."""

    message_key = serializers.CharField(max_length=2000, trim_whitespace=False)
    attempt = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    reason = serializers.CharField(max_length=LONGEST_REASON)


class BlockingMessage(Audited, APIView):
    action_permissions = ANYBODY
    audit_action = GiveUpBlocked.code

    @extend_schema(responses=BlockingLookSerializer)
    def get(self, request: Request, key: str) -> Response:
        """The blocking message of the last heartbeat; null if nothing blocks."""
        setting = get_object_or_404(MESSAGES.rows_for(request.user), key=key)
        return Response(BlockingLookSerializer({"blocking": blocking_of(setting)}).data)

    @extend_schema(request=GiveUpSerializer, responses={202: None}, extensions=performing(GiveUpBlocked))
    def post(self, request: Request, key: str) -> Response:
        """Moves the blocking message to the dead-letter queue. 202: the server does it with its next
        heartbeat, unless it retries the message before. 409 if it no longer blocks."""
        setting = get_object_or_404(MESSAGES.rows_for(request.user), key=key)
        with as_problems("message_key"):
            check_allowed(GiveUpBlocked, setting, request.user)
            form = GiveUpSerializer(data=request.data)
            form.is_valid(raise_exception=True)
            said = form.validated_data
            seen = mark_of(BlockedMessage(said["message_key"], said["attempt"]))
            perform(GiveUpBlocked, setting, request.user, seen=seen, reason=said["reason"])
        return Response(status=status.HTTP_202_ACCEPTED)
