"""/api/v1/settings/<key>/waiting/: what waits for a setting; /api/v1/waiting-actions/: what is done with
it."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.api.queues import BrokerAway
from agents.models import LaunchSetting
from agents.services.rights import may_anywhere, settings_for
from broker.errors import BrokerError
from console.audit.refusals import Audited
from console.broker import management
from console.rest.errors import ApiProblem, Conflict, Forbidden
from console.rest.pagination import KeysetPages
from dlq import rights
from dlq.api.waiting_bodies import (
    WaitingActionSerializer,
    WaitingAskSerializer,
    WaitingItemSerializer,
    WaitingLookSerializer,
    told,
)
from dlq.masks import masks_for
from dlq.models.waiting import WaitingAction, WaitingItem, WaitingPart, WaitingState
from dlq.waiting.asking import WaitingRefused
from dlq.waiting.bodies import heads_for
from dlq.waiting.doing import NotAllowed, begin, end, may_look
from dlq.waiting.looking import PARTS, ask_broker, bodies_of, look

SEE_ALL = "dlq.view_waitingaction"
# Asked in the view: a pool may grant what no permission does.
ANYBODY: dict[str, tuple[str, ...]] = {"get": (), "post": ()}
# What is asked in a way that no state of things would allow.
WRONGLY_ASKED = ("impossible", "no_reason", "selection", "no_queue")


class LookQuery(serializers.Serializer[Any]):
    part = serializers.ChoiceField(PARTS, default=WaitingPart.WAITING.value)
    start = serializers.IntegerField(default=0, min_value=0, max_value=100_000)


class Waiting(Audited, APIView):
    """What the broker tells of messages before they are handled, 50 at a time, and acting on them."""

    action_permissions = ANYBODY

    @extend_schema(parameters=[LookQuery], responses=WaitingLookSerializer)
    def get(self, request: Request, key: str) -> Response:
        """One part of them: `told` says of how many the broker tells at all (null: they are too many), `next`
        where the next page begins."""
        query = LookQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        setting, masks = setting_for(request.user, key), masks_for(request.user)
        try:
            broker = ask_broker(
                management(), setting, query.validated_data["part"], query.validated_data["start"]
            )
            bodies = bodies_of(broker, setting, heads_for(masks))
        except BrokerError as error:
            raise away(key, error) from error
        return Response(WaitingLookSerializer(told(look(broker, setting, masks, bodies))).data)

    @extend_schema(request=WaitingAskSerializer, responses={201: WaitingActionSerializer})
    def post(self, request: Request, key: str) -> Response:
        """Writes down what is to be done; a worker does it. 409 with the reason where it cannot be done
        now."""
        ask = WaitingAskSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        said = ask.validated_data
        self.audit_action = f"waiting_{said['action']}"
        setting = setting_for(request.user, key)
        try:
            action = begin(
                setting,
                said["action"],
                part=said["part"],
                numbers=said.get("messages"),
                by=request.user,
                now=timezone.now(),
                reason=said["reason"],
                most=said.get("most"),
            )
        except WaitingRefused as refused:
            raise problem_of(refused, "messages") from refused
        except BrokerError as error:
            raise away(key, error) from error
        return Response(WaitingActionSerializer(action).data, status=status.HTTP_201_CREATED)


def setting_for(user: Any, key: str) -> LaunchSetting:
    """403 for who may look at none; those of others are not there."""
    if not (may_anywhere(user, rights.SEE) or may_anywhere(user, rights.WAITING)):
        raise PermissionDenied
    setting = get_object_or_404(LaunchSetting.objects.select_related("destination", "pool"), key=key)
    if not setting.takes_messages or not may_look(user, setting):
        raise Http404
    return setting


def problem_of(refused: WaitingRefused, where: str) -> ApiProblem:
    """As the interface says it. The attempt is in the audit already."""
    if isinstance(refused, NotAllowed):
        return Forbidden(refused.reason, where="setting", what_to_do=refused.what_to_do)
    kind = ApiProblem if refused.code in WRONGLY_ASKED else Conflict
    return kind(refused.reason, code=refused.code, where=where, what_to_do=refused.what_to_do, **refused.more)


def away(key: str, error: BrokerError) -> BrokerAway:
    return BrokerAway(
        f"The broker did not answer: {error}", where=key, what_to_do="Try again; ./ma doctor looks closer."
    )


# -- actions -------------------------------------------------------------------------------------------------


def actions_for(user: Any) -> QuerySet[WaitingAction]:
    """Those that this person may see. Raises PermissionDenied where there is nothing to see at all."""
    actions = WaitingAction.objects.select_related("setting__pool")
    if user.has_perm(SEE_ALL):
        return actions
    if not (may_anywhere(user, rights.SEE) or may_anywhere(user, rights.WAITING)):
        raise PermissionDenied
    mine = settings_for(user, rights.SEE) | settings_for(user, rights.WAITING)
    return actions.filter(setting__in=mine)


class NewestActions(KeysetPages):
    ordering = ("-created_at", "-id")


class ActionQuery(serializers.Serializer[Any]):
    setting = serializers.CharField(required=False, source="setting_key")
    state = serializers.ChoiceField(WaitingState.choices, required=False)


class WaitingActions(generics.ListAPIView[WaitingAction]):
    queryset = WaitingAction.objects.all()
    serializer_class = WaitingActionSerializer
    pagination_class = NewestActions
    filter_backends = ()
    action_permissions = ANYBODY

    def get_queryset(self) -> QuerySet[WaitingAction]:
        query = ActionQuery(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        return actions_for(self.request.user).filter(**query.validated_data)

    @extend_schema(parameters=[ActionQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class OneWaitingAction(generics.RetrieveAPIView[WaitingAction]):
    queryset = WaitingAction.objects.all()
    serializer_class = WaitingActionSerializer
    action_permissions = ANYBODY

    def get_queryset(self) -> QuerySet[WaitingAction]:
        return actions_for(self.request.user)


class OldestItems(KeysetPages):
    ordering = "id"


class WaitingItems(generics.ListAPIView[WaitingItem]):
    """The messages of one action, each with what became of it."""

    queryset = WaitingItem.objects.all()
    serializer_class = WaitingItemSerializer
    pagination_class = OldestItems
    filter_backends = ()
    action_permissions = ANYBODY

    def get_queryset(self) -> QuerySet[WaitingItem]:
        action = get_object_or_404(actions_for(self.request.user), pk=self.kwargs["pk"])
        return super().get_queryset().filter(action=action)


class StopWaiting(Audited, APIView):
    """It ends after the messages at hand; what is done stays done."""

    action_permissions = ANYBODY
    audit_action = "waiting_stop"

    @extend_schema(request=None, responses={200: WaitingActionSerializer})
    def post(self, request: Request, pk: Any) -> Response:
        action = get_object_or_404(actions_for(request.user), pk=pk)
        try:
            end(action, by=request.user, now=timezone.now())
        except WaitingRefused as refused:
            raise problem_of(refused, "action") from refused
        action.refresh_from_db()
        return Response(WaitingActionSerializer(action).data)
