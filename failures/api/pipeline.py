"""/api/v1/pipeline-runs/ and /api/v1/insights/: runs of the pipeline, begun and cancelled; what they
found."""

from typing import Any

from django.db.models import Model, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import generics, mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from console.rest.errors import Conflict
from console.rest.pagination import KeysetPages
from console.rest.serializers import BodySerializer, QuerySerializer, check_no_body
from failures.insights.asking import RunRefused, ask, cancel
from failures.insights.jobs import JOBS, TABLES
from failures.insights.reaping import reap
from failures.models import InsightTable, PipelineRun, PipelineTrigger

RUN = ("failures.view_pipelinerun", "failures.can_run_pipeline")
CANCEL = ("failures.view_pipelinerun", "failures.can_cancel_pipeline")


class PipelineRunSerializer(serializers.ModelSerializer[PipelineRun]):
    """`stages`: {stage, state, done, total, rows, seconds, error} each. `window_until`: up to then it saw
    data."""

    by = serializers.SerializerMethodField()
    percent = serializers.IntegerField(read_only=True)
    stages = serializers.SerializerMethodField()

    class Meta:
        model = PipelineRun
        fields = (
            "id", "state", "trigger", "by", "jobs", "since", "until", "master", "asked_at", "started_at",
            "ended_at",
            "heartbeat_at", "cancel_asked_at", "cancel_asked_by", "percent", "stages", "window_from",
            "window_until",
            "rows_loaded", "memory_peak_bytes", "versions", "problem",
        )  # fmt: skip
        read_only_fields = fields

    def get_by(self, run: PipelineRun) -> str | None:
        return run.asked_by.get_username() if run.asked_by else None

    @extend_schema_field(serializers.ListField(child=serializers.DictField()))
    def get_stages(self, run: PipelineRun) -> Any:
        return run.stages


class Asking(BodySerializer):
    """No jobs: all of them."""

    jobs = serializers.ListField(
        child=serializers.ChoiceField(choices=sorted(JOBS)), required=False, default=list
    )
    since = serializers.DateTimeField(required=False, allow_null=True, default=None)
    until = serializers.DateTimeField(required=False, allow_null=True, default=None)


class NewestRuns(KeysetPages):
    ordering = ("-asked_at", "-id")


class PipelineRunViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[PipelineRun]):
    """Newest first, in pages by key. There is one open run at a time."""

    queryset = PipelineRun.objects.select_related("asked_by")
    serializer_class = PipelineRunSerializer
    lookup_value_converter = "uuid"
    pagination_class = NewestRuns
    filter_backends = ()
    action_permissions = {"create": RUN, "cancel": CANCEL}

    @extend_schema(request=Asking, responses={201: PipelineRunSerializer})
    def create(self, request: Request) -> Response:
        """Asks for a run: a worker begins it. 409 where one goes on, or none can run here."""
        given = Asking(data=request.data)
        given.is_valid(raise_exception=True)
        now = timezone.now()
        reap(now)
        try:
            run = ask(PipelineTrigger.PAGE, now, by=request.user, **given.validated_data)
        except RunRefused as refused:
            todo = "GET /api/v1/pipeline-runs/ tells of the open one; /health/ whether it can run."
            raise Conflict(
                str(refused), code=refused.code, where="pipeline-runs", what_to_do=todo
            ) from refused
        return Response(self.get_serializer(run).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses=PipelineRunSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """It ends within seconds; nothing of what it found is kept. 409 where it is over."""
        check_no_body(request)
        run = self.get_object()
        if not cancel(run, timezone.now(), by=request.user.get_username()):
            raise Conflict(
                "It is over already.",
                code="over",
                where=f"pipeline-runs/{run.pk}",
                what_to_do="Nothing is to be done.",
            )
        return Response(self.get_serializer(self.get_object()).data)


class InsightTableSerializer(serializers.ModelSerializer[InsightTable]):
    run = serializers.UUIDField(source="run_id", read_only=True)

    class Meta:
        model = InsightTable
        fields = ("name", "run", "rows", "computed_at", "data_until")
        read_only_fields = fields


class Insights(generics.ListAPIView[InsightTable]):
    """The tables that a run has filled, and how old each is."""

    queryset = InsightTable.objects.order_by("name")
    serializer_class = InsightTableSerializer
    filter_backends = ()
    pagination_class = None
    action_permissions = {"get": ("failures.view_pipelinerun",)}


class InsightQuery(QuerySerializer):
    """What a table may be narrowed to."""

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
        action_permissions = {"get": ("failures.view_pipelinerun",)}

        def get_queryset(self) -> QuerySet[Any]:
            query = InsightQuery(data=self.request.query_params)
            query.is_valid(raise_exception=True)
            return super().get_queryset().filter(**query.validated_data)

    Rows.__doc__ = f"{model._meta.verbose_name_plural}, in pages by key."
    Rows.__name__ = Rows.__qualname__ = f"{label}Rows"
    return extend_schema_view(get=extend_schema(operation_id=f"insights_{name}", parameters=[InsightQuery]))(
        Rows
    )
