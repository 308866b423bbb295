"""/api/v1/foreign-queues/: dead-letter queues of others that are followed. Looking needs the right to see
every dead letter, naming and forgetting the right to manage foreign queues."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from console.audit.refusals import Audited
from console.operations.operation import perform
from console.operations.rest import as_problems, performing
from console.rest.lists import NoFilters
from console.rest.serializers import ReasonCode, ReasonParams, ReasonText
from dlq.models import LetterQueue
from dlq.queues.operations import FOREIGN_QUEUES, LONGEST_NAME, LONGEST_NOTE, FollowQueue, UnfollowQueue
from dlq.search.visibility import SEE_ALL


class ForeignSerializer(serializers.ModelSerializer[LetterQueue]):
    """`broker` and `index`: dead letters on the broker and in the index at `counted_at`; null: not counted
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


class ForeignQueues(Audited, generics.ListAPIView[LetterQueue]):
    """Lists other dead-letter queues: queues of no setting of this site."""

    queryset = FOREIGN_QUEUES.rows()
    serializer_class = ForeignSerializer
    pagination_class = None
    filter_backends = (NoFilters,)
    action_permissions = {"get": (SEE_ALL,), "post": (SEE_ALL,)}
    audit_action = FollowQueue.code

    @extend_schema(request=ForeignAsk, responses={201: ForeignSerializer}, extensions=performing(FollowQueue))
    def post(self, request: Request) -> Response:
        """Adds a queue to the index."""
        asked = ForeignAsk(data=request.data)
        asked.is_valid(raise_exception=True)
        queue, note = asked.validated_data["queue"], asked.validated_data["note"]
        with as_problems("queue"):
            done = perform(FollowQueue, LetterQueue(queue=queue), request.user, reason=note)
        return Response(ForeignSerializer(done.made).data, status=status.HTTP_201_CREATED)


class ForeignQueue(Audited, generics.RetrieveAPIView[LetterQueue]):
    """A dead-letter queue of no setting of this site."""

    queryset = FOREIGN_QUEUES.rows()
    serializer_class = ForeignSerializer
    action_permissions = {"get": (SEE_ALL,), "delete": (SEE_ALL,)}
    audit_action = UnfollowQueue.code

    @extend_schema(
        responses={204: None}, description=UnfollowQueue.__doc__, extensions=performing(UnfollowQueue)
    )
    def delete(self, request: Request, pk: int) -> Response:
        with as_problems("queue"):
            perform(UnfollowQueue, self.get_object(), request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)
