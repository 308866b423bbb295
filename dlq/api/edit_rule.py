"""/api/v1/dead-letters/edit/: many dead letters are edited by a rule and their copies given back."""

from dataclasses import asdict
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.audit.refusals import Audited
from console.operations.rest import forbidding
from dlq.api import preflight as wishes
from dlq.api.edit import as_edit_problems
from dlq.api.preflight import FlightSerializer, flight_json
from dlq.api.replays import ReplaySerializer
from dlq.edit.operations import Trial, rule_for, ruled, try_rule
from dlq.edit.rules.bulk_rule import MOST_OPERATIONS
from dlq.models import Action
from dlq.replay.creation import CODES
from dlq.replay.requests import attempted, check_request, run

RULE_LIMIT = 2 * 1024 * 1024


class RuleSerializer(wishes.AskSerializer):
    """`rule` is a list of operations: `{"op": "set_property", "name", "type", "value"}`, `{"op":
    "remove_property", "name"}`, `{"op": "set_json", "pointer", "value"}`, `{"op": "remove_json", "pointer"}`.
    With `dry_run` nothing is stored: the answer tells what the rule does to some of the dead letters."""

    action = None  # type: ignore[assignment]  # DRF: takes an inherited field away
    target = None  # type: ignore[assignment]  # the same
    rule = serializers.ListField(child=serializers.DictField(), min_length=1, max_length=MOST_OPERATIONS)
    dry_run = serializers.BooleanField(required=False, default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return super().validate({**attrs, "action": Action.EDIT})


class LeftOutSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    reason = serializers.CharField()
    count = serializers.IntegerField()
    letters = serializers.ListField(child=serializers.IntegerField(), help_text="Some of them.")


class TriedSerializer(serializers.Serializer[Any]):
    letter = serializers.IntegerField()
    changes = serializers.JSONField(help_text='A list of {"what", "before", "after"}.')


class TrialSerializer(serializers.Serializer[Any]):
    seen = serializers.IntegerField(help_text="The newest letters, on which the rule was tried.")
    fits = serializers.IntegerField()
    more = serializers.BooleanField(help_text="There are letters on which it was not tried.")
    letters = TriedSerializer(many=True)
    left_out = LeftOutSerializer(many=True)
    preflight = FlightSerializer()


class EditLetters(Audited, APIView):
    """Needs the right to edit dead letters of the setting."""

    body_limit = RULE_LIMIT
    audit_action = CODES[Action.EDIT]
    action_permissions: dict[str, tuple[str, ...]] = {"post": ()}

    @extend_schema(
        operation_id="dead_letters_edit",
        request=RuleSerializer,
        responses={200: OpenApiResponse(TrialSerializer, description="dry_run"), 201: ReplaySerializer},
    )
    def post(self, request: Request) -> Response:
        """Answers the planned job, or what the rule would change (`dry_run`). A dead letter that the rule
        does not fit as a whole is left out and stays."""
        ask = RuleSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        asked = ask.validated_data
        wish, by, now = wishes.request_of(asked), request.user, timezone.now()
        with as_edit_problems("letters"), forbidding("setting"):
            flight = check_request(wish, by=by, now=now)
            rule = rule_for(asked["rule"], wish.setting, by)
            if asked["dry_run"]:
                trial = try_rule(rule, wish.rows(by), by, now)
                return Response(trial_json(trial) | {"preflight": flight_json(flight)})
            with attempted(wanted := ruled(wish, rule), by):
                job = run(wanted, flight, by=by, now=now)
        return Response(ReplaySerializer(job).data, status=status.HTTP_201_CREATED)


def trial_json(trial: Trial) -> dict[str, Any]:
    return {
        "seen": trial.seen,
        "fits": trial.fits,
        "more": trial.more,
        "letters": [asdict(each) for each in trial.shown],
        "left_out": [asdict(each) for each in trial.left_out.values()],
    }
