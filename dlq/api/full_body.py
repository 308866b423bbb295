"""/api/v1/dead-letters/ID/whole/: a dead letter of which the index keeps only the head, looked for in its
queue."""

from typing import Any

from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.provisioning.queue_counts import message_count
from console.audit.refusals import Audited
from console.operations.operation import Done, Operation, perform
from console.operations.rest import as_problems, performing
from console.rest.serializers import ReasonCode, ReasonParams, ReasonText
from dlq.api.subscriptions import ANYBODY
from dlq.full_body.operations import BODIES, CancelFetch, DownloadBody, FetchBody, cost_of, latest
from dlq.models import OPEN_FETCHES, DeadLetter, FetchState, WholeFetch
from dlq.pages.dead_letters.full_body import body_file


class CostSerializer(serializers.Serializer[Any]):
    """Upper bounds, estimated from the newest dead letters of the queue."""

    letters = serializers.IntegerField()
    bytes = serializers.IntegerField()
    seconds = serializers.IntegerField()


class FetchSerializer(serializers.ModelSerializer[WholeFetch]):
    by = serializers.CharField(source="by_name")
    problem = ReasonText()
    problem_code = ReasonCode("problem")
    problem_params = ReasonParams("problem")

    class Meta:
        model = WholeFetch
        fields = (
            "id",
            "state",
            "by",
            "at",
            "ended_at",
            "letters",
            "seen",
            "tries",
            "problem",
            "problem_code",
            "problem_params",
        )


class WholeSerializer(serializers.Serializer[Any]):
    """`fetch`: the last fetch; null: none. `cost`: cost of a fetch now; null: unknown, or a fetch is done or
    in progress."""

    truncated = serializers.BooleanField()
    fetch = FetchSerializer(allow_null=True)
    cost = CostSerializer(allow_null=True)


class WholeLetter(Audited, APIView):
    action_permissions = ANYBODY

    @extend_schema(responses=WholeSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Returns the latest fetch of the whole body, or the cost of a fetch."""
        letter = get_object_or_404(BODIES.rows_for(request.user), pk=pk)
        fetch = latest(letter)
        going = fetch is not None and fetch.state in (*OPEN_FETCHES, FetchState.DONE)
        count = None if going or not letter.truncated else message_count(letter.queue)
        cost = cost_of(letter, count) if count is not None else None
        told = {"truncated": letter.truncated, "fetch": fetch, "cost": cost}
        return Response(WholeSerializer(told).data)

    @extend_schema(
        request=None,
        responses={202: FetchSerializer},
        description=FetchBody.__doc__,
        extensions=performing(FetchBody),
    )
    def post(self, request: Request, pk: int) -> Response:
        fetch = self._done(FetchBody, pk).made
        return Response(FetchSerializer(fetch).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses={204: None}, description=CancelFetch.__doc__, extensions=performing(CancelFetch))
    def delete(self, request: Request, pk: int) -> Response:
        self._done(CancelFetch, pk)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _done(self, operation: type[Operation[DeadLetter]], pk: int) -> Done:
        self.audit_action = operation.code
        letter = get_object_or_404(BODIES.rows_for(self.request.user), pk=pk)
        with as_problems("letter"):
            return perform(operation, letter, self.request.user)


class WholeBody(APIView):
    action_permissions = ANYBODY

    @extend_schema(
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
        extensions=performing(DownloadBody),
    )
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        letter = get_object_or_404(BODIES.rows_for(request.user), pk=pk)
        return body_file(letter, perform(DownloadBody, letter, request.user).made)
