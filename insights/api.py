"""/api/v1/pipeline-runs/ and /api/v1/insights/: runs of the pipeline, begun and cancelled; what they
found."""

from typing import Any

from django.db.models import Model, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import generics, mixins, serializers, status
from rest_framework.viewsets import GenericViewSet

from console.operations.rest import Answer, OperationsMixin
from console.rest.lists import KeysetPages, NoFilters
from console.rest.serializers import QuerySerializer, ReasonCode, ReasonParams, ReasonText
from insights.models import InsightTable, PipelineRun
from insights.runs.folder import TABLES
from insights.runs.operations import PIPELINE_RUNS, CancelPipelineRun, StartPipelineRun


class PipelineRunSerializer(serializers.ModelSerializer[PipelineRun]):
    """`stages`: {stage, state, done, total, rows, seconds, error} each. `window_until`: end of the data in
    the run."""

    by = serializers.SerializerMethodField()
    percent = serializers.IntegerField(read_only=True)
    stages = serializers.SerializerMethodField()
    problem = ReasonText()
    problem_code = ReasonCode("problem")
    problem_params = ReasonParams("problem")

    class Meta:
        model = PipelineRun
        fields = (
            "id", "state", "trigger", "by", "jobs", "since", "until", "master", "asked_at", "started_at",
            "ended_at",
            "heartbeat_at", "cancel_asked_at", "cancel_asked_by", "percent", "stages", "window_from",
            "window_until",
            "rows_loaded", "memory_peak_bytes", "versions", "problem", "problem_code", "problem_params",
        )  # fmt: skip
        read_only_fields = fields

    def get_by(self, run: PipelineRun) -> str | None:
        return run.asked_by.get_username() if run.asked_by else None

    @extend_schema_field(serializers.ListField(child=serializers.DictField()))
    def get_stages(self, run: PipelineRun) -> Any:
        return run.stages


class NewestRuns(KeysetPages):
    ordering = ("-asked_at", "-id")


class PipelineRunViewSet(
    OperationsMixin, mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[PipelineRun]
):
    """Newest first, in pages by key. There is one open run at a time."""

    queryset = PIPELINE_RUNS.rows()
    serializer_class = PipelineRunSerializer
    operations = {
        StartPipelineRun: Answer(PipelineRunSerializer, status.HTTP_201_CREATED),
        CancelPipelineRun: None,
    }
    lookup_value_converter = "uuid"
    pagination_class = NewestRuns
    filter_backends = (NoFilters,)


class InsightTableSerializer(serializers.ModelSerializer[InsightTable]):
    run = serializers.UUIDField(source="run_id", read_only=True)

    class Meta:
        model = InsightTable
        fields = ("name", "run", "rows", "computed_at", "data_until")
        read_only_fields = fields


class Insights(generics.ListAPIView[InsightTable]):
    """The tables of results with their age."""

    queryset = InsightTable.objects.order_by("name")
    serializer_class = InsightTableSerializer
    filter_backends = (NoFilters,)
    pagination_class = None
    action_permissions = {"get": ("insights.view_pipelinerun",)}


class InsightQuery(QuerySerializer):
    """Filters of a table."""

    setting = serializers.CharField(source="setting_key", required=False, max_length=200)


class NewestRows(KeysetPages):
    ordering = ("-id",)


def views() -> dict[str, type[generics.ListAPIView[Any]]]:
    """One view per table."""
    return {name: _view(name, model) for name, model in TABLES.items()}


def _view(name: str, model: type[Model]) -> type[generics.ListAPIView[Any]]:
    label = "".join(part.capitalize() for part in name.split("_"))
    meta = type("Meta", (), {"model": model, "exclude": ("id",), "ref_name": f"{label}Row"})
    of_run = serializers.UUIDField(source="run_id", read_only=True)
    serializer = type(f"{label}RowSerializer", (serializers.ModelSerializer,), {"Meta": meta, "run": of_run})

    class Rows(generics.ListAPIView[Any]):
        queryset = model._default_manager.all()
        serializer_class = serializer
        pagination_class = NewestRows
        filter_backends = ()
        action_permissions = {"get": ("insights.view_pipelinerun",)}

        def get_queryset(self) -> QuerySet[Any]:
            query = InsightQuery(data=self.request.query_params)
            query.is_valid(raise_exception=True)
            return super().get_queryset().filter(**query.validated_data)

    Rows.__doc__ = f"{model._meta.verbose_name_plural}, in pages by key."
    Rows.__name__ = Rows.__qualname__ = f"{label}Rows"
    return extend_schema_view(get=extend_schema(operation_id=f"insights_{name}", parameters=[InsightQuery]))(
        Rows
    )
