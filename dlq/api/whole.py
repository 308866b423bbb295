"""/api/v1/dead-letters/ID/whole/: a letter of which the index keeps only the head, looked for in its
queue."""

from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.services.queue_counts import message_count
from console.audit.log import attempt
from console.audit.refusals import Audited
from console.rest.errors import ApiProblem, Conflict
from console.rest.serializers import ReasonCode, ReasonParams, ReasonText
from dlq.api.seeing import SeesLetters
from dlq.letters_for import letters_for
from dlq.models import OPEN_FETCHES, DeadLetter, FetchState, WholeFetch
from dlq.whole.asking import FetchRefused, ask, cancel, cost_of, latest, taken
from dlq.whole.bytes import bytes_for


class BrokerAway(ApiProblem):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_code = "broker_away"


class CostSerializer(serializers.Serializer[Any]):
    """At most, by the newest letters of the queue."""

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
    """`fetch` is the last one, null: never. `cost` of asking now; null: the broker does not tell, or it is
    done or going on."""

    truncated = serializers.BooleanField()
    fetch = FetchSerializer(allow_null=True)
    cost = CostSerializer(allow_null=True)


def letter_for(request: Request, pk: int) -> DeadLetter:
    letter = letters_for(request.user).filter(pk=pk).first()
    if letter is None:
        raise NotFound
    return letter


class WholeLetter(Audited, SeesLetters, APIView):
    audit_action = "whole_asked"

    @extend_schema(responses=WholeSerializer)
    def get(self, request: Request, pk: int) -> Response:
        letter = letter_for(request, pk)
        fetch = latest(letter)
        going = fetch is not None and fetch.state in (*OPEN_FETCHES, FetchState.DONE)
        count = None if going or not letter.truncated else message_count(letter.queue)
        cost = cost_of(letter, count) if count is not None else None
        told = {"truncated": letter.truncated, "fetch": fetch, "cost": cost}
        return Response(WholeSerializer(told).data)

    @extend_schema(request=None, responses={202: FetchSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Begins it. GET says how far it is and, before, what it costs; `whole/body/` gives the bytes for a
        day."""
        letter = letter_for(request, pk)
        count = message_count(letter.queue)
        if count is None:
            raise BrokerAway(
                "The broker does not answer.", what_to_do="Try again later; nothing was changed."
            )
        try:
            with attempt("whole_asked", by=request.user, target=f"letter:{pk}", letter=pk):
                fetch = ask(letter, by=request.user, now=timezone.now(), letters=count)
        except FetchRefused as refused:
            raise _conflict(refused) from refused
        return Response(FetchSerializer(fetch).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Cancels one that is going on."""
        letter = letter_for(request, pk)
        self.audit_action = "whole_cancelled"
        try:
            cancel(letter, by=request.user, now=timezone.now())
        except FetchRefused as refused:
            raise _conflict(refused) from refused
        return Response(status=status.HTTP_204_NO_CONTENT)


class WholeBody(SeesLetters, APIView):
    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        letter = letter_for(request, pk)
        with attempt("whole_downloaded", by=request.user, target=f"letter:{pk}", letter=pk):
            content = bytes_for(request.user, letter)
        if content is None:
            raise NotFound
        taken(letter, by=request.user, now=timezone.now())
        response = HttpResponse(content, content_type="application/octet-stream")
        response["Content-Disposition"] = f'attachment; filename="letter-{letter.pk}.bin"'
        return response


def _conflict(refused: FetchRefused) -> Conflict:
    return Conflict(refused.reason, code=refused.code, where="letter", what_to_do=refused.what_to_do)
