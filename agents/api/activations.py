"""/api/v1/activations/: starts of settings with their runs."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.viewsets import GenericViewSet

from agents.activations.operations import StopActivation
from agents.activations.queries import Listed, activations
from agents.models import Activation, ActivationState, Run
from agents.reasons import problems_of
from console.operations.rest import OperationsMixin
from console.rest.lists import KeysetPages, asked_in
from console.rest.serializers import QuerySerializer, ReasonCode, ReasonParams, ReasonText


class RunSerializer(serializers.ModelSerializer[Run]):
    server = serializers.CharField(source="server.name", read_only=True)
    problem = serializers.CharField(
        read_only=True, help_text="All `problems` and the blocking message, as text."
    )
    problems = serializers.ListField(child=serializers.JSONField(), help_text="Each has `code` and `params`.")
    blocked = serializers.JSONField(
        read_only=True, help_text="`key`, `attempt`, `retry_seconds` of the blocking message, or null."
    )

    class Meta:
        model = Run
        fields = (
            "server",
            "epoch",
            "wanted",
            "state",
            "handled",
            "failed",
            "temporary",
            "recovered",
            "restarts",
            "repeats",
            "in_progress",
            "connected",
            "same_type",
            "same_count",
            "any_count",
            "reported_at",
            "problem",
            "problems",
            "blocked",
            "created_at",
            "closed_at",
            "closing_records",
            "stored_records",
        )
        read_only_fields = fields

    def to_representation(self, run: Run) -> dict[str, Any]:
        """A page may hold thousands of them (50 servers each): field by field is ten times slower."""
        shown = {name: getattr(run, name) for name in self.Meta.fields if name != "problem"}
        return shown | {
            "server": run.server.name,
            "problem": "; ".join(map(str, problems_of(run))),
            "problems": [problem.as_json() for problem in run.problems],
        }


class ActivationSerializer(serializers.ModelSerializer[Activation]):
    setting = serializers.CharField(source="setting.key", read_only=True)
    started_by = serializers.CharField(source="started_by.username", read_only=True, default=None)
    runs = RunSerializer(many=True, read_only=True)
    reason = ReasonText()
    reason_code = ReasonCode("reason")
    reason_params = ReasonParams("reason")

    class Meta:
        model = Activation
        fields = (
            "id",
            "setting",
            "state",
            "trigger",
            "group_activation",
            "trial",
            "started_by",
            "started_at",
            "ending",
            "ending_at",
            "ended_at",
            "reason",
            "reason_code",
            "reason_params",
            "late_records",
            "runs",
        )
        read_only_fields = fields


class ActivationQuery(QuerySerializer):
    """Filters of the list."""

    setting = serializers.CharField(required=False, max_length=61, help_text="Key of a setting.")
    state = serializers.ChoiceField(ActivationState.choices, required=False)
    server = serializers.CharField(
        required=False, max_length=63, help_text="Name of a server that ran the activation."
    )


class NewestActivations(KeysetPages):
    """By the instant of the start, or of the first run on the server that was asked for.

    Small pages: each activation brings its runs, one per server of the pool and epoch."""

    page_size = 25
    max_page_size = 100

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> tuple[str, ...]:
        return (f"-{view.listed().by}", "-id")


@extend_schema_view(list=extend_schema(parameters=[ActivationQuery]))
class ActivationViewSet(
    OperationsMixin, mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Activation]
):
    """Newest first, in pages by key. With `server`: ordered by the first run there."""

    queryset = Activation.objects.select_related("setting", "started_by").prefetch_related("runs__server")
    serializer_class = ActivationSerializer
    lookup_value_converter = "uuid"
    pagination_class = NewestActivations
    filter_backends = ()
    operations = {StopActivation: None}

    def listed(self) -> Listed:
        return activations(**asked_in(self.request, ActivationQuery))

    def get_queryset(self) -> QuerySet[Activation]:
        if self.action != "list":
            return super().get_queryset()
        return self.listed().rows.prefetch_related("runs__server")
