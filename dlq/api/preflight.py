"""/api/v1/preflight/: what would happen with the same question to /api/v1/replays/. Changes nothing."""

from dataclasses import asdict
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dlq.api.wishes import AskSerializer, refusing, wish_of
from dlq.asking import check
from dlq.preflight import Flight
from dlq.preflight.words import reason, sentence


class WarningSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="To be named in `acknowledge`.")
    n = serializers.IntegerField()
    of = serializers.IntegerField()
    text = serializers.CharField()


class FlightSerializer(serializers.Serializer[Any]):
    going = serializers.IntegerField(help_text="How many would go.")
    total = serializers.IntegerField(help_text="How many letters the scope holds.")
    about = serializers.BooleanField(
        help_text="There are more than `seen`: `going` and `total` are judged by the latest of them."
    )
    seen = serializers.IntegerField()
    skipped = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many of `seen` stay, by reason."
    )
    reasons = serializers.DictField(child=serializers.CharField(), help_text="The reasons for people.")
    examples = serializers.DictField(child=serializers.ListField(child=serializers.IntegerField()))
    warnings = WarningSerializer(many=True)
    typed = serializers.BooleanField(help_text="So many that a page asks for the number.")


def flight_json(flight: Flight) -> dict[str, Any]:
    return {
        "going": flight.going,
        "total": flight.total,
        "about": flight.about,
        "seen": flight.seen,
        "skipped": flight.skipped,
        "reasons": {code: reason(code) for code in flight.skipped},
        "examples": {code: list(letters) for code, letters in flight.examples.items()},
        "warnings": [asdict(warning) | {"text": sentence(warning)} for warning in flight.warnings],
        "typed": flight.typed,
    }


class Preflight(APIView):
    """Needs the same rights as the action."""

    action_permissions: dict[str, tuple[str, ...]] = {"post": ()}

    @extend_schema(request=AskSerializer, responses={200: FlightSerializer})
    def post(self, request: Request) -> Response:
        """What would go where, what would stay and why, and what has to be acknowledged first. What a job
        would be refused for is refused here, with the same status and reason."""
        ask = AskSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        with refusing():
            flight = check(wish_of(ask.validated_data), by=request.user, now=timezone.now())
        return Response(flight_json(flight))
