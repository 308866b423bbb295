"""/api/v1/foreign-queues/: dead-letter queues of others that are followed. Looking needs the right to see
every letter, naming and forgetting the right to manage foreign queues."""

from collections.abc import Callable
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from broker.errors import BrokerError
from console.audit.log import attempt
from console.audit.refusals import Audited
from console.broker import management
from console.rest.errors import ApiProblem, Conflict
from console.rest.serializers import ReasonCode, ReasonParams, ReasonText
from dlq.foreign.naming import LONGEST_NAME, LONGEST_NOTE, MANAGE, foreign_queues, forget_queue, name_queue
from dlq.foreign.refusal import ForeignRefused
from dlq.letters_for import SEE_ALL
from dlq.models import LetterQueue

CONFLICTS = ("exists", "own", "internal", "subscription", "too_many")


class BrokerAway(ApiProblem):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_code = "broker_away"


class ForeignSerializer(serializers.ModelSerializer[LetterQueue]):
    """`broker` and `index` count its letters there and here, both of the moment `counted_at`; null: not
    yet."""

    problem = ReasonText()
    problem_code = ReasonCode("problem")
    problem_params = ReasonParams("problem")
    broker = serializers.IntegerField(source="broker_count", allow_null=True)
    index = serializers.IntegerField(source="indexed", allow_null=True)
    added_by = serializers.CharField(source="added_by.username", default=None)

    class Meta:
        model = LetterQueue
        fields = (
            "id", "queue", "address", "note", "added_by", "added_at", "broker", "index", "counted_at",
            "walked_at",
            "problem", "problem_code", "problem_params",
        )  # fmt: skip


class ForeignAsk(serializers.Serializer[Any]):
    queue = serializers.CharField(max_length=LONGEST_NAME)
    note = serializers.CharField(max_length=LONGEST_NOTE, required=False, default="", allow_blank=True)


def answered(work: Callable[[], LetterQueue | None]) -> LetterQueue | None:
    try:
        return work()
    except ForeignRefused as refused:
        kind = Conflict if refused.code in CONFLICTS else ApiProblem
        raise kind(
            refused.reason, code=refused.code, where="queue", what_to_do=refused.what_to_do
        ) from refused
    except BrokerError as error:
        raise BrokerAway(str(error), what_to_do="Try again later; nothing was changed.") from error


class ForeignQueues(Audited, generics.ListAPIView[LetterQueue]):
    queryset = foreign_queues().select_related("added_by")
    serializer_class = ForeignSerializer
    pagination_class = None
    filter_backends = ()
    action_permissions = {"get": (SEE_ALL,), "post": (SEE_ALL, MANAGE)}
    audit_action = "foreign_named"

    @extend_schema(request=ForeignAsk, responses={201: ForeignSerializer})
    def post(self, request: Request) -> Response:
        asked = ForeignAsk(data=request.data)
        asked.is_valid(raise_exception=True)
        queue, note = asked.validated_data["queue"], asked.validated_data["note"]

        def work() -> LetterQueue:
            with attempt("foreign_named", by=request.user, target=f"queue:{queue}"):
                return name_queue(queue, note, by=request.user, now=timezone.now(), asked=management())

        return Response(ForeignSerializer(answered(work)).data, status=status.HTTP_201_CREATED)


class ForeignQueue(Audited, generics.RetrieveAPIView[LetterQueue]):
    queryset = foreign_queues().select_related("added_by")
    serializer_class = ForeignSerializer
    action_permissions = {"get": (SEE_ALL,), "delete": (SEE_ALL, MANAGE)}
    audit_action = "foreign_forgotten"

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Its letters stay at the broker."""
        row = get_object_or_404(foreign_queues(), pk=pk)

        def work() -> None:
            with attempt("foreign_forgotten", by=request.user, target=f"queue:{row.queue}"):
                forget_queue(row.queue, by=request.user, now=timezone.now())

        answered(work)
        return Response(status=status.HTTP_204_NO_CONTENT)
