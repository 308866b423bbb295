"""/api/v1/dead-letters/<pk>/edit/ and /api/v1/dead-letters/edit/: one dead letter, or many by a rule, are
edited and their copies given back. Who may is asked for the setting."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.audit.refusals import Audited
from console.operations.rest import as_problems, forbidding
from console.rest.errors import ApiProblem, Conflict
from dlq.api.preflight import AskSerializer, FlightSerializer, request_of, verdict_json
from dlq.api.replays import ReplaySerializer
from dlq.edit.operations import Trial, draft, edit_letter, edit_request, rule_for, ruled, try_rule
from dlq.edit.rules.body_text import LARGEST_BODY
from dlq.edit.rules.bulk_rule import MOST_OPERATIONS
from dlq.edit.rules.changes import Changes, changes_of
from dlq.edit.rules.values import TYPES, EditRefused
from dlq.models import Action, DeadLetter
from dlq.replay.creation import CODES, EDIT_OF_ONE, attempted, run
from dlq.replay.preflight.text import sentence
from dlq.replay.requests import check_request
from dlq.search.visibility import letters_for

# Of the dead letter, not of what was asked.
CANNOT = ("truncated", "no_id", "no_message", "no_setting")
# A body in base64, and what is around it.
BODY_LIMIT = 2 * LARGEST_BODY


class PropertySerializer(serializers.Serializer[Any]):
    """`value`: text, or a JSON number, boolean or null. Bytes are hexadecimal."""

    name = serializers.CharField(max_length=300, trim_whitespace=False)
    type = serializers.ChoiceField(TYPES, default="string")
    value = serializers.JSONField(required=False)


class EditSerializer(serializers.Serializer[Any]):
    """`body` is `{"text": …}` or `{"base64": …}`; JSON stays JSON and XML well-formed unless `other_form`.
    `acknowledge`: codes of warnings. With `dry_run` nothing is stored."""

    body = serializers.JSONField(required=False, default=None)
    other_form = serializers.BooleanField(required=False, default=False)
    set = PropertySerializer(many=True, required=False)
    remove = serializers.ListField(child=serializers.CharField(trim_whitespace=False), required=False)
    reason = serializers.CharField(max_length=2000, required=False, default="", allow_blank=True)
    acknowledge = serializers.ListField(
        child=serializers.CharField(max_length=40), required=False, default=list
    )
    dry_run = serializers.BooleanField(required=False, default=False)


class EditWarningSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    text = serializers.CharField()


class DryRunSerializer(serializers.Serializer[Any]):
    """`changes`: list of `{"what", "before", "after"}`; for a body with `lines`, a unified diff."""

    changes = serializers.JSONField()
    going = serializers.IntegerField()
    warnings = EditWarningSerializer(many=True)


class EditLetter(Audited, APIView):
    body_limit = BODY_LIMIT
    audit_action = EDIT_OF_ONE
    action_permissions: dict[str, tuple[str, ...]] = {"post": ()}

    @extend_schema(
        operation_id="dead_letter_edit",
        request=EditSerializer,
        responses={200: OpenApiResponse(DryRunSerializer, description="dry_run"), 201: ReplaySerializer},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Returns the planned job, or with `dry_run` the changes."""
        letter = get_object_or_404(letters_for(request.user), pk=pk)
        ask = EditSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        wanted = ask.validated_data
        with as_edit_problems("letter"):
            changes = changes_of(dict(request.data))
            if wanted["dry_run"]:
                return Response(_dry_run(request, letter, changes))
            how = {"reason": wanted["reason"], "acknowledged": wanted["acknowledge"]}
            job = edit_letter(letter, changes, by=request.user, now=timezone.now(), **how)
        return Response(ReplaySerializer(job).data, status=status.HTTP_201_CREATED)


def _dry_run(request: Request, letter: DeadLetter, changes: Changes) -> dict[str, Any]:
    verdict = check_request(edit_request(letter), by=request.user, now=timezone.now())
    return {
        "changes": draft(letter, changes, request.user).changes,
        "going": verdict.going,
        "warnings": [{"code": each.code, "text": sentence(each)} for each in verdict.warnings],
    }


@contextmanager
def as_edit_problems(of: str) -> Iterator[None]:
    """Turns what is refused of an edit of this into an error of the API."""
    try:
        with as_problems(of):
            yield
    except EditRefused as refused:
        kind = Conflict if refused.code in CANNOT else ApiProblem
        raise kind(refused.reason, code=refused.code, where=refused.what or "letter") from refused


# -- many dead letters, by a rule ----------------------------------------------------------------------------


RULE_LIMIT = 2 * 1024 * 1024


class RuleSerializer(AskSerializer):
    """`rule` is a list of operations: `{"op": "set_property", "name", "type", "value"}`, `{"op":
    "remove_property", "name"}`, `{"op": "set_json", "pointer", "value"}`, `{"op": "remove_json", "pointer"}`.
    With `dry_run` nothing is stored: the response shows the changes to some of the dead letters."""

    action = None  # type: ignore[assignment]  # DRF: takes an inherited field away
    target = None  # type: ignore[assignment]  # the same
    in_order = None  # type: ignore[assignment]  # the same: a copy is another message
    hold_minutes = None  # type: ignore[assignment]  # the same
    rule = serializers.ListField(child=serializers.DictField(), min_length=1, max_length=MOST_OPERATIONS)
    dry_run = serializers.BooleanField(required=False, default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return super().validate({**attrs, "action": Action.EDIT})


class LeftOutSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    reason = serializers.CharField()
    count = serializers.IntegerField()
    letters = serializers.ListField(
        child=serializers.IntegerField(), help_text="Examples: numbers of dead letters."
    )


class TriedSerializer(serializers.Serializer[Any]):
    letter = serializers.IntegerField()
    changes = serializers.JSONField(help_text='List of {"what", "before", "after"}.')


class TrialSerializer(serializers.Serializer[Any]):
    seen = serializers.IntegerField(help_text="Number of the newest dead letters that the trial covered.")
    fits = serializers.IntegerField()
    more = serializers.BooleanField(help_text="true: the trial did not cover all dead letters.")
    letters = TriedSerializer(many=True)
    left_out = LeftOutSerializer(many=True)
    preflight = FlightSerializer()


class EditLetters(Audited, APIView):
    """Requires the permission to edit dead letters of the setting."""

    body_limit = RULE_LIMIT
    audit_action = CODES[Action.EDIT]
    action_permissions: dict[str, tuple[str, ...]] = {"post": ()}

    @extend_schema(
        operation_id="dead_letters_edit",
        request=RuleSerializer,
        responses={200: OpenApiResponse(TrialSerializer, description="dry_run"), 201: ReplaySerializer},
    )
    def post(self, request: Request) -> Response:
        """Returns the planned job, or with `dry_run` the changes of the rule. Messages that the rule does not
        fit are skipped and stay."""
        ask = RuleSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        asked = ask.validated_data
        wanted, by, now = request_of(asked), request.user, timezone.now()
        with as_edit_problems("letters"), forbidding("setting"):
            verdict = check_request(wanted, by=by, now=now)
            rule = rule_for(asked["rule"], wanted.setting, by)
            if asked["dry_run"]:
                trial = try_rule(rule, wanted.rows(by), by, now)
                return Response(trial_json(trial) | {"preflight": verdict_json(verdict)})
            with attempted(edit := ruled(wanted, rule), by):
                job = run(edit, verdict, by=by, now=now)
        return Response(ReplaySerializer(job).data, status=status.HTTP_201_CREATED)


def trial_json(trial: Trial) -> dict[str, Any]:
    return {
        "seen": trial.seen,
        "fits": trial.fits,
        "more": trial.more,
        "letters": [asdict(each) for each in trial.shown],
        "left_out": [asdict(each) for each in trial.left_out.values()],
    }
