"""/api/v1/activations/ID/difference/: an activation beside another one of its setting, the finished one
before it unless told otherwise."""

from typing import Any

from django.db.models import Count, Sum
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Activation, ActivationState
from console.rest.lists import asked_in
from console.rest.serializers import QuerySerializer
from failures.error_groups.rules import Change
from failures.pages.difference import DifferenceRow, difference_between, finished_before
from failures.pages.protocols import VIEW

MOST_KINDS = 500
COUNTED = ("handled", "failed", "temporary", "recovered", "restarts")


class DifferenceQuery(QuerySerializer):
    before = serializers.UUIDField(
        required=False, help_text="Activation to compare with. Default: the previous finished one."
    )


class ActivationFiguresSerializer(serializers.Serializer[Any]):
    """Totals of an activation over all servers; 0 after retention."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(ActivationState.choices)
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    servers = serializers.IntegerField()
    attempts = serializers.IntegerField()
    handled = serializers.IntegerField()
    failed = serializers.IntegerField()
    temporary = serializers.IntegerField()
    recovered = serializers.IntegerField()
    restarts = serializers.IntegerField()
    agent_versions = serializers.ListField(
        child=serializers.CharField(),
        help_text="Agent versions in the failures, if they differ between the activations.",
    )


class ErrorGroupChangeSerializer(serializers.Serializer[DifferenceRow]):
    """`before`, `after`: failures. `scaled`: `before`, scaled to the attempts of `after`. `more` and `fewer`
    are set only for significant changes. `merged`: number of merged groups."""

    fingerprint = serializers.CharField(source="difference.fingerprint")
    change = serializers.ChoiceField([each.value for each in Change], source="difference.change.value")
    before = serializers.IntegerField(source="difference.before")
    after = serializers.IntegerField(source="difference.after")
    scaled = serializers.FloatField(source="difference.scaled")
    exception_type = serializers.CharField(source="alike.exception_type")
    place = serializers.CharField(source="alike.place")
    headline = serializers.CharField(source="alike.headline")
    temporary = serializers.BooleanField(source="alike.temporary")
    merged = serializers.IntegerField()


class ChangedFieldSerializer(serializers.Serializer[Any]):
    """A field of the setting, of its destination (`destination.…`) or a parameter (`parameters.…`). Null: not
    present."""

    name = serializers.CharField()
    old = serializers.JSONField()
    new = serializers.JSONField()


class ActivationDifferenceSerializer(serializers.Serializer[Any]):
    """`groups`: new, more, gone, fewer, then unchanged; up to 500, `left_out` more. `changed`: changed fields
    of the setting; also empty if unknown (`compared` false)."""

    setting = serializers.CharField()
    before = ActivationFiguresSerializer()
    after = ActivationFiguresSerializer()
    groups = ErrorGroupChangeSerializer(many=True)
    left_out = serializers.IntegerField()
    compared = serializers.BooleanField()
    changed = ChangedFieldSerializer(many=True)


class ActivationDifferences(APIView):
    """Compares the error groups and figures of an activation with those of another one: by default the
    previous finished one, or `before`. 404 if there is none."""

    action_permissions: dict[str, tuple[str, ...]] = {"get": ("agents.view_activation", VIEW)}

    @extend_schema(
        operation_id="activations_difference",
        parameters=[DifferenceQuery],
        responses=ActivationDifferenceSerializer,
    )
    def get(self, request: Request, pk: str) -> Response:
        asked = asked_in(request, DifferenceQuery).get("before")
        after = get_object_or_404(Activation.objects.select_related("setting"), pk=pk)
        before = finished_before(after)
        if asked is not None:
            before = Activation.objects.filter(setting=after.setting_id, pk=asked).exclude(pk=pk).first()
        if before is None:
            raise exceptions.NotFound("Activation to compare with not found.")
        found = difference_between(before, after, MOST_KINDS)
        versions = found.versions or ([], [])
        answer = {
            "setting": after.setting.key,
            "before": _figures(before, found.attempts[0], versions[0]),
            "after": _figures(after, found.attempts[1], versions[1]),
            "groups": found.rows,
            "left_out": found.left_out,
            "compared": found.compared,
            "changed": found.changed,
        }
        return Response(ActivationDifferenceSerializer(answer).data)


def _figures(activation: Activation, attempts: int, versions: list[str]) -> dict[str, Any]:
    sums = {name: Sum(name, default=0) for name in COUNTED}
    return {
        "id": activation.pk,
        "state": activation.state,
        "started_at": activation.started_at,
        "ended_at": activation.ended_at,
        "attempts": attempts,
        "agent_versions": versions,
        **activation.runs.aggregate(servers=Count("server", distinct=True), **sums),
    }
